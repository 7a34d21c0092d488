package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Join makes this server a further node of a system.
type Join struct {
	Preflight *Preflight
	// Token admits the server; empty if an earlier run has used it already.
	Token string
	// At is the address of the join service, host:port.
	At string
	// GatewaysOnly: the server does not become a member of the embedded etcd.
	GatewaysOnly bool
	// Certificates is the directory of the administrator's certificate.
	Certificates string
	// Call calls the join service.
	Call func(context.Context, *pb.JoinRequest) (*pb.JoinResponse, error)
	// StoreAccess and Connect are as those of Init.
	StoreAccess func(Access) (changed bool, err error)
	Connect     func(Access) Cluster
	// Say prints a sentence for the administrator.
	Say func(string)
}

func (j *Join) system() *System { return j.Preflight.System }

func (j *Join) plan() *Plan { return j.Preflight.Plan }

// errNoToken asks for the token, without which a first run cannot continue.
var errNoToken = errors.New("this server has no certificates yet: give TOKEN@ADDRESS, as `sluicectl node token create` prints it")

// Run runs all steps. changed: a step had something to do.
func (j *Join) Run(ctx context.Context, to io.Writer) (changed bool, err error) {
	system, plan := j.system(), j.plan()
	if len(plan.ControlPlanes) == 0 {
		if j.Token == "" {
			return false, errNoToken
		}
		plan.Joined = j.At
	}
	steps := []step{
		{what: "record the plan in " + RecordFile, run: func(context.Context) (bool, error) { return system.writeRecord(plan) }},
		{what: "stop the gateway of the sample (" + sampleUnit + ")", run: func(ctx context.Context) (bool, error) { return system.stopUnit(ctx, sampleUnit) }},
	}
	for _, directory := range plan.Pools {
		steps = append(steps, system.poolStep(directory))
	}
	steps = append(steps,
		step{what: "make private keys in " + tlsDirectory + " and " + j.Certificates, run: func(context.Context) (bool, error) { return j.makeKeys() }},
		step{what: "join the system at " + plan.Joined, run: j.join},
	)
	changed, err = runSteps(ctx, to, steps)
	if err != nil {
		return changed, err
	}
	more, err := runSteps(ctx, to, j.controlPlaneSteps())
	changed = changed || more
	if err != nil {
		return changed, err
	}
	cluster := j.Connect(j.Access())
	more, err = runSteps(ctx, to, []step{{what: "find the addresses of this server on the fabrics of the system", run: func(ctx context.Context) (bool, error) {
		return j.findFabrics(ctx, cluster)
	}}})
	changed = changed || more
	if err != nil {
		return changed, err
	}
	more, err = runSteps(ctx, to, system.nodeSteps(plan, cluster, plan.endpoints()))
	return changed || more, err
}

// controlPlaneSteps start the control plane of a member, and store the access to the system.
func (j *Join) controlPlaneSteps() []step {
	var steps []step
	if j.plan().Member {
		steps = append(steps, step{what: "start the control plane (" + controlPlaneUnit + "): it copies the store of the other members",
			run: func(ctx context.Context) (bool, error) { return j.system().startUnit(ctx, controlPlaneUnit) }})
	}
	if access := j.Access(); access != (Access{}) {
		steps = append(steps, step{what: "store the access of the administrator as a context of sluicectl",
			run: func(context.Context) (bool, error) { return j.StoreAccess(access) }})
		steps = append(steps, j.system().backupStep())
	}
	return append(steps, j.system().renewalStep())
}

// Access is the administrator's to the control plane of this server. It is empty for a server that is no member: then the administrator
// gives another one by flags or a context.
func (j *Join) Access() Access {
	if !j.plan().Member {
		return Access{}
	}
	return administratorAccess(j.plan(), j.Certificates)
}

// keys are the private keys of the services of this server.
func (j *Join) keys() []string {
	names := []string{}
	for _, one := range j.plan().gateways() {
		names = append(names, "gateway-"+one.name)
	}
	if j.asksForMember() {
		names = append(names, "server")
	}
	return names
}

// asksForMember reports whether this server is to become a member of the embedded etcd. An earlier run may have the answer.
func (j *Join) asksForMember() bool {
	if len(j.plan().ControlPlanes) > 0 {
		return j.plan().Member
	}
	return !j.GatewaysOnly
}

func (j *Join) makeKeys() (changed bool, err error) {
	for _, name := range j.keys() {
		made, err := j.system().makeKey(filepath.Join(tlsDirectory, name+".key"), ownerService)
		if err != nil {
			return changed, err
		}
		changed = changed || made
	}
	made, err := j.system().makeKey(filepath.Join(j.Certificates, adminFile+".key"), ownerAdministrator)
	return changed || made, err
}

// join gets the certificates of this server, unless an earlier run has got them. The service permits that a call is repeated.
func (j *Join) join(ctx context.Context) (changed bool, err error) {
	if len(j.plan().ControlPlanes) > 0 {
		return false, nil
	}
	request, err := j.request()
	if err != nil {
		return false, err
	}
	response, err := j.Call(ctx, request)
	if err != nil {
		return false, err
	}
	if err := j.install(response); err != nil {
		return true, err
	}
	if reason := response.GetNoMemberReason(); reason != "" {
		j.Say("  this server has gateways only: " + reason)
	}
	j.plan().Member = response.GetMember() != nil
	if j.plan().ControlPlanes = slices.Sorted(slices.Values(response.GetApiAddresses())); len(j.plan().ControlPlanes) == 0 {
		return true, fmt.Errorf("the system at %s named no control plane: start it with --listen ADDRESS:%d", j.plan().Joined, controlPlanePort)
	}
	return j.system().writeRecord(j.plan()) // last: from now on the call is not repeated
}

func (j *Join) request() (*pb.JoinRequest, error) {
	request := &pb.JoinRequest{Token: j.Token, Node: j.plan().Name}
	csr := func(name string) (string, error) {
		return j.system().certificateRequest(filepath.Join(tlsDirectory, name+".key"), name)
	}
	for _, one := range j.plan().gateways() {
		text, err := csr("gateway-" + one.name)
		if err != nil {
			return nil, err
		}
		request.Gateways = append(request.Gateways, &pb.GatewayCertificateRequest{Gateway: one.name, CertificateRequest: text})
	}
	var err error
	if j.asksForMember() {
		request.Member = &pb.MemberRequest{PeerAddress: netip.AddrPortFrom(j.plan().address(), peerPort).String(), Hosts: []string{j.plan().Address}}
		if request.Member.CertificateRequest, err = csr("server"); err != nil {
			return nil, err
		}
	}
	request.AdministratorCertificateRequest, err = j.system().certificateRequest(filepath.Join(j.Certificates, adminFile+".key"), adminFile)
	return request, err
}

// install writes the certificates, and what the control plane of a member needs.
func (j *Join) install(response *pb.JoinResponse) error {
	for _, one := range response.GetGateways() {
		if !slices.ContainsFunc(j.plan().gateways(), func(g gateway) bool { return g.name == one.GetGateway() }) {
			return fmt.Errorf("the system sent a certificate for %s, which is no gateway of this server", one.GetGateway())
		}
		if _, err := j.system().put(filepath.Join(tlsDirectory, "gateway-"+one.GetGateway()+".crt"), one.GetCertificate(), ownerService); err != nil {
			return err
		}
	}
	type file struct {
		path, content string
		of            owner
	}
	files := []file{
		{filepath.Join(tlsDirectory, caFile), response.GetAuthority(), ownerService},
		{filepath.Join(j.Certificates, caFile), response.GetAuthority(), ownerAdministrator},
	}
	if member := response.GetMember(); member != nil {
		text, err := j.system().read(controlPlaneEnv)
		if err != nil {
			return err
		}
		if err := j.system().makeServiceDirectory(controlPlaneDir); err != nil {
			return err
		}
		flags := fmt.Sprintf("%s --system-id %s --cluster %s", j.plan().controlPlaneFlags(), response.GetSystemId(), member.GetCluster())
		j.plan().Members = slices.Sorted(slices.Values(member.GetPeerAddresses()))
		flags = withMembers(flags, j.plan().Members)
		// The certificate is last: the unit does not start without it.
		files = append(files,
			file{filepath.Join(j.Certificates, adminFile+".crt"), response.GetAdministratorCertificate(), ownerAdministrator},
			file{controlPlaneEnv, withFlags(text, flags), ownerRoot},
			file{filepath.Join(controlPlaneDir, "secrets.key"), member.GetKeyFile(), ownerAccount},
			file{filepath.Join(tlsDirectory, "server.crt"), member.GetCertificate(), ownerService})
	}
	for _, one := range files {
		if one.content == "" {
			return fmt.Errorf("the system sent nothing for %s: its control plane has another version than this server", one.path)
		}
		if _, err := j.system().put(one.path, one.content, one.of); err != nil {
			return err
		}
	}
	return nil
}

// findFabrics chooses the addresses of the portals, unless an earlier run has chosen them.
func (j *Join) findFabrics(ctx context.Context, cluster Cluster) (changed bool, err error) {
	if len(j.plan().Fabrics) > 0 {
		return false, nil
	}
	fabrics, err := cluster.Fabrics(ctx, gatewayPool)
	if err != nil {
		return false, err
	}
	if problems := j.Preflight.PlaceOn(fabrics); len(problems) > 0 {
		clear(j.plan().Fabrics)
		var texts []string
		for _, problem := range problems {
			texts = append(texts, problem.What+"; remedy: "+problem.Remedy)
		}
		return false, errors.New(strings.Join(texts, "; "))
	}
	return j.system().writeRecord(j.plan())
}
