package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func (p *Preflight) checkUser(context.Context) (string, []Problem) {
	if id := p.System.UserID(); id != 0 {
		return "", one("run the command as root: sudo sluicectl node ...", "the command runs as the user with id %d", id)
	}
	return "root", nil
}

func (p *Preflight) checkSystemd(context.Context) (string, []Problem) {
	if !p.System.exists("/run/systemd/system") {
		return "", one("boot the server with systemd, as Debian does by default", "systemd does not run on this server")
	}
	return "runs", nil
}

// packages are needed on each node, in one version.
var packages = []string{"sluice-controlplane", "sluice-gateway", "sluicectl"}

func (p *Preflight) checkPackages(ctx context.Context) (string, []Problem) {
	const remedy = "install the packages of one release: apt-get install ./sluice*.deb"
	// dpkg-query exits with 1 if it does not know one of them, and prints the others.
	printed, _ := p.System.installedVersions(ctx)
	versions := map[string]string{}
	for line := range strings.Lines(printed) {
		if words := strings.Fields(line); len(words) == 3 && words[2] == "installed" {
			versions[words[0]] = words[1]
		}
	}
	var missing, have []string
	same := true
	for _, name := range packages {
		if versions[name] == "" {
			missing = append(missing, name)
			continue
		}
		have = append(have, name+" "+versions[name])
		same = same && versions[name] == versions[packages[0]]
	}
	switch {
	case len(missing) > 0:
		return "", one(remedy, "not installed: %s", strings.Join(missing, ", "))
	case !same:
		return "", one(remedy, "the packages have different versions: %s", strings.Join(have, ", "))
	}
	return "version " + versions[packages[0]], nil
}

// The oldest kernel that the gateway supports.
const oldestMajor, oldestMinor = 6, 1

func (p *Preflight) checkKernel(context.Context) (string, []Problem) {
	release, err := p.System.Kernel()
	if err != nil {
		return "", one("see uname(2)", "the version of the kernel cannot be read: %v", err)
	}
	majorText, rest, _ := strings.Cut(release, ".")
	minorText, _, _ := strings.Cut(rest, ".")
	minorText, _, _ = strings.Cut(minorText, "-")
	major, majorErr := strconv.Atoi(majorText)
	minor, minorErr := strconv.Atoi(minorText)
	if errors.Join(majorErr, minorErr) != nil || major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		return "", one("boot the kernel of Debian 12 or a newer one", "the kernel is %s, and the gateway needs %d.%d or newer",
			release, oldestMajor, oldestMinor)
	}
	return release, nil
}

const ringSetting = "/proc/sys/kernel/io_uring_disabled"

func (p *Preflight) checkRing(context.Context) (string, []Problem) {
	// Kernels before 6.6 do not have the setting.
	setting, err := p.System.read(ringSetting)
	if err != nil {
		return "", one("see sysctl(8)", "%s cannot be read: %v", ringSetting, err)
	}
	if value := strings.TrimSpace(setting); value != "" && value != "0" {
		return "", one("permit it: echo kernel.io_uring_disabled=0 >/etc/sysctl.d/90-sluice.conf, and sysctl --system",
			"the kernel refuses io_uring to the account of the services (kernel.io_uring_disabled is %s)", value)
	}
	if err := p.System.SetUpRing(); err != nil {
		remedy := "if this is a container, permit the system calls of io_uring in its seccomp profile"
		if errors.Is(err, unix.ENOSYS) {
			remedy = "boot a kernel that is built with CONFIG_IO_URING"
		}
		return "", one(remedy, "the kernel makes no io_uring: %v", err)
	}
	return "permitted", nil
}

func (p *Preflight) checkMemlock(ctx context.Context) (string, []Problem) {
	limit, err := p.System.unitProperty(ctx, "sluice-gateway@preflight.service", "LimitMEMLOCK")
	if err != nil {
		return "", one("repair systemd, then run this command again", "the limit of the gateways cannot be read: %v", err)
	}
	if limit != "infinity" {
		return "", one("remove the setting LimitMEMLOCK: systemctl cat sluice-gateway@.service shows the file",
			"the gateways may lock %s bytes of memory only", limit)
	}
	if err := p.System.RaiseMemlock(); err != nil {
		return "", []Problem{{What: fmt.Sprintf("the server does not permit its services an unlimited amount of locked memory: %v", err), Warning: true,
			Remedy: "if this is a container, permit CAP_SYS_RESOURCE, or set its limit of locked memory to unlimited. Gateways lock their buffers"}}
	}
	return "not limited", nil
}

func (p *Preflight) checkClock(context.Context) (string, []Problem) {
	synchronized, err := p.System.ClockSynchronized()
	if err != nil || !synchronized {
		what := "the clock is not synchronized"
		if err != nil {
			what = fmt.Sprintf("the state of the clock cannot be read: %v", err)
		}
		return "", []Problem{{What: what, Warning: true,
			Remedy: "run an NTP client: apt-get install chrony. Certificates and events depend on the time"}}
	}
	return "synchronized", nil
}
