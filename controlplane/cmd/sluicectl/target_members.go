package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// waitsForGateways is the help of --wait of the commands that change a target.
const waitsForGateways = "wait until its gateways have applied the change"

func addLun(k *kind, g *globals) *cobra.Command {
	command := &cobra.Command{
		Use: "add-lun TARGET NUMBER=VOLUME...", Short: "Map volumes to LUN numbers of a target", Args: cobra.MinimumNArgs(2),
		Long: "Map volumes to LUN numbers of a target, each as NUMBER=VOLUME or NUMBER=VOLUME,ro. A LUN that is already mapped so stays, " +
			"and without any change the command prints \"unchanged\". Hosts see a new LUN after a rescan.",
	}
	return modifyCommand(k, g, command, waitsForGateways+", and the volumes are served", func(arguments []string) (modification, error) {
		var luns []*pb.TargetLun
		for _, text := range arguments {
			lun, err := readLun(text)
			if err != nil {
				return modification{}, err
			}
			luns = append(luns, lun)
		}
		return modification{
			fields: []string{"spec.luns"}, missing: unappliedTarget,
			apply: changing(func(target *pb.Target) ([]string, error) { return mapLuns(target, luns) }),
			needs: func(ctx context.Context, connection *grpc.ClientConn) ([]goal, error) {
				return servedVolumes(ctx, connection, luns)
			},
		}, nil
	})
}

// mapLuns adds LUNs to a target. It refuses a number of another volume, and a volume with another number: hosts that know the device
// would read and write the wrong one.
func mapLuns(target *pb.Target, luns []*pb.TargetLun) ([]string, error) {
	spec, name := target.GetSpec(), target.GetMeta().GetName()
	var changes []string
	for _, lun := range luns {
		at := slices.IndexFunc(spec.GetLuns(), func(have *pb.TargetLun) bool {
			return have.GetId() == lun.GetId() || have.GetVolume() == lun.GetVolume()
		})
		if at < 0 {
			spec.Luns = append(spec.Luns, lun)
			changes = append(changes, "LUN "+lunText(lun)+" added")
			continue
		}
		have := spec.GetLuns()[at]
		switch {
		case have.GetId() != lun.GetId():
			return nil, status.Errorf(codes.FailedPrecondition, "LUN %s: volume %s is LUN %d of target %s already; `sluicectl target remove-lun` "+
				"removes that", lunText(lun), lun.GetVolume(), have.GetId(), name)
		case have.GetVolume() != lun.GetVolume():
			return nil, status.Errorf(codes.FailedPrecondition, "LUN %s: LUN %d of target %s is volume %s; take another number", lunText(lun),
				have.GetId(), name, have.GetVolume())
		case !proto.Equal(have, lun):
			spec.Luns[at] = lun
			changes = append(changes, fmt.Sprintf("LUN %s is %s now", lunText(have), lunText(lun)))
		}
	}
	return changes, nil
}

// lunText is the text of which readLun makes the LUN.
func lunText(lun *pb.TargetLun) string {
	text := fmt.Sprintf("%d=%s", lun.GetId(), lun.GetVolume())
	if lun.GetReadOnly() {
		text += ",ro"
	}
	return text
}

func removeLun(k *kind, g *globals) *cobra.Command {
	command := &cobra.Command{
		Use: "remove-lun TARGET NUMBER...", Short: "Remove LUNs from a target, by number; the volumes stay", Args: cobra.MinimumNArgs(2),
		Long: "Remove LUNs from a target, by number. The volumes and their data stay. First remove the devices from the hosts: commands to a " +
			"removed LUN fail. For 24 hours the number can be given to the same volume only, because hosts may still have its device. " +
			"Without any change the command prints \"unchanged\".",
	}
	return modifyCommand(k, g, command, waitsForGateways, func(arguments []string) (modification, error) {
		var numbers []int32
		for _, text := range arguments {
			number, err := strconv.ParseInt(text, 10, 32)
			if err != nil {
				return modification{}, usagef("LUN %q: write its number, as in 0", text)
			}
			numbers = append(numbers, int32(number))
		}
		return modification{fields: []string{"spec.luns"}, missing: unappliedTarget,
			apply: changing(func(target *pb.Target) ([]string, error) {
				return removeLuns(target, func(lun *pb.TargetLun) bool { return slices.Contains(numbers, lun.GetId()) }), nil
			})}, nil
	})
}

// removeLuns removes those LUNs of a target, and returns each change as text.
func removeLuns(target *pb.Target, those func(*pb.TargetLun) bool) (changes []string) {
	target.Spec.Luns = slices.DeleteFunc(target.GetSpec().GetLuns(), func(lun *pb.TargetLun) bool {
		removed := those(lun)
		if removed {
			changes = append(changes, "LUN "+lunText(lun)+" removed")
		}
		return removed
	})
	return changes
}

func addHost(k *kind, g *globals) *cobra.Command {
	command := &cobra.Command{
		Use: "add-host TARGET HOST...", Short: "Permit hosts to log in to a target", Args: cobra.MinimumNArgs(2),
		Long: "Permit hosts to log in to a target. A host that may already log in stays, and without any change the command prints " +
			"\"unchanged\".",
	}
	return modifyCommand(k, g, command, waitsForGateways, func(hosts []string) (modification, error) {
		return modification{fields: []string{"spec.hosts"}, missing: unappliedTarget,
			apply: changing(func(target *pb.Target) ([]string, error) {
				var changes []string
				for _, host := range hosts {
					if !slices.Contains(target.GetSpec().GetHosts(), host) {
						target.Spec.Hosts = append(target.Spec.Hosts, host)
						changes = append(changes, "host "+host+" added")
					}
				}
				return changes, nil
			})}, nil
	})
}

func removeHost(k *kind, g *globals) *cobra.Command {
	command := &cobra.Command{
		Use: "remove-host TARGET HOST...", Short: "Permit hosts no longer to log in to a target; their sessions end", Args: cobra.MinimumNArgs(2),
		Long: "Permit hosts no longer to log in to a target. The gateways end their sessions, so first remove the devices from the hosts. " +
			"Without any change the command prints \"unchanged\".",
	}
	return modifyCommand(k, g, command, waitsForGateways, func(hosts []string) (modification, error) {
		return modification{fields: []string{"spec.hosts"}, missing: unappliedTarget,
			apply: changing(func(target *pb.Target) ([]string, error) {
				var changes []string
				target.Spec.Hosts = slices.DeleteFunc(target.GetSpec().GetHosts(), func(host string) bool {
					removed := slices.Contains(hosts, host)
					if removed {
						changes = append(changes, "host "+host+" removed")
					}
					return removed
				})
				return changes, nil
			})}, nil
	})
}
