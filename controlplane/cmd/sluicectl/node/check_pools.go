package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/api/resource"
)

// leastFree is the free space that a new pool needs at least.
const leastFree = 1 << 30

// hidden are directories that the units of the gateways do not see, or cannot write (gateway/packaging/service.conf).
var hidden = []string{"/boot", "/dev", "/efi", "/etc", "/home", "/proc", "/root", "/run", "/sys", "/tmp", "/usr", "/var/tmp"}

func (p *Preflight) checkPools(context.Context) (string, []Problem) {
	if !p.Earlier {
		p.Plan.Pools = nil
		for _, directory := range p.Options.Pools {
			p.Plan.Pools = append(p.Plan.Pools, filepath.Clean(directory))
		}
	}
	var facts []string
	var problems []Problem
	for i, directory := range p.Plan.Pools {
		if slices.Contains(p.Plan.Pools[:i], directory) {
			problems = append(problems, one("give each directory once", "--pool names %s twice", directory)...)
			continue
		}
		fact, found := p.checkPool(directory)
		problems = append(problems, found...)
		if fact != "" {
			facts = append(facts, fact)
		}
	}
	if len(p.Plan.Pools) == 0 {
		return "none: this node has gateways only", nil
	}
	return strings.Join(facts, "; "), problems
}

func (p *Preflight) checkPool(directory string) (string, []Problem) {
	if !filepath.IsAbs(directory) {
		return "", one("give an absolute path, for example --pool /srv/sluice", "--pool %s is not an absolute path", directory)
	}
	for _, prefix := range hidden {
		if directory == prefix || strings.HasPrefix(directory, prefix+"/") {
			return "", one("choose a directory elsewhere, for example /srv/sluice", "the services cannot use %s: systemd hides or protects %s from them",
				directory, prefix)
		}
	}
	existing := directory
	for !p.System.exists(existing) {
		existing = filepath.Dir(existing)
	}
	state, err := os.Stat(p.System.path(existing))
	if err != nil || !state.IsDir() {
		return "", one("choose another directory, or remove "+existing, "%s is not a directory", existing)
	}
	of, err := p.System.FileSystem(p.System.path(existing))
	if err != nil {
		return "", one("correct the file system", "the file system of %s cannot be read: %v", directory, err)
	}
	problems := p.wrongParents(directory, existing)
	if of.Type != "xfs" && of.Type != "ext4" {
		problems = append(problems, one("mount an XFS (mkfs.xfs), or an ext4, at "+directory, "the file system of %s is %s, and a pool needs XFS or ext4",
			directory, of.Type)...)
	}
	free := resource.NewQuantity(int64(of.FreeBytes>>20<<20), resource.BinarySI)
	if of.FreeBytes < leastFree && !p.Earlier {
		problems = append(problems, one("free some space, or choose a larger file system", "%s has %v of free space, and a pool needs 1Gi at least", directory, free)...)
	}
	if existing == directory && !p.Earlier {
		problems = append(problems, p.inUse(directory)...)
	}
	if len(problems) > 0 {
		return "", problems
	}
	reflink := "snapshots and clones share blocks"
	if !of.Reflink {
		reflink = "without reflink, so without snapshots and clones"
	}
	return fmt.Sprintf("%s on %s (%s), %v free", directory, of.Type, reflink, free), nil
}

// inUse refuses a directory that has files: they may be of another pool.
func (p *Preflight) inUse(directory string) []Problem {
	entries, err := os.ReadDir(p.System.path(directory))
	if err != nil {
		return one("correct the directory", "%s cannot be read: %v", directory, err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "lost+found" })
	if len(entries) > 0 {
		return one("give an empty directory", "%s has files already, such as %s", directory, entries[0].Name())
	}
	return nil
}

// wrongParents refuses a directory that the account of the services cannot reach.
func (p *Preflight) wrongParents(directory, existing string) []Problem {
	user, group, err := p.System.Account()
	if err != nil {
		return one("install the packages again", "%v", err)
	}
	if existing == directory {
		existing = filepath.Dir(existing) // the directory itself will belong to the account
	}
	for parent := existing; ; parent = filepath.Dir(parent) {
		state, err := os.Stat(p.System.path(parent))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return one("correct the directory", "%s cannot be read: %v", parent, err)
		}
		if err == nil && !canEnter(state, user, group) {
			return one("permit it: chmod o+x "+parent, "the account %s cannot enter %s (mode %04o)", account, parent, state.Mode().Perm())
		}
		if parent == "/" {
			return nil
		}
	}
}

func canEnter(state fs.FileInfo, user, group int) bool {
	mode := state.Mode().Perm()
	of, known := state.Sys().(*syscall.Stat_t)
	switch {
	case known && int(of.Uid) == user:
		return mode&0o100 != 0
	case known && int(of.Gid) == group:
		return mode&0o010 != 0
	}
	return mode&0o001 != 0
}
