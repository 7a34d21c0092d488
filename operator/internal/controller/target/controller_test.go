package target

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

func TestATargetWithoutANameHasThatOfItsNamespaceAndResource(t *testing.T) {
	for given, wanted := range map[string]string{"": "iqn.2026-11.dev.sluice:shop.db", "iqn.2026-11.example:db": "iqn.2026-11.example:db"} {
		r := &v1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Spec: v1alpha1.TargetSpec{IQN: given}}
		made, err := want(t.Context(), r, nil)
		if err != nil || made.GetSpec().GetIqn() != wanted {
			t.Errorf("iqn %q makes %q, not %q (%v)", given, made.GetSpec().GetIqn(), wanted, err)
		}
	}
}
