package mirror

import (
	"context"
	"maps"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// findingsInterval is the interval at which the operator reads the findings. The control plane computes them as often.
const findingsInterval = 2 * time.Second

// findingsLimit bounds the time of one reading.
const findingsLimit = 10 * time.Second

// reasonNoFinding: the control plane finds nothing wrong with the object.
const reasonNoFinding = "NoFinding"

// Findings has what the control plane finds wrong with objects: warnings and critical findings. Its Start must run. Its methods are
// safe for concurrent use.
type Findings struct {
	service pb.FindingServiceClient

	mutex     sync.Mutex
	known     bool
	worst     map[objectName]*pb.Finding
	followers map[string][]func(name string)
}

// ControlPlane is a connection to the control plane, and what the control plane finds.
type ControlPlane struct {
	grpc.ClientConnInterface
	Findings *Findings
}

// objectName identifies an object of the control plane.
type objectName struct{ kind, name string }

// NewFindings returns the findings of a control plane.
func NewFindings(connection grpc.ClientConnInterface) *Findings {
	return &Findings{service: pb.NewFindingServiceClient(connection), followers: map[string][]func(string){}}
}

// follow calls a function with the name of each object of a kind whose worst finding changes. It must be called before Start.
func (f *Findings) follow(kind string, changed func(name string)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.followers[kind] = append(f.followers[kind], changed)
}

// of returns the worst finding about an object, nil if there is none. known: the findings were read.
func (f *Findings) of(ctx context.Context, kind, name string) (worst *pb.Finding, known bool) {
	if f == nil { // in tests
		return nil, false
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !f.known {
		_ = f.read(ctx) // after a start of the operator, no resource must seem to be ready until the first regular reading
	}
	return f.worst[objectName{kind, name}], f.known
}

// Start reads the findings at intervals until the context ends. It implements manager.Runnable.
func (f *Findings) Start(ctx context.Context) error {
	ticker := time.NewTicker(findingsInterval)
	defer ticker.Stop()
	last := ""
	for {
		problem := ""
		if err := f.renew(ctx); err != nil && ctx.Err() == nil {
			problem = Explain(err).Message
		}
		if problem != "" && problem != last {
			log.FromContext(ctx).Info("the findings of the control plane cannot be read", "problem", problem)
		}
		last = problem
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// renew reads the findings, and reports the objects whose worst finding has changed.
func (f *Findings) renew(ctx context.Context) error {
	f.mutex.Lock()
	before := f.worst
	err := f.read(ctx)
	var changed []objectName
	for object, finding := range f.worst {
		if !sameFinding(before[object], finding) {
			changed = append(changed, object)
		}
	}
	for object := range before {
		if f.worst[object] == nil {
			changed = append(changed, object)
		}
	}
	followers := maps.Clone(f.followers)
	f.mutex.Unlock()
	for _, object := range changed {
		for _, tell := range followers[object.kind] {
			tell(object.name)
		}
	}
	return err
}

// read reads all pages. If it fails, the findings stay as they are. The caller holds the mutex.
func (f *Findings) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, findingsLimit)
	defer cancel()
	worst := map[objectName]*pb.Finding{}
	request := &pb.ListFindingsRequest{EachObject: true, MinSeverity: pb.FindingSeverity_FINDING_SEVERITY_WARNING}
	for {
		response, err := f.service.ListFindings(ctx, request)
		if status.Code(err) == codes.Unimplemented { // a control plane of an earlier release
			f.known, f.worst = false, nil
			return nil
		}
		if err != nil {
			return err
		}
		for _, finding := range response.GetFindings() {
			object := objectName{finding.GetObject().GetKind(), finding.GetObject().GetName()}
			if had := worst[object]; had == nil || finding.GetSeverity() > had.GetSeverity() {
				worst[object] = finding
			}
		}
		if request.PageToken = response.GetNextPageToken(); request.PageToken == "" {
			break
		}
	}
	f.known, f.worst = true, worst
	return nil
}

// sameFinding compares what conditions show.
func sameFinding(a, b *pb.Finding) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.GetId() == b.GetId() && a.GetSeverity() == b.GetSeverity() && a.GetCause() == b.GetCause() && proto.Equal(a.GetObject(), b.GetObject())
}

// showFinding sets the condition Healthy from the worst finding about an object. A critical one also means that a permitted host cannot
// use the object now, so the resource is not ready.
func showFinding(r v1alpha1.Resource, worst *pb.Finding) {
	if worst == nil {
		Condition(r, v1alpha1.ConditionHealthy, metav1.ConditionTrue, reasonNoFinding, "", r.GetGeneration())
		return
	}
	message := worst.GetCause() + "; remedy: " + worst.GetRemedy() + "; " + worst.GetLink()
	Condition(r, v1alpha1.ConditionHealthy, metav1.ConditionFalse, worst.GetId(), message, r.GetGeneration())
	if worst.GetSeverity() == pb.FindingSeverity_FINDING_SEVERITY_CRITICAL {
		Condition(r, v1alpha1.ConditionReady, metav1.ConditionFalse, worst.GetId(), message, r.GetGeneration())
	}
}
