package main

import "strings"

// switchFindings finds switches that no fabric declares: placement treats them as unknown, and hosts use longer paths unnoticed.
func (w *clusterObjects) switchFindings() []finding {
	places := map[string]bool{}
	for _, fabric := range w.fabrics {
		for _, name := range fabric.GetSpec().GetSwitches() {
			places[fabric.GetMeta().GetName()+"/"+name] = true
		}
	}
	var found []finding
	look := func(object, place string) {
		if places[place] {
			return
		}
		fabric, name, _ := strings.Cut(place, "/")
		found = append(found, finding{object, "is said to sit on switch " + name + ", which fabric " + fabric +
			" does not have: ways to it count as not known",
			"correct the name, or add the switch to spec.switches of fabric " + fabric + "; `sluicectl apply`"})
	}
	for _, gateway := range w.gateways {
		for _, portal := range gateway.GetSpec().GetPortals() {
			if portal.GetSwitch() != "" {
				look("gateway "+gateway.GetMeta().GetName(), portal.GetFabric()+"/"+portal.GetSwitch())
			}
		}
	}
	for _, host := range w.hosts {
		for _, place := range host.GetSpec().GetSwitches() {
			look("host "+host.GetMeta().GetName(), place)
		}
	}
	return found
}
