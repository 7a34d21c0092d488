package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/csi/attachment"
	"sluice.dev/sluice/operator/internal/csi/leftovers"
)

// Labels of the objects that this driver makes.
const (
	labelMadeBy = leftovers.LabelMadeBy
	madeBy      = leftovers.MadeBy
	// labelName is the name that CSI requested for a volume or a snapshot.
	labelName = attachment.Driver + "/name"
	// labelGatewayPool and labelPaths are on a volume: the gateway pool that exports it, and the number of gateways.
	labelGatewayPool = attachment.Driver + "/gateway-pool"
	labelPaths       = attachment.Driver + "/paths"
	// labelTarget is on a volume whose class names a Target.
	labelTarget = attachment.Driver + "/target"
	// labelTopology is on a volume: from where it can be reached.
	labelTopology = attachment.Driver + "/topology"
	// labelShares is on a Target for one volume that several nodes use: the volume's name, or noVolume.
	labelShares = attachment.Driver + "/shares"
	noVolume    = "-"
	// labelPublished, followed by a hash of a node's id without its key, is on a volume that is published to that node; its value
	// is the id.
	labelPublished = "published." + attachment.Driver + "/"
	// labelNode is on a Host, and on a Target for one node: the Kubernetes node.
	labelNode = attachment.Driver + "/node"
)

// Labels that the operator sets on objects that it maintains for a resource: the resource's uid, and its name (controller/mirror
// also defines them).
const (
	labelUID      = "sluice.dev/uid"
	labelResource = "sluice.dev/resource"
)

// Limits of names.
const (
	maxCSIName   = 128 // CSI: "size of a name"
	maxName      = 100 // a target's name becomes part of its IQN, of at most 223 bytes
	shortDigits  = 16
	objectDigits = 32
)

var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

func hash(text string, digits int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}

// objectFor returns the object's name for a name that CSI requests: the same if it is valid, as Kubernetes' are, else a hash.
func objectFor(name string) (string, error) {
	switch {
	case name == "":
		return "", status.Error(codes.InvalidArgument, "name is missing")
	case len(name) > maxCSIName:
		return "", status.Errorf(codes.InvalidArgument, "name has %d bytes, at most %d are possible", len(name), maxCSIName)
	}
	return tidy("csi-", name), nil
}

func tidy(prefix, name string) string {
	if len(name) <= maxName && objectName.MatchString(name) {
		return name
	}
	return prefix + hash(name, objectDigits)
}

// publishedTo returns the ids of the nodes to which a volume is published, from its labels.
func publishedTo(labels map[string]string) []string {
	var nodes []string
	for key, id := range labels {
		if strings.HasPrefix(key, labelPublished) {
			nodes = append(nodes, id)
		}
	}
	return nodes
}

func publishedLabel(node string) string {
	return labelPublished + hash(attachment.WithoutKey(node), shortDigits)
}
