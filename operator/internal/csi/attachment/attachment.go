// Package attachment has the information that the controller sends the node: how to reach a volume, and which device it is.
package attachment

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Driver is the name of the CSI driver.
const Driver = "csi.sluice.dev"

// TopologyKey is the label of the Kubernetes node to which a volume of a local pool is pinned.
const TopologyKey = "topology." + Driver + "/node"

// Keys of a publish context. It contains no secret, because Kubernetes stores it in the VolumeAttachment, which many users can
// read.
const (
	keyIQN     = "iqn"
	keyLUN     = "lun"
	keyNAA     = "naa"
	keyPortals = "portals"
	keyDriver  = "driver-key"
)

// maxLUN is the largest number of flat space addressing (SAM-5 §4.7.7.3).
const maxLUN = 16383

// Attachment describes how one node reaches a volume.
type Attachment struct {
	// IQN of the target.
	IQN string
	// LUN is the volume's number in the target.
	LUN int32
	// NAA is the volume's designator in hexadecimal digits (SPC-5 §7.7.6.6): 16, or 32 where an OUI is configured.
	NAA string
	// Portals are the addresses (host:port) that answered when the volume was published. The node asks them for the present
	// portals, because gateways change while a volume is attached.
	Portals []string
	// DriverKey is the driver's public key, from which the node derives its CHAP secret. Empty: the node logs in with the call's
	// secrets, or without CHAP if there are none.
	DriverKey string `json:",omitempty"`
}

// Context returns the publish context.
func (a Attachment) Context() map[string]string {
	context := map[string]string{keyIQN: a.IQN, keyLUN: strconv.Itoa(int(a.LUN)), keyNAA: a.NAA,
		keyPortals: strings.Join(a.Portals, ",")}
	if a.DriverKey != "" {
		context[keyDriver] = a.DriverKey
	}
	return context
}

var naa = regexp.MustCompile(`^([0-9a-f]{16}|[0-9a-f]{32})$`)

// Read reads a publish context. The error names the wrong key.
func Read(context map[string]string) (Attachment, error) {
	a := Attachment{IQN: context[keyIQN], NAA: context[keyNAA], DriverKey: context[keyDriver]}
	lun, err := strconv.ParseUint(context[keyLUN], 10, 16)
	a.LUN = int32(lun)
	for portal := range strings.SplitSeq(context[keyPortals], ",") {
		if portal != "" {
			a.Portals = append(a.Portals, portal)
		}
	}
	switch {
	case a.IQN == "":
		return a, missing(keyIQN)
	case err != nil || lun > maxLUN:
		return a, fmt.Errorf("publish context: %s is %q and no number from 0 to %d", keyLUN, context[keyLUN], maxLUN)
	case !naa.MatchString(a.NAA):
		return a, fmt.Errorf("publish context: %s is %q and not 16 or 32 hexadecimal digits", keyNAA, context[keyNAA])
	case len(a.Portals) == 0:
		return a, missing(keyPortals)
	}
	return a, nil
}

func missing(key string) error {
	return fmt.Errorf("publish context: %s is missing; was the volume published by %s?", key, Driver)
}

// maxNodeID is the longest node id that Kubernetes accepts, in bytes.
const maxNodeID = 192

// MaxNamesWithKey bounds the sum of the lengths of node name and initiator name, in bytes, in an id with a key.
const MaxNamesWithKey = maxNodeID - len("//") - publicKeyCharacters

// Node is a node to which volumes are published. Its id contains the initiator name and a public key, so the controller needs no
// connection to the node.
type Node struct {
	// Name of the Kubernetes node.
	Name string
	// Initiator is the name with which its iscsid logs in.
	Initiator string
	// Key is the node's public key (EncodePublicKey). Empty: the node's plugin has announced none.
	Key string
}

// ID returns the node's id: <node>/<initiator name>, and /<key> if there is one. The error states how to correct names that are
// too long.
func (n Node) ID() (string, error) {
	switch {
	case n.Name == "" || strings.Contains(n.Name, "/"):
		return "", fmt.Errorf("the node's name is %q: give --node-id", n.Name)
	case n.Initiator == "":
		return "", errors.New("the node has no initiator name: write one to /etc/iscsi/initiatorname.iscsi (`iscsi-iname` makes one)")
	}
	id := n.Name + "/" + n.Initiator
	if n.Key != "" {
		id += "/" + n.Key
	}
	if len(id) > maxNodeID {
		return "", fmt.Errorf("node name, initiator name and key have %d bytes together, and Kubernetes takes %d: shorten the name "+
			"in /etc/iscsi/initiatorname.iscsi", len(id), maxNodeID)
	}
	return id, nil
}

// ParseNode reads an id. An initiator name has no slash (RFC 7143 §4.2.7.2).
func ParseNode(id string) (Node, error) {
	name, rest, ok := strings.Cut(id, "/")
	initiator, key, keyed := strings.Cut(rest, "/")
	if !ok || name == "" || initiator == "" || keyed && key == "" {
		return Node{}, fmt.Errorf("node id %q is not <node>/<initiator name>[/<key>], as this driver's NodeGetInfo gives it", id)
	}
	return Node{Name: name, Initiator: initiator, Key: key}, nil
}

// WithoutKey returns the id that the node had before it announced its key.
func WithoutKey(id string) string {
	node, err := ParseNode(id)
	if err != nil {
		return id
	}
	return node.Name + "/" + node.Initiator
}
