package model

import "testing"

func TestAPoolListsImagesByNameOrPatternAndNeverItsOwnByPattern(t *testing.T) {
	for _, c := range []struct {
		listed, image string
		want          bool
	}{
		{"golden", "golden", true}, {"golden", "golden2", false}, {"*", "anything", true}, {"a*", "a", true},
		{"a*c", "abc", true}, {"a*c", "ac", true}, {"a*c", "acd", false}, {"aa*aa", "aaa", false}, {"*b*", "abc", true},
		{"a*b*c", "axbyc", true}, {"a*b*c", "axyc", false},
		{"*", "volume-1", false}, {"vol*", "volume-1", false}, {"volume-1", "volume-1", true}, {"snap*", "snapshot-1", false},
	} {
		pool := &StoragePool{Spec: StoragePoolSpec{AdoptableImages: []string{c.listed}}}
		if got := pool.Adoptable(c.image); got != c.want {
			t.Errorf("%q lists %q: %v", c.listed, c.image, got)
		}
	}
}

func TestALocalPoolHasNeitherGatewayPoolsNorAdoptableImages(t *testing.T) {
	pool := &StoragePool{Meta: Meta{Name: "p"}, Spec: StoragePoolSpec{WarnPercent: 85, Local: &LocalPool{Node: "n", Directory: "/srv"},
		GatewayPools: []string{"default"}, AdoptableImages: []string{"a"}}}
	fields := map[string]bool{}
	for _, violation := range pool.Validate() {
		fields[violation.Field] = true
	}
	if !fields["spec.gatewayPools"] || !fields["spec.adoptableImages"] || len(fields) != 2 {
		t.Errorf("refused: %v", fields)
	}
}

func TestAPoolWithoutAListHasNoImageToAdopt(t *testing.T) {
	for _, image := range []string{"golden", "", "volume-1"} {
		if (&StoragePool{}).Adoptable(image) {
			t.Errorf("%q can be adopted", image)
		}
	}
}
