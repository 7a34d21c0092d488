package main

import pb "sluice.dev/sluice/proto/sluice/v1"

// ownerName is the name of the gateway that owns a volume, "-" if there is none.
func ownerName(status *pb.VolumeStatus) string {
	return gatewayName(status.GetOwner(), status.GetOwnerGateway())
}

// gatewayName returns a name. It is the number of a gateway that has none: one that was deleted, or any gateway if the control plane is
// of an earlier release, which sends numbers only.
func gatewayName(name string, gateway uint32) string {
	switch {
	case name != "":
		return name
	case gateway != 0:
		return "number " + number(gateway)
	}
	return "-"
}
