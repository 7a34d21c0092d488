package kubernetes

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Error is why the plugin does not reach the control plane. Its code is that of the same problem in a call.
type Error struct {
	code codes.Code
	text string
}

func (e *Error) Error() string { return e.text }

// GRPCStatus makes status.Code return the code.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.code, e.text) }

// refused explains an error of the API server: what was tried, and what the account needs for it.
func refused(err error, what, right, namespace string) error {
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return &Error{codes.PermissionDenied, fmt.Sprintf("%s: %v. Your account needs the right to %s in namespace %s: "+
			"an administrator grants it by a Role", what, err, right, namespace)}
	case apierrors.IsNotFound(err):
		return &Error{codes.NotFound, fmt.Sprintf("%s: %v", what, err)}
	}
	return &Error{codes.Unavailable, fmt.Sprintf("%s: %v. Check the cluster: `kubectl cluster-info`", what, err)}
}
