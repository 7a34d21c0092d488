// Package node serves CSI's Node service. It logs in to a volume's target, builds a device from its paths, verifies that it is
// the right one, and mounts it. Before each operation begins it is recorded in a file. So a plugin that was restarted, even with
// its machine, finds what it must undo.
package node

import (
	"context"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"sluice.dev/sluice/operator/internal/csi/host"
	"sluice.dev/sluice/operator/internal/csi/inflight"
)

// maxVolumes of a node: the number that Linux hosts are known to support well.
const maxVolumes = 256

// Service is CSI's Node service.
type Service struct {
	csi.UnimplementedNodeServer
	name  string
	host  host.Host
	state *store
	// Paths at which the kernel and udev show their state; other ones in tests only. The mount table is that of the calling
	// thread, which may be in the machine's namespaces while the process is not.
	sysfs, udevData, mountTable, initiatorFile string
	busy                                       inflight.Calls
	// logins serializes logins and logouts, because a logout must not overtake a login of the same target.
	logins sync.Mutex
	// portals counts the portals of targets at the last discovery; asked has the targets that Keep must check.
	portals counts
	asked   chan string
	// discoveries has a lock for each portal: open-iscsi has one discovery record for a portal.
	discoveries sync.Map
	// keys guards the creation of the node's key, and announcedID, the id that kubelet last received.
	keys        sync.Mutex
	announcedID string
	// nodeDatabases are the folders of node records; other ones in tests only.
	nodeDatabases []string
	// boot identifies the machine's present boot.
	boot string
}

// New returns the service of a Kubernetes node. state is a directory on the machine that outlives the container.
func New(name string, machine host.Host, state string) (*Service, error) {
	kept, err := openStore(state)
	if err != nil {
		return nil, err
	}
	boot, err := readBoot()
	if err != nil {
		return nil, err
	}
	return &Service{name: name, host: machine, state: kept, boot: boot, sysfs: "/sys", udevData: "/run/udev/data",
		mountTable: "/proc/thread-self/mountinfo", initiatorFile: initiatorFile, nodeDatabases: nodeDatabases,
		asked: make(chan string, maxVolumes)}, nil
}

// Works returns the error that prevents the service from working.
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
