package convert

import (
	"strings"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// HostSpec returns the specification of a host, with the passwords from its Secrets.
func HostSpec(r *v1alpha1.Host, secret SecretReader) (*pb.HostSpec, error) {
	spec := &pb.HostSpec{
		Initiators: r.Spec.Initiators, AllowUnauthenticated: r.Spec.AllowUnauthenticated, MaxSessions: r.Spec.MaxSessions,
	}
	for _, place := range r.Spec.Switches {
		spec.Switches = append(spec.Switches, place.Fabric+"/"+place.Switch)
	}
	credentials := func(field string, from *v1alpha1.ChapCredentials) (*pb.ChapCredentials, error) {
		if from == nil {
			return nil, nil
		}
		password, err := secret(field+".secretRef", SecretKey{r.Namespace, from.SecretRef.Name, from.SecretRef.Key})
		return &pb.ChapCredentials{Username: from.Username, Password: strings.TrimRight(password, "\r\n")}, err
	}
	var err error
	if spec.Chap, err = credentials("spec.chap", r.Spec.Chap); err != nil {
		return nil, err
	}
	if spec.MutualChap, err = credentials("spec.mutualChap", r.Spec.MutualChap); err != nil {
		return nil, err
	}
	return spec, nil
}

// ShowHost copies the status of a host.
func ShowHost(r *v1alpha1.Host, have *pb.Host) { r.Status.Sessions = have.GetStatus().GetSessions() }

// hostOf omits the references to Secrets, which the control plane does not know.
func hostOf(have *pb.Host) *v1alpha1.Host {
	spec := have.GetSpec()
	r := &v1alpha1.Host{Spec: v1alpha1.HostSpec{Initiators: spec.GetInitiators(), AllowUnauthenticated: spec.GetAllowUnauthenticated(),
		MaxSessions: spec.GetMaxSessions()}}
	for _, name := range spec.GetSwitches() {
		fabric, of, _ := strings.Cut(name, "/")
		r.Spec.Switches = append(r.Spec.Switches, v1alpha1.SwitchReference{Fabric: fabric, Switch: of})
	}
	if chap := spec.GetChap(); chap != nil {
		r.Spec.Chap = &v1alpha1.ChapCredentials{Username: chap.GetUsername()}
	}
	if chap := spec.GetMutualChap(); chap != nil {
		r.Spec.MutualChap = &v1alpha1.ChapCredentials{Username: chap.GetUsername()}
	}
	ShowHost(r, have)
	return r
}
