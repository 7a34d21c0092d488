package node

import (
	"context"
	"path/filepath"
)

// Names of files in a directory of certificates.
const (
	caFile    = "ca.crt"
	caKeyFile = "ca.key"
	adminFile = "admin"
)

// certificates are the files that the services of the first node need, without the gateways'.
var serverFiles = []string{caFile, "server.crt", "server.key"}

// installedFiles are the certificates and keys of the services, by the name of the file.
func (p *Plan) installedFiles() []string {
	all := append([]string{}, serverFiles...)
	for _, one := range p.gateways() {
		all = append(all, "gateway-"+one.name+".crt", "gateway-"+one.name+".key")
	}
	return all
}

// makeCertificates makes the authority and the certificates of the first node, and installs those of its services. The files in the
// directory are renewed if a file is missing there, because an interrupted run may have written a part of them.
func (i *Init) makeCertificates(ctx context.Context) (changed bool, err error) {
	wanted := append(i.Plan.installedFiles(), adminFile+".crt", adminFile+".key")
	for _, name := range wanted {
		if i.System.exists(filepath.Join(i.Certificates, name)) {
			continue
		}
		arguments := []string{"certs", "--directory", i.System.path(i.Certificates)}
		for _, host := range []string{i.Plan.Name, i.Plan.Address, "localhost", "127.0.0.1", "::1"} {
			arguments = append(arguments, "--host", host)
		}
		for _, one := range i.Plan.gateways() {
			arguments = append(arguments, "--gateway", one.name)
		}
		if _, err := i.System.Run(ctx, "sluice-controlplane", arguments...); err != nil {
			return false, err
		}
		changed = true
		break
	}
	for _, name := range i.Plan.installedFiles() {
		text, err := i.System.read(filepath.Join(i.Certificates, name))
		if err != nil {
			return changed, err
		}
		wrote, err := i.System.put(filepath.Join(tlsDirectory, name), text, ownerService)
		if err != nil {
			return changed, err
		}
		changed = changed || wrote
	}
	return changed, nil
}

// importAuthority is the step that lets the control plane sign the certificates of further servers. An administrator who has moved the key
// of the authority away has finished that.
func (i *Init) importAuthority(cluster Cluster) step {
	return step{what: "store the certificate authority in the control plane, for servers that join", waits: true, run: func(ctx context.Context) (bool, error) {
		key := filepath.Join(i.Certificates, caKeyFile)
		if !i.System.exists(key) {
			return false, nil
		}
		certificate, err := i.System.read(filepath.Join(i.Certificates, caFile))
		if err != nil {
			return false, err
		}
		private, err := i.System.read(key)
		if err != nil {
			return false, err
		}
		return false, cluster.ImportAuthority(ctx, certificate, private)
	}}
}
