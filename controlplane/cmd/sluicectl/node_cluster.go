package main

import (
	"context"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/controlplane/cmd/sluicectl/node"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// nodeCluster is the control plane of a node (node.Cluster).
type nodeCluster struct {
	g       *globals
	command *cobra.Command
}

// accessing returns the flags of a connection with this access; with an empty one those of the command line, the environment and the context.
func (g *globals) accessing(access node.Access) *globals {
	if access == (node.Access{}) {
		return g
	}
	with := *g
	with.flags = nil // no context replaces it
	with.server, with.insecure = access.Server, false
	with.tls = client.Files{CA: access.CA, Certificate: access.Certificate, Key: access.Key}
	return &with
}

func (c *nodeCluster) use(ctx context.Context, run func(context.Context, *grpc.ClientConn) error) error {
	connection, ctx, done, err := c.g.connect(ctx, 0)
	if err != nil {
		return err
	}
	defer done()
	return run(ctx, connection)
}

// kindOf returns the kind of an object.
func kindOf(object proto.Message) *kind {
	return kindNamed(string(object.ProtoReflect().Descriptor().Name()))
}

func (c *nodeCluster) Ensure(ctx context.Context, object proto.Message) (created bool, err error) {
	err = c.use(ctx, func(ctx context.Context, connection *grpc.ClientConn) error {
		k, name := kindOf(object), metaOf(object).GetName()
		_, err := k.get(ctx, connection, name)
		if !client.IsNotFound(err) {
			return err
		}
		if _, err := k.call(ctx, connection, "Create", k.message, map[string]any{k.field: object}); err != nil {
			return k.about(name, err)
		}
		created = true
		return nil
	})
	return created, err
}

func (c *nodeCluster) WaitUsable(ctx context.Context, objects ...proto.Message) error {
	return c.use(ctx, func(ctx context.Context, connection *grpc.ClientConn) error {
		goals := map[*kind][]goal{}
		for _, object := range objects {
			k := kindOf(object)
			current, err := k.get(ctx, connection, metaOf(object).GetName())
			if err != nil {
				return k.about(metaOf(object).GetName(), err)
			}
			goals[k] = append(goals[k], goal{kind: k, from: current, missing: k.unmade})
		}
		for _, k := range kinds { // waitAll waits for goals of one kind
			if _, err := c.g.waitAll(ctx, c.command, connection, goals[k]); err != nil {
				return err
			}
		}
		return nil
	})
}

// nodeContext is the context that `node init` stores.
const nodeContext = "default"

// storeAccess stores the access to the control plane of a node as a context, which becomes the current one if there is none.
func storeAccess(access node.Access) (changed bool, err error) {
	read, err := readConfiguration()
	if err != nil {
		return false, err
	}
	wanted := serverContext{Server: access.Server, CA: access.CA, Certificate: access.Certificate, Key: access.Key}
	have := read.Contexts[nodeContext]
	if have != nil && *have == wanted && read.Current != "" {
		return false, nil
	}
	read.Contexts[nodeContext] = &wanted
	if read.Current == "" {
		read.Current = nodeContext
	}
	return true, read.write()
}

// Fabrics are those of a gateway pool.
func (c *nodeCluster) Fabrics(ctx context.Context, gatewayPool string) ([]*pb.Fabric, error) {
	var all []*pb.Fabric
	err := c.use(ctx, func(ctx context.Context, connection *grpc.ClientConn) error {
		pool, err := pb.NewGatewayPoolServiceClient(connection).GetGatewayPool(ctx, &pb.GetGatewayPoolRequest{Name: gatewayPool})
		if err != nil {
			return kindNamed("gatewaypool").about(gatewayPool, err)
		}
		for _, name := range pool.GetGatewayPool().GetSpec().GetFabrics() {
			fabric, err := pb.NewFabricServiceClient(connection).GetFabric(ctx, &pb.GetFabricRequest{Name: name})
			if err != nil {
				return kindNamed("fabric").about(name, err)
			}
			all = append(all, fabric.GetFabric())
		}
		return nil
	})
	return all, err
}

// Members are those of the embedded etcd.
func (c *nodeCluster) Members(ctx context.Context) ([]*pb.Member, error) {
	var all []*pb.Member
	err := c.use(ctx, func(ctx context.Context, connection *grpc.ClientConn) error {
		listed, err := pb.NewMembershipServiceClient(connection).ListMembers(ctx, &pb.ListMembersRequest{})
		all = listed.GetMembers()
		return err
	})
	return all, err
}

// ImportAuthority stores the certificate authority of the system in the control plane.
func (c *nodeCluster) ImportAuthority(ctx context.Context, certificate, key string) error {
	return c.use(ctx, func(ctx context.Context, connection *grpc.ClientConn) error {
		_, err := pb.NewMembershipServiceClient(connection).ImportAuthority(ctx, &pb.ImportAuthorityRequest{Certificate: certificate, PrivateKey: key})
		return err
	})
}
