package initiator

import (
	"reflect"
	"testing"
)

func TestPortalsBelongToTheTargetBeforeThemInTheOrderShown(t *testing.T) {
	shown, err := parseTargets([]byte("TargetName=iqn.a\x00TargetAddress=192.0.2.2:3260,2\x00TargetAddress=192.0.2.1:3260,1\x00" +
		"TargetName=iqn.b\x00\x00"))
	want := []Shown{{"iqn.a", []string{"192.0.2.2:3260,2", "192.0.2.1:3260,1"}}, {Target: "iqn.b"}}
	if err != nil || !reflect.DeepEqual(shown, want) {
		t.Errorf("%v, %v", shown, err)
	}
	if _, err := parseTargets([]byte("TargetAddress=192.0.2.2:3260,2\x00")); err == nil {
		t.Error("an address of no target was taken")
	}
}
