package api

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// listRequest is the request of any list.
type listRequest interface {
	GetOptions() *pb.ListOptions
	GetPageSize() int32
	GetPageToken() string
}

// page is the page that a request selects.
type page struct {
	// size is the maximum count of elements, 1…store.MaxPageSize.
	size int
	// token is empty for the first page; field is the field of the request that has it.
	token, field string
}

// pageOf reads the page from the fields of a request, or from its options, which clients of earlier releases use. It returns an
// INVALID_ARGUMENT that names the field if both are set and differ.
func pageOf(r listRequest) (page, error) {
	var found model.Violations
	selected := page{int(r.GetPageSize()), r.GetPageToken(), "pageToken"}
	if old := int(r.GetOptions().GetPageSize()); old != 0 {
		if selected.size != 0 && selected.size != old {
			found.Addf("pageSize", "is %d, and options.pageSize is %d: give pageSize only", selected.size, old)
		}
		selected.size = old
	}
	if old := r.GetOptions().GetPageToken(); old != "" {
		if selected.token != "" && selected.token != old {
			found.Add("pageToken", "differs from options.pageToken: give pageToken only")
		}
		selected.token, selected.field = old, "options.pageToken"
	}
	if selected.size == 0 {
		selected.size = store.DefaultPageSize
	}
	selected.size = min(selected.size, store.MaxPageSize)
	return selected, statusOf(found.Err())
}

// budget bounds the bytes of a page: clients accept messages of 4 MiB by default.
type budget struct{ used int }

// takes reports whether an element fits into the page. The first one always does.
func (b *budget) takes(element proto.Message) bool {
	before := b.used
	b.used += proto.Size(element)
	return before == 0 || b.used <= store.MaxPageBytes
}

// statusOf is the function statusOf, with the field of a refused page token.
func (p page) statusOf(err error) error {
	if errors.Is(err, store.ErrPageToken) {
		return withFields(codes.InvalidArgument, err, model.Violations{{Field: p.field, Description: err.Error()}})
	}
	return statusOf(err)
}
