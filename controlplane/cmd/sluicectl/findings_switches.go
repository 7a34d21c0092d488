package main

import "strings"

// switchFindings finds switches that no fabric declares: placement treats them as unknown, and hosts use longer paths unnoticed.
func (w *clusterObjects) switchFindings() []finding {
	declared := map[string]bool{}
	for _, fabric := range w.fabrics {
		for _, name := range fabric.GetSpec().GetSwitches() {
			declared[fabric.GetMeta().GetName()+"/"+name] = true
		}
	}
	var found []finding
	check := func(object, ref string) {
		if declared[ref] {
			return
		}
		fabric, name, _ := strings.Cut(ref, "/")
		found = append(found, finding{object, "is said to sit on switch " + name + ", which fabric " + fabric +
			" does not have: ways to it count as not known",
			"correct the name, or add the switch to spec.switches of fabric " + fabric + "; `sluicectl apply`"})
	}
	for _, gateway := range w.gateways {
		for _, portal := range gateway.GetSpec().GetPortals() {
			if portal.GetSwitch() != "" {
				check("gateway "+gateway.GetMeta().GetName(), portal.GetFabric()+"/"+portal.GetSwitch())
			}
		}
	}
	for _, host := range w.hosts {
		for _, ref := range host.GetSpec().GetSwitches() {
			check("host "+host.GetMeta().GetName(), ref)
		}
	}
	return found
}
