package controller

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/labels"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// parameters of a StorageClass.
type parameters struct {
	pool string // StoragePool of the volumes
	// poolSelector has labels of the StoragePools that volumes can be in. Unset: `pool` names it, or there is only one.
	poolSelector map[string]string
	gatewayPool  string // GatewayPool whose gateways export them; unset: the only one
	paths        string // gateways of a path set; unset: the control plane's default
	target       string // Target in which volumes become LUNs; unset: one for each node and pool
	reclaim      pb.ReclaimPolicy
	blockSize    int32
	writeCache   pb.WriteCache
	topology     string
}

// Values of the parameter topology.
const (
	topologyNode = "node" // pods run on the node of a local pool; the default
	topologyAny  = "any"  // pods run anywhere; their I/O crosses the network
)

// Parameters of CSI's sidecars have this prefix. The driver ignores them.
const sidecarPrefix = "csi.storage.k8s.io/"

const maxPaths = 32

func readParameters(given map[string]string) (p parameters, err error) {
	p.topology = topologyNode
	for key, value := range given {
		var wrong error
		switch key {
		case "pool":
			p.pool = value
		case "poolSelector":
			if p.poolSelector, wrong = labels.ConvertSelectorToLabelsMap(value); wrong != nil || len(p.poolSelector) == 0 {
				return p, invalid("parameter poolSelector is %q and not `LABEL=VALUE,...`", value)
			}
		case "gatewayPool":
			p.gatewayPool = value
		case "target":
			p.target = value
		case "paths":
			var n int
			n, wrong = strconv.Atoi(value)
			if wrong != nil || n < 1 || n > maxPaths {
				return p, invalid("parameter paths is %q and no number from 1 to %d", value, maxPaths)
			}
			p.paths = value
		case "reclaim":
			p.reclaim, err = choice(key, value, map[string]pb.ReclaimPolicy{"delete": pb.ReclaimPolicy_RECLAIM_POLICY_DELETE,
				"retain": pb.ReclaimPolicy_RECLAIM_POLICY_RETAIN, "trash": pb.ReclaimPolicy_RECLAIM_POLICY_TRASH})
		case "blockSize":
			p.blockSize, err = choice(key, value, map[string]int32{"512": 512, "4096": 4096})
		case "writeCache":
			p.writeCache, err = choice(key, value, map[string]pb.WriteCache{"enabled": pb.WriteCache_WRITE_CACHE_ENABLED,
				"disabled": pb.WriteCache_WRITE_CACHE_DISABLED})
		case "topology":
			p.topology, err = choice(key, value, map[string]string{topologyNode: topologyNode, topologyAny: topologyAny})
		default:
			if !strings.HasPrefix(key, sidecarPrefix) {
				return p, invalid("unknown parameter %q; known are pool, poolSelector, target, gatewayPool, paths, reclaim, blockSize, "+
					"writeCache, topology", key)
			}
		}
		if err != nil {
			return p, err
		}
	}
	if p.pool != "" && p.poolSelector != nil {
		return p, invalid("the class has the parameters pool and poolSelector: it can have one of them")
	}
	return p, nil
}

func choice[T any](key, value string, of map[string]T) (T, error) {
	chosen, ok := of[strings.ToLower(value)]
	if !ok {
		var words []string
		for word := range of {
			words = append(words, word)
		}
		slices.Sort(words)
		return chosen, invalid("parameter %s is %q; possible: %s", key, value, strings.Join(words, ", "))
	}
	return chosen, nil
}

// complete sets the parameters that the class leaves open, if there is only one choice.
func (s *Service) complete(ctx context.Context, p *parameters) error {
	if p.pool == "" && p.poolSelector == nil {
		pools, err := s.poolsOf(ctx, *p)
		if err != nil {
			return err
		}
		var names []string
		for _, pool := range pools {
			names = append(names, pool.GetMeta().GetName())
		}
		if p.pool, err = only("pool", names); err != nil {
			return err
		}
	}
	if p.target != "" {
		target, err := s.targets.GetTarget(ctx, &pb.GetTargetRequest{Name: p.target})
		if err != nil {
			return status.Errorf(codes.InvalidArgument, "parameter target: %s", status.Convert(clientError(err)).Message())
		}
		if why := keptByResource(target.GetTarget()); why != "" {
			return invalid("parameter target: %s", why)
		}
		p.gatewayPool = target.GetTarget().GetSpec().GetGatewayPool()
	}
	if p.gatewayPool == "" {
		var names []string
		for pool, err := range client.All(ctx, s.gatewayPools.ListGatewayPools, &pb.ListGatewayPoolsRequest{},
			(*pb.ListGatewayPoolsResponse).GetGatewayPools) {
			if err != nil {
				return clientError(err)
			}
			names = append(names, pool.GetMeta().GetName())
		}
		var err error
		p.gatewayPool, err = only("gatewayPool", names)
		return err
	}
	return nil
}

func only(parameter string, names []string) (string, error) {
	if len(names) == 1 {
		return names[0], nil
	}
	return "", invalid("the parameter %s of the class is missing, and there is not just one: %s", parameter,
		strings.Join(names, ", "))
}

// labels returns the labels that a volume gets from its class.
func (p parameters) labels(name string) map[string]string {
	labels := map[string]string{labelMadeBy: madeBy, labelName: name, labelGatewayPool: p.gatewayPool, labelTopology: p.topology}
	if p.target != "" {
		labels[labelTarget] = p.target
	}
	if p.paths != "" {
		labels[labelPaths] = p.paths
	}
	return labels
}
