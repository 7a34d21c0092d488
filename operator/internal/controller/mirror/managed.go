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

// Managed has the properties of one kind of managed resource: R is the custom resource, P the control plane's object. Nil
// functions are not called.
type Managed[R v1alpha1.Resource, P Object] struct {
	Noun Noun[P]
	// Want returns the complete object that the control plane should have, including defaults. The caller sets its name and
	// labels.
	Want func(ctx context.Context, r R, secrets *SecretReader) (P, error)
	// Hide removes the fields that the control plane never shows from the wanted object: secrets.
	Hide func(P)
	// SecretVersions returns the field of the resource with the versions of Secrets that the control plane has.
	SecretVersions func(R) *string
	// SecretsEvery is the time between two reads of the Secrets that resources name.
	SecretsEvery time.Duration
	// Show updates the status from the object.
	Show func(r R, have P)
	// HasReadyCondition: the control plane reports whether an object is ready. Until it does, Ready is Unknown.
	HasReadyCondition bool
	// Progresses: After sets the condition Progressing.
	Progresses bool
	// HoldsData: a deleted object also lost its data, so no other object of its name is created in its place.
	HoldsData bool
	// Before runs before Want, because other objects may be needed first. The object is nil if there is none.
	Before func(ctx context.Context, r R, have P) error
	// After runs once the object is as wanted.
	After func(ctx context.Context, r R, have P) error
	// Leave runs before an object is deleted, and must succeed first.
	Leave func(ctx context.Context, r R, have P) error
	// AfterDelete runs once the object was deleted. The resource stays until it succeeds.
	AfterDelete func(ctx context.Context, r R) error
}

// Problem prevents a resource from reaching its specification. The condition Ready reports it.
type Problem struct {
	Reason  string
	Message string
	// Progressing is the reason of that condition in the meantime; empty: Waiting.
	Progressing string
	// Wait is the time until the next reconciliation without a reported change; 0: until the regular one.
	Wait time.Duration
}

func (p *Problem) Error() string { return p.Reason + ": " + p.Message }

// RequeueAfter is no problem: an operation that no watch reports is in progress, so the resource is reconciled again after a
// time.
type RequeueAfter struct {
	// Wait is that time; 0: as for a Problem.
	Wait time.Duration
}

func (r *RequeueAfter) Error() string { return "reconciled again in " + r.Wait.String() }

// Problemf returns a Problem with a formatted message.
func Problemf(reason, format string, args ...any) *Problem {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Labels of the control plane's objects that name their resource.
const (
	labelUID      = "sluice.dev/uid"
	labelResource = convert.LabelResource
)

// Name returns the name of a resource's object in the control plane.
func Name(r client.Object) string {
	return convert.Name(r)
}

// resourceOf is the inverse of Name; false for a name that no resource has.
func resourceOf(name string, namespaced bool) (types.NamespacedName, bool) {
	if !namespaced {
		return types.NamespacedName{Name: name}, true
	}
	namespace, name, whole := strings.Cut(name, ".")
	return types.NamespacedName{Namespace: namespace, Name: name}, whole
}

// meta returns the metadata of a resource's object.
func meta(r client.Object) *pb.ObjectMeta {
	return &pb.ObjectMeta{Name: Name(r), Labels: map[string]string{
		labelUID: string(r.GetUID()), labelResource: strings.TrimPrefix(r.GetNamespace()+"/"+r.GetName(), "/"),
	}}
}

// Find reads the resource of a kind by its name in the control plane; nil: there is none.
func Find(ctx context.Context, reader client.Reader, kind, name string) v1alpha1.Resource {
	key, ok := resourceOf(name, convert.Namespaced(kind))
	resource := resources()[kind]
	if !ok || resource == nil || reader.Get(ctx, key, asObject(resource)) != nil {
		return nil
	}
	return resource
}
