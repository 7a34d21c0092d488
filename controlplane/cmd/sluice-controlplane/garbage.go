package main

import (
	"os"
	"runtime"
)

// spareGarbage is the memory, in bytes, that may be garbage in addition to Go's default, which is the size of the live heap. That
// is only a few dozen MiB, so a failover of hundreds of volumes caused several collections when processor time was scarce.
const spareGarbage = 128 << 20

// collectLess raises the limit of garbage until the returned function is called, unless the environment sets GOGC or GOMEMLIMIT.
// Its allocation counts as live memory but uses none: it is never written, so the system allocates no pages for it.
func collectLess() (end func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	ballast := make([]byte, spareGarbage)
	return func() { runtime.KeepAlive(ballast) }
}
