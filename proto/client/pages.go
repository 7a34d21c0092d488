package client

import (
	"context"
	"errors"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// ErrRepeatedPage ends an iteration whose server answers a page token with the same token, which would go on without end.
var ErrRepeatedPage = errors.New("the control plane returned the token of the page that was asked for: the list has no end")

// ListRequest is a request for a page of a list, such as *sluicev1.ListVolumesRequest.
type ListRequest interface {
	proto.Message
	GetOptions() *pb.ListOptions
}

// ListResponse is one page of a list, such as *sluicev1.ListVolumesResponse. An empty token marks the last page.
type ListResponse interface {
	GetNextPageToken() string
}

// Pages iterates over the pages of a list. It begins with the page that the request's options name, without a token with the first,
// and does not change the request, which must not be nil. Each page costs one call when the iteration reaches it. The page size is
// that of the request's options: 1 to 1000 elements; 0, or no options: 500.
//
// After an error, which comes with an empty page, the iteration is over. Errors: those of the call; ErrRepeatedPage.
func Pages[Q ListRequest, R ListResponse](ctx context.Context, list func(context.Context, Q, ...grpc.CallOption) (R, error), request Q,
) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		var none R
		token := request.GetOptions().GetPageToken()
		for {
			page, err := list(ctx, withToken(request, token))
			if err != nil {
				yield(none, err)
				return
			}
			if !yield(page, nil) || page.GetNextPageToken() == "" {
				return
			}
			if page.GetNextPageToken() == token {
				yield(none, ErrRepeatedPage)
				return
			}
			token = page.GetNextPageToken()
		}
	}
}

// All iterates over the elements of all pages of a list, as Pages over the pages. `elements` takes them out of a page, for example
// (*sluicev1.ListVolumesResponse).GetVolumes. An object that is created, changed or deleted during the iteration may be missing, or
// be returned as it was before.
func All[Q ListRequest, R ListResponse, T any](ctx context.Context, list func(context.Context, Q, ...grpc.CallOption) (R, error), request Q,
	elements func(R) []T,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for page, err := range Pages(ctx, list, request) {
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, element := range elements(page) {
				if !yield(element, nil) {
					return
				}
			}
		}
	}
}

// Collect returns all elements of an iteration, nil if there are none. After an error it returns no element: a part of a list could be
// mistaken for the whole.
func Collect[T any](elements iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for element, err := range elements {
		if err != nil {
			return nil, err
		}
		all = append(all, element)
	}
	return all, nil
}

// withToken is a copy of a request that asks for the page of a token.
func withToken[Q ListRequest](request Q, token string) Q {
	next := proto.Clone(request).(Q)
	options := next.GetOptions()
	if options == nil {
		options = &pb.ListOptions{}
		reflected := next.ProtoReflect()
		reflected.Set(reflected.Descriptor().Fields().ByName("options"), protoreflect.ValueOfMessage(options.ProtoReflect()))
	}
	options.PageToken = token
	return next
}
