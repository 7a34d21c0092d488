// Package node serves CSI's Node service: it logs in to a volume's target, puts a device together out of its paths, makes sure that
// it is the right one, and mounts it. What it has begun stands in a file before it begins: a plugin that was restarted, on a
// machine that may have been, finds what to take back.
package node

import (
	"context"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"sluice.dev/sluice/operator/internal/csi/host"
	"sluice.dev/sluice/operator/internal/csi/inflight"
)

// maxVolumes of a node: what Linux hosts are known to do well.
const maxVolumes = 256

// Service is CSI's Node service.
type Service struct {
	csi.UnimplementedNodeServer
	name  string
	host  host.Host
	state *store
	// Where the kernel and udev show what there is; elsewhere in tests only. The mount table is the calling thread's: it may be
	// in the machine's namespaces while the process is not.
	sysfs, udevData, mountTable, initiatorFile string
	busy                                       inflight.Calls
	// logins are of a target at a time one: a logout must not overtake a login.
	logins sync.Mutex
	// portals that targets had when they were last asked; asked are targets that Keep shall look at.
	portals counts
	asked   chan string
	// discoveries holds a lock for each portal: open-iscsi has one discovery record of a portal.
	discoveries sync.Map
	// keys guards the making of the node's key, and told, the id that kubelet was told last.
	keys sync.Mutex
	told string
}

// New makes the service of a Kubernetes node; state is a directory on the machine that outlives the container.
func New(name string, machine host.Host, state string) (*Service, error) {
	kept, err := openStore(state)
	if err != nil {
		return nil, err
	}
	return &Service{name: name, host: machine, state: kept, sysfs: "/sys", udevData: "/run/udev/data",
		mountTable: "/proc/thread-self/mountinfo", initiatorFile: initiatorFile, asked: make(chan string, maxVolumes)}, nil
}

// Works says what keeps the service from working.
func (s *Service) Works(context.Context) error {
	_, err := s.initiator()
	return err
}

// NodeGetCapabilities implements csi.NodeServer.
func (s *Service) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, capability := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{
			Rpc: &csi.NodeServiceCapability_RPC{Type: capability}}})
	}
	return response, nil
}
