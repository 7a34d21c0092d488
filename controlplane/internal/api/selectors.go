package api

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// withoutLabels refuses a label selector for objects that have no labels. Without the error, the response would contain all
// objects.
func withoutLabels(objects string, selector map[string]string) error {
	if len(selector) == 0 {
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "options.labelSelector: %s have no labels; leave the selector empty", objects)
}
