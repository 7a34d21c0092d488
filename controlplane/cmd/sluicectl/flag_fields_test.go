package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// create returns the command `create` of a kind.
func createOf(k *kind) *cobra.Command { return createCommand(k, &globals{}) }

func TestEveryFlagOfCreateSetsAFieldOfItsObject(t *testing.T) {
	for _, k := range kinds {
		if k.create == nil {
			continue
		}
		of := flagFields[k.name]
		createOf(k).LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if _, known := of[flag.Name]; !known && flag.Name != "dry-run" && flag.Name != "label" && flag.Name != "wait" {
				t.Errorf("%s create --%s: no field", k.name, flag.Name)
			}
		})
		message, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("sluice.v1." + k.message))
		if err != nil {
			t.Fatal(err)
		}
		for flag, path := range of {
			if createOf(k).LocalFlags().Lookup(flag) == nil {
				t.Errorf("%s create has no flag --%s", k.name, flag)
			}
			at := message.Descriptor()
			for _, name := range strings.Split(path, ".") {
				var field protoreflect.FieldDescriptor
				if at != nil {
					field = at.Fields().ByJSONName(name)
				}
				if field == nil {
					t.Errorf("%s create --%s: there is no field %s", k.name, flag, path)
					break
				}
				at = field.Message()
			}
		}
	}
}

func TestARefusalOfAValueNamesTheFlagThatGaveIt(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.must("pool", "create", "p", "--node", "n", "--directory", "/p")
	l.must("volume", "create", "grown", "--pool", "p", "--size", "1Gi")
	for arguments, want := range map[string]string{
		"volume resize grown --size 100":                                                               "--size (spec.sizeBytes): ",
		"volume create db --pool none --size 1Gi":                                                      "--pool (spec.pool): ",
		"volume create db --pool p --size 100":                                                         "--size (spec.sizeBytes): ",
		"volume create db --pool p --size 1Gi --iops -1":                                               "--iops (spec.qos.iops): ",
		"target create t --lun 0=none":                                                                 "--lun (spec.luns[0].volume): ",
		"host create h --initiator iqn.2026-11.org.example:h":                                          "--chap-secret-file (spec.chap): ",
		"host create h --initiator nonsense --allow-unauthenticated":                                   "--initiator (spec.initiators[0]): ",
		"pool create Q --node n --directory /d":                                                        "NAME (meta.name): ",
		"pool create q --node n --directory d":                                                         "--directory (spec.local.directory): ",
		"gateway create g --node n --portal fabric=none,listen=1:1 --forwarding-address 10.0.0.1:3261": "--portal (spec.portals[0]",
		"gatewaypool create g --fabric none":                                                           "--fabric (spec.fabrics[0]): ",
		"fabric create f --subnet x":                                                                   "--subnet (spec.subnets[0]): ",
	} {
		_, err := l.run(strings.Fields(arguments)...)
		if output := reported(err); !strings.Contains(output, want) {
			t.Errorf("%s: %s", arguments, output)
		}
	}
}
