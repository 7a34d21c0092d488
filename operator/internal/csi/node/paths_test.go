package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// The last poll may begin before the time is over and end after it. Then its failure is only a timeout.
func TestATimeoutReportsTheMissingStateAndNotTheLastError(t *testing.T) {
	late := errors.New("not done in time")
	for name, last := range map[string]struct {
		missing string
		err     error
	}{"an error": {"", late}, "something missing": {late.Error(), nil}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			looks := 0
			err := until(ctx, func() (string, error) {
				if looks++; looks == 1 {
					return "map in use", nil
				}
				end()
				return last.missing, last.err
			})
			if err == nil || !strings.Contains(err.Error(), "map in use") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if err := until(t.Context(), func() (string, error) { return "", late }); !errors.Is(err, late) {
		t.Errorf("an error while there is time: %v", err)
	}
}
