package model

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of the access to a storage pool.
const (
	MaxPoolGatewayPools = 64
	MaxAdoptableImages  = 256
	maxImageName        = 255
)

// validateAccess checks the gateway pools and adoptable images that a pool lists.
func (p *StoragePool) validateAccess() Violations {
	var found Violations
	pools, images := p.Spec.GatewayPools, p.Spec.AdoptableImages
	if p.Spec.Local != nil && len(pools) > 0 {
		found.Add("spec.gatewayPools", "is for pools in Ceph: the gateways of its node reach a local pool")
	}
	if p.Spec.Local != nil && len(images) > 0 {
		found.Add("spec.adoptableImages", "is for pools in Ceph: a local pool has no images to adopt")
	}
	if len(pools) > MaxPoolGatewayPools {
		found.Addf("spec.gatewayPools", "has %d entries, at most %d are possible", len(pools), MaxPoolGatewayPools)
	}
	for i, name := range pools {
		if !ValidName(name) || slices.Contains(pools[:i], name) {
			found.Addf(fmt.Sprintf("spec.gatewayPools[%d]", i), "%.80q is no name of a GatewayPool, or is given twice", name)
		}
	}
	if len(images) > MaxAdoptableImages {
		found.Addf("spec.adoptableImages", "has %d entries, at most %d are possible", len(images), MaxAdoptableImages)
	}
	for i, name := range images {
		if name == "" || len(name) > maxImageName || strings.ContainsAny(name, "/@\x00") || slices.Contains(images[:i], name) {
			found.Addf(fmt.Sprintf("spec.adoptableImages[%d]", i), "%.80q is no name of an image or pattern of 1 to %d bytes "+
				"without / and @, or is given twice", name, maxImageName)
		}
	}
	return found
}

// Adoptable reports whether the pool lists an image. A pattern never matches a name that Sluice itself gives to images: otherwise
// the list would include the data of retained volumes and of other objects.
func (p *StoragePool) Adoptable(image string) bool {
	return slices.ContainsFunc(p.Spec.AdoptableImages, func(listed string) bool {
		return listed == image || ImageOwner(image) == "" && matchesPattern(listed, image)
	})
}

// ImageOwner returns the uid in the name of an image that Sluice made: `volume-UID` or `snapshot-UID`; empty: Sluice did not make
// the image.
func ImageOwner(image string) string {
	for _, prefix := range []string{"volume-", "snapshot-"} {
		if uid, named := strings.CutPrefix(image, prefix); named {
			return uid
		}
	}
	return ""
}

// matchesPattern compares a name with a pattern, in which `*` matches any number of characters, including none.
func matchesPattern(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	rest, begins := strings.CutPrefix(name, parts[0])
	if len(parts) == 1 || !begins {
		return pattern == name
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
