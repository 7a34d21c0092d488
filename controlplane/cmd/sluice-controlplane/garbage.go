package main

import (
	"os"
	"runtime"
)

// spareGarbage is how much memory may be garbage beyond what Go allows by itself, which is as much as is in use. In use are a few dozen
// MiB, so that a failover of hundreds of volumes was collected several times over, when there is no processor to spare.
const spareGarbage = 128 << 20

// collectLess lets garbage wait until the returned function is called, unless whoever runs this has said how much may. What it allocates
// counts as memory in use and is none: nobody writes to it, so the system never gives pages for it.
func collectLess() (end func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	ballast := make([]byte, spareGarbage)
	return func() { runtime.KeepAlive(ballast) }
}
