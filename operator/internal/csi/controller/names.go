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
	// labelName is the name that CSI gave a volume or a snapshot.
	labelName = attachment.Driver + "/name"
	// labelGatewayPool and labelPaths are of a volume: which gateways export it, and how many.
	labelGatewayPool = attachment.Driver + "/gateway-pool"
	labelPaths       = attachment.Driver + "/paths"
	// labelTarget is of a volume whose class names a Target.
	labelTarget = attachment.Driver + "/target"
	// labelTopology is of a volume: who may reach it.
	labelTopology = attachment.Driver + "/topology"
	// labelShares is of a Target for one volume that several nodes reach: the volume's name, or nobodys.
	labelShares = attachment.Driver + "/shares"
	nobodys     = "-"
	// labelPublished, followed by a hash of a node's id without its key, is of a volume that is published to it; its value is the id.
	labelPublished = "published." + attachment.Driver + "/"
	// labelNode is of a Host, and of a Target that one node has: the Kubernetes node.
	labelNode = attachment.Driver + "/node"
)

// Labels by which the operator marks what it keeps as a resource says: that one's uid, and its name (controller/mirror has them, too).
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

// objectFor is the object's name for a name that CSI gives: the same where that can be one, as Kubernetes' are, else a hash.
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

// publishedTo are the ids of the nodes that labels of a volume name.
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
