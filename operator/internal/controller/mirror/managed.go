package mirror

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/convert"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Managed is what the reconciler needs to know of one kind of managed resource: R is the custom resource, P the control plane's object.
// Nil functions mean that there is nothing of the sort.
type Managed[R v1alpha1.Resource, P Object] struct {
	Noun Noun[P]
	// Want makes the object that the control plane should have, whole, defaults included. Its name and labels are filled in.
	Want func(ctx context.Context, r R, secrets *SecretReader) (P, error)
	// Hide takes away from what is wanted what the control plane never shows: secrets.
	Hide func(P)
	// SecretVersions is where the resource keeps which versions of Secrets the control plane was given.
	SecretVersions func(R) *string
	// SecretsEvery is the time between two reads of the Secrets that resources name.
	SecretsEvery time.Duration
	// Show brings the status up to the object.
	Show func(r R, have P)
	// HasReadyCondition says that the control plane reports whether an object is ready. Until then Ready is Unknown.
	HasReadyCondition bool
	// Progresses says that After tells what is under way, in the condition Progressing.
	Progresses bool
	// HoldsData says that an object that is gone took data with it: another one of its name is not made in its place.
	HoldsData bool
	// Before runs before Want: what the object is made of may have to be made first. The object is nil where there is none.
	Before func(ctx context.Context, r R, have P) error
	// After runs once the object is as it should be.
	After func(ctx context.Context, r R, have P) error
	// Leave runs before an object is deleted, and has to be done first.
	Leave func(ctx context.Context, r R, have P) error
	// AfterDelete runs once the object is gone. The resource stays until it succeeds.
	AfterDelete func(ctx context.Context, r R) error
}

// Problem keeps a resource from being as it is written. It is told in the condition Ready.
type Problem struct {
	Reason  string
	Message string
	// Progressing is the reason of that condition meanwhile; empty: Waiting.
	Progressing string
	// Wait is when to look again though nothing has told of a change; 0: when the backstop says so.
	Wait time.Duration
}

func (p *Problem) Error() string { return p.Reason + ": " + p.Message }

// RequeueAfter is no problem: something is under way that no watch reports, so the resource is reconciled again after a time.
type RequeueAfter struct {
	// Wait is for how long; 0: as a Problem's.
	Wait time.Duration
}

func (r *RequeueAfter) Error() string { return "reconciled again in " + r.Wait.String() }

// Problemf makes one.
func Problemf(reason, format string, args ...any) *Problem {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Labels of the control plane's objects that say whose they are.
const (
	labelUID      = "sluice.dev/uid"
	labelResource = convert.LabelResource
)

// Name is what a resource is called in the control plane.
func Name(r client.Object) string {
	return convert.Name(r)
}

// resourceOf is the way back; false for a name that no resource has.
func resourceOf(name string, namespaced bool) (types.NamespacedName, bool) {
	if !namespaced {
		return types.NamespacedName{Name: name}, true
	}
	namespace, name, whole := strings.Cut(name, ".")
	return types.NamespacedName{Namespace: namespace, Name: name}, whole
}

// meta is the head of the object that stands for a resource.
func meta(r client.Object) *pb.ObjectMeta {
	return &pb.ObjectMeta{Name: Name(r), Labels: map[string]string{
		labelUID: string(r.GetUID()), labelResource: strings.TrimPrefix(r.GetNamespace()+"/"+r.GetName(), "/"),
	}}
}

// Find reads the resource of a kind by the name it has in the control plane; nil: there is none.
func Find(ctx context.Context, reader client.Reader, kind, name string) v1alpha1.Resource {
	key, ok := resourceOf(name, convert.Namespaced(kind))
	resource := resources()[kind]
	if !ok || resource == nil || reader.Get(ctx, key, asObject(resource)) != nil {
		return nil
	}
	return resource
}
