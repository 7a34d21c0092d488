package server

import (
	"context"
	"crypto/x509"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// Role determines what a caller may do.
type Role string

// The roles. A certificate names its holder's role as organization: `sluice:<role>`.
const (
	// RoleAdmin may do everything except open a gateway's stream.
	RoleAdmin Role = "admin"
	// RoleOperator is the Kubernetes operator: all objects, no maintenance of the store.
	RoleOperator Role = "operator"
	// RoleCSI is the controller of the CSI driver: the methods in csiMethods, and changes of its own objects (api.Callers).
	RoleCSI Role = "csi"
	// RoleGateway opens a gateway stream, for the gateway that the certificate's common name names.
	RoleGateway Role = "gateway"
	// RoleServer is a server of the control plane: it may only renew its certificate.
	RoleServer Role = "server"
	// RoleReadOnly gets, lists and watches.
	RoleReadOnly Role = "read-only"
)

// csiMethods are the methods that the CSI driver calls, by service (operator/internal/csi).
var csiMethods = map[string][]string{
	"VolumeService":      {"GetVolume", "ListVolumes", "CreateVolume", "UpdateVolume", "DeleteVolume"},
	"SnapshotService":    {"GetSnapshot", "ListSnapshots", "CreateSnapshot", "DeleteSnapshot"},
	"TargetService":      {"GetTarget", "ListTargets", "CreateTarget", "UpdateTarget"},
	"HostService":        {"GetHost", "ListHosts", "CreateHost", "UpdateHost", "DeleteHost"},
	"StoragePoolService": {"GetStoragePool", "ListStoragePools"},
	"GatewayPoolService": {"ListGatewayPools"},
	"GatewayService":     {"ListGateways"},
}

// administrators are the services whose changes are for administrators.
var administrators = []string{"sluice.v1.AccountService", "sluice.v1.MaintenanceService", "sluice.v1.MembershipService"}

const organizationPrefix = "sluice:"

// Identity is the identity of a caller.
type Identity struct {
	Name string
	Role Role
	// CertificateEnd is the expiry of the certificate of the caller's connection; zero: none.
	CertificateEnd time.Time
	// Login is set for a person who logged in at the console port: the provider of the login.
	Login string
}

// LocalLogin is Identity.Login of a local account.
const LocalLogin = "password"

type identityKey struct{}

// authenticatedKey marks the identity that the console port has verified. Only this process can set it.
type authenticatedKey struct{}

// WithIdentity returns the context of a request whose caller was verified by other means than the certificate of a gRPC connection.
func WithIdentity(ctx context.Context, identity Identity) context.Context {
	return context.WithValue(ctx, authenticatedKey{}, identity)
}

// IdentityOf returns the identity of a call's caller; the zero Identity if none was proven.
func IdentityOf(ctx context.Context) Identity {
	identity, _ := ctx.Value(identityKey{}).(Identity)
	return identity
}

// identify determines the caller from its certificate. Over a plain connection, which is served only on loopback and with
// --insecure, every caller is an administrator, or a gateway if it opens a stream.
func identify(ctx context.Context, insecure bool) (Identity, error) {
	if verified, ok := ctx.Value(authenticatedKey{}).(Identity); ok {
		return verified, nil
	}
	from, ok := peer.FromContext(ctx)
	if !ok {
		return Identity{}, status.Error(codes.Unauthenticated, "no peer")
	}
	info, secured := from.AuthInfo.(credentials.TLSInfo)
	if !secured || len(info.State.VerifiedChains) == 0 {
		if insecure {
			return Identity{Name: "insecure", Role: RoleAdmin}, nil
		}
		return Identity{}, status.Error(codes.Unauthenticated,
			"no client certificate: `sluicectl` takes one with --tls-cert and --tls-key")
	}
	return IdentityFrom(info.State.VerifiedChains[0][0])
}

// roleIn returns the role that a certificate names, even if this program does not know it; empty: none.
func roleIn(certificate *x509.Certificate) string {
	for _, organization := range certificate.Subject.Organization {
		if role, named := strings.CutPrefix(organization, organizationPrefix); named {
			return role
		}
	}
	return ""
}

// IdentityFrom returns the identity that a verified certificate names. Errors: PERMISSION_DENIED (it names no role).
func IdentityFrom(certificate *x509.Certificate) (Identity, error) {
	for _, organization := range certificate.Subject.Organization {
		role := Role(strings.TrimPrefix(organization, organizationPrefix))
		if strings.HasPrefix(organization, organizationPrefix) &&
			slices.Contains([]Role{RoleAdmin, RoleOperator, RoleCSI, RoleGateway, RoleServer, RoleReadOnly}, role) {
			if role == RoleGateway && certificate.Subject.CommonName == "" {
				return Identity{}, status.Error(codes.PermissionDenied, "the certificate is of role gateway and names none: "+
					"its common name has to be the name of its Gateway")
			}
			return Identity{Name: certificate.Subject.CommonName, Role: role, CertificateEnd: certificate.NotAfter}, nil
		}
	}
	return Identity{}, status.Errorf(codes.PermissionDenied,
		"the certificate of %q names no role: its organization has to be sluice:admin, sluice:operator, "+
			"sluice:csi, sluice:gateway or sluice:read-only", certificate.Subject.CommonName)
}

// allow reports whether a role may call a method, such as `/sluice.v1.VolumeService/CreateVolume`.
func allow(identity Identity, method string, insecure bool) error {
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	allowed := false
	switch {
	case strings.HasPrefix(service, "grpc.health."), strings.HasPrefix(service, "grpc.reflection."):
		allowed = true
	case service == "sluice.v1.GatewayStreamService":
		allowed = identity.Role == RoleGateway || insecure
	case name == "RenewCertificate" && identity.Login != "":
		// A certificate would outlive the login and the account.
		return status.Error(codes.PermissionDenied, "a certificate is renewed only by a connection that shows it; this one has a login")
	case name == "RenewCertificate":
		allowed = identity.Role == RoleGateway || identity.Role == RoleServer || identity.Role == RoleAdmin
	case identity.Role == RoleServer:
		allowed = false
	case identity.Role == RoleCSI:
		allowed = slices.Contains(csiMethods[strings.TrimPrefix(service, "sluice.v1.")], name)
	case readOnly(name):
		allowed = identity.Role != RoleGateway
	case slices.Contains(administrators, service):
		allowed = identity.Role == RoleAdmin
	default:
		allowed = identity.Role == RoleAdmin || identity.Role == RoleOperator
	}
	if allowed {
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "%s (role %s) may not call %s", identity.Name, identity.Role, method)
}

func readOnly(name string) bool {
	return strings.HasPrefix(name, "Get") || strings.HasPrefix(name, "List") || strings.HasPrefix(name, "Watch")
}
