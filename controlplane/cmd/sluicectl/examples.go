package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// exampleNames are the names that examples use for objects of each kind.
var exampleNames = map[string]string{
	"volume": "orders", "target": "db", "host": "web01", "gateway": "gw-1", "gatewaypool": "default", "pool": "fast", "fabric": "red",
	"snapshot": "orders-monday", "session": "gw-1-1a2b",
}

// examples are the examples in the help of each command, by its path below sluicectl. A command that every kind has is under KIND; there
// NAME stands for the name of an object.
var examples = map[string][]string{
	"KIND list":     {"KIND list", "KIND list -o wide", "KIND list -o name", "KIND list --watch"},
	"KIND get":      {"KIND get NAME -o yaml", "KIND get NAME -o jsonpath={.meta.uid}"},
	"KIND describe": {"KIND describe NAME"},
	"KIND delete":   {"KIND delete NAME --wait", "KIND delete NAME --yes"},

	"account":        {"account"},
	"account create": {"account create ada --role admin", "account create watcher --password-file watcher.password"},
	"account list":   {"account list"},
	"account set":    {"account set ada --role operator", "account set ada --password"},
	"account delete": {"account delete ada"},

	"fabric create":       {"fabric create red --subnet 192.0.2.0/24", "fabric create blue --switch b1 --switch b2 --link b1:b2"},
	"gateway create":      {"gateway create gw-1 --node node-1 --forwarding-address 198.51.100.1:3261 --portal fabric=red,listen=192.0.2.1:3260"},
	"gateway drain":       {"gateway drain gw-1 --wait"},
	"gateway undrain":     {"gateway undrain gw-1 --wait"},
	"gateway rotate-keys": {"gateway rotate-keys"},
	"gatewaypool create":  {"gatewaypool create default --fabric red --fabric blue"},
	"host create": {
		"host create web01 --initiator iqn.1993-08.org.debian:01:abcdef --chap-secret-file web01.secret",
		"host create lab --initiator iqn.1993-08.org.debian:01:123456 --allow-unauthenticated",
	},
	"host set": {"host set web01 --initiator iqn.1993-08.org.debian:01:abcdef", "host set web01 --max-sessions 16"},
	"host set-chap": {
		"host set-chap web01 --generate", "host set-chap web01 --chap-secret-file web01.secret",
		"host set-chap web01 --chap-user web --mutual-chap-secret-file db.secret",
	},
	"fabric set":      {"fabric set red --subnet 192.0.2.0/24,198.51.100.0/24"},
	"gateway set":     {"gateway set gw-1 --weight 50"},
	"gatewaypool set": {"gatewaypool set default --max-sessions 1000"},
	"pool set":        {"pool set fast --warn-percent 90", "pool set ceph --user sluice2 --ceph-key-file sluice2.key"},
	"snapshot set":    {"snapshot set orders-monday --retain"},
	"target set":      {"target set db --paths 3 --wait"},
	"volume set":      {"volume set orders --iops 5000 --bytes-per-second 200Mi", "volume set orders --size 200Gi --retain --wait"},

	"pool adopt": {"pool adopt fast"},
	"pool create": {
		"pool create fast --node node-1 --directory /srv/sluice",
		"pool create disks --node node-1 --device /dev/disk/by-id/nvme-a --device /dev/disk/by-id/nvme-b",
		"pool create ceph --monitor 192.0.2.1:3300 --ceph-pool rbd --user sluice --ceph-key-file sluice.key",
	},
	"session evict":     {"session evict --host web01 --dry-run", "session evict --gateway gw-1"},
	"snapshot create":   {"snapshot create orders-monday --volume orders --wait"},
	"snapshot rollback": {"snapshot rollback orders-monday"},
	"target create": {
		"target create db --lun 0=orders --host web01 --wait",
		"target create reports --lun 0=orders,ro --host web01 --paths 4",
	},
	"target add-host":    {"target add-host db web02 web03 --wait"},
	"target add-lun":     {"target add-lun db 1=orders --wait", "target add-lun db 2=archive,ro 3=logs"},
	"target remove-host": {"target remove-host db web02"},
	"target remove-lun":  {"target remove-lun db 1 --dry-run", "target remove-lun db 1 --wait"},
	"volume create": {
		"volume create orders --pool fast --size 100Gi --wait",
		"volume create orders-copy --pool fast --size 100Gi --from-snapshot orders-monday",
	},
	"volume move":   {"volume move orders --to gw-2 --wait", "volume move orders"},
	"volume resize": {"volume resize orders --size 200Gi --wait"},

	"apply": {
		"apply -f volume.yaml", "apply -f volume.yaml -f target.yaml --dry-run",
		"apply -f shop.yaml --prune -l app=shop", "apply -f shop.yaml --prune -l app=shop --yes",
	},
	"context delete": {"context delete lab"},
	"context list":   {"context list"},
	"context set":    {"context set lab --server cp.example --tls-ca ca.crt --tls-cert admin.crt --tls-key admin.key"},
	"context show":   {"context show", "context show lab"},
	"context use":    {"context use lab"},
	"diff":           {"diff -f volume.yaml", "diff -f volume.yaml -f target.yaml"},
	"edit":           {"edit volume orders"},
	"backup":         {"backup sluice-backup"},
	"disk create": {
		"disk create db 100Gi --host web01 --initiator iqn.1993-08.org.debian:01:abcdef", "disk create logs 10Gi --host web01 --target db --pool fast",
	},
	"doctor":  {"doctor", "doctor --watch", "doctor -o json"},
	"dump":    {"dump"},
	"events":  {"events", "events --kind volume --name orders"},
	"explain": {"explain host web01", "explain volume orders"},
	"host-config": {
		"host-config web01 --chap-secret-file web01.secret", "host-config web01 --verify", "host-config web02 --os windows",
		"host-config linux", "host-config web01 --expect",
	},
	"label":           {"label volume orders team=shop", "label target db team=shop stage-"},
	"restore list":    {"restore list"},
	"restore confirm": {"restore confirm volume orders"},
	"restore discard": {"restore discard snapshot orders-monday"},
	"node check":      {"node check --pool /srv/sluice"},
	"node init": {
		"node init --pool /srv/sluice",
		"node init --pool /srv/sluice --address 192.0.2.1 --fabric red=198.51.100.0/24 --fabric blue=203.0.113.0/24",
	},
	"node join": {
		"node join TOKEN@192.0.2.1 --pool /srv/sluice", "node join TOKEN@192.0.2.1:7468 --gateways-only", "node join",
	},
	"node list":         {"node list"},
	"node drain":        {"node drain b"},
	"node remove":       {"node remove b"},
	"node replace":      {"node replace b", "node replace b --lose-volumes"},
	"node refresh":      {"node refresh"},
	"node renew":        {"node renew", "node renew --all"},
	"node upgrade":      {"node upgrade", "node upgrade ./sluice-controlplane_0.2.0_amd64.deb ./sluice-gateway_0.2.0_amd64.deb ./sluicectl_0.2.0_amd64.deb"},
	"node token create": {"node token create", "node token create --ttl 10m"},
	"node token list":   {"node token list"},
	"node token revoke": {"node token revoke qkzvx2ab"},
	"status":            {"status", "status --check"},
	"top":               {"top volumes", "top hosts --sort latency --limit 10", "top gateways gw-1 --watch=false -o json"},
	"version":           {"version"},
}

// addExamples adds the examples to a command and to all commands below it.
func addExamples(command *cobra.Command) {
	program := command.Root().DisplayName()
	path := strings.TrimPrefix(command.CommandPath(), program+" ")
	lines, common := examples[path], strings.NewReplacer()
	if lines == nil {
		noun, verb, _ := strings.Cut(path, " ")
		lines, common = examples["KIND "+verb], strings.NewReplacer("KIND", noun, "NAME", exampleNames[noun])
	}
	var shown []string
	for _, line := range lines {
		shown = append(shown, "  "+program+" "+common.Replace(line))
	}
	command.Example = strings.Join(shown, "\n")
	for _, below := range command.Commands() {
		addExamples(below)
	}
}
