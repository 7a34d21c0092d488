package model

import "testing"

func TestAPoolIsNotInTheRecordsOfAnotherPool(t *testing.T) {
	for directory, allowed := range map[string]bool{"/srv/a": true, "/srv/.sluice-old": true, "/srv/a/.sluice": false, "/srv/.sluice/b": false} {
		pool := &StoragePool{Meta: Meta{Name: "p"}, Spec: StoragePoolSpec{Local: &LocalPool{Node: "n", Directory: directory}}}
		pool.SetDefaults()
		if found := pool.Validate(); (len(found) == 0) != allowed {
			t.Errorf("%s: %v", directory, found)
		}
	}
}
