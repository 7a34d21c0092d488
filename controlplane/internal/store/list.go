package store

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Limits of a page.
const (
	DefaultPageSize = 500
	MaxPageSize     = 1000
	// MaxPageBytes bounds the stored bytes of a page with more than one object. A client accepts messages of 4 MiB by default, and an
	// object's message is smaller than its stored form, apart from a few derived fields.
	MaxPageBytes = 1 << 20
)

// ErrPageToken means that this service did not make the page token, or that the token is too old.
var ErrPageToken = errors.New("page token: not one of ours, or too old; begin the list again without it")

// ListOptions select objects and pages; zero values mean all objects, in pages of DefaultPageSize.
type ListOptions struct {
	PageSize  int
	PageToken string
	Labels    map[string]string
}

// Page is a part of a list. All pages of a list show the store at the same version.
type Page[T model.Object] struct {
	Objects []T
	// Next is the token of the next page, empty on the last.
	Next string
	// Version of the whole list. A watch can start from it.
	Version int64
}

// List returns objects in the order of their names. Errors: ErrPageToken.
func (c *Collection[T]) List(ctx context.Context, options ListOptions) (Page[T], error) {
	size := options.PageSize
	if size <= 0 {
		size = DefaultPageSize
	}
	size = min(size, MaxPageSize)
	page := Page[T]{}
	from := c.prefix()
	if options.PageToken != "" {
		revision, after, err := c.readToken(options.PageToken)
		if err != nil {
			return page, err
		}
		page.Version, from = revision, c.key(after)+"\x00"
	}
	end := clientv3.GetPrefixRangeEnd(c.prefix())
	bytes := 0
	for {
		got, err := c.store.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(int64(size)),
			clientv3.WithRev(page.Version))
		if isCompacted(err) || errors.Is(err, rpctypes.ErrFutureRev) {
			return page, ErrPageToken
		}
		if err != nil {
			return page, fmt.Errorf("store: %w", err)
		}
		if page.Version == 0 {
			page.Version = got.Header.Revision
		}
		for i, kv := range got.Kvs {
			object, err := c.decode(string(kv.Key), kv.Value, kv.ModRevision)
			if err != nil {
				return page, err
			}
			if object.Metadata().Matches(options.Labels) {
				page.Objects = append(page.Objects, object)
				bytes += len(kv.Value)
			}
			if (len(page.Objects) == size || bytes >= MaxPageBytes) && (i < len(got.Kvs)-1 || got.More) {
				page.Next = c.makeToken(page.Version, object.Metadata().Name)
				return page, nil
			}
			from = string(kv.Key) + "\x00"
		}
		if !got.More {
			return page, nil
		}
	}
}

// All returns every object, and the version of the list.
func (c *Collection[T]) All(ctx context.Context) ([]T, int64, error) {
	var all []T
	options := ListOptions{PageSize: MaxPageSize}
	for {
		page, err := c.List(ctx, options)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, page.Objects...)
		if page.Next == "" {
			return all, page.Version, nil
		}
		options.PageToken = page.Next
	}
}

// makeToken encodes the version of the list, the kind, and the object after which the next page begins.
func (c *Collection[T]) makeToken(revision int64, name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf("%d %s %s", revision, c.kind, name)))
}

func (c *Collection[T]) readToken(token string) (int64, string, error) {
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return 0, "", ErrPageToken
	}
	parts := strings.Split(string(text), " ")
	if len(parts) != 3 || parts[1] != string(c.kind) || !model.ValidName(parts[2]) {
		return 0, "", ErrPageToken
	}
	revision, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || revision <= 0 {
		return 0, "", ErrPageToken
	}
	return revision, parts[2], nil
}
