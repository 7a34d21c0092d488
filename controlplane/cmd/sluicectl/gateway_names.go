package main

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// gatewayNames are the names of gateways by number. Messages of the API refer to the owner of a volume by its number.
type gatewayNames map[uint32]string

// of is the name of a gateway, "-" for the number 0, which is no gateway. A gateway that was removed has its number only.
func (names gatewayNames) of(gateway uint32) string {
	if name := names[gateway]; name != "" {
		return name
	}
	if gateway == 0 {
		return "-"
	}
	return "number " + number(gateway)
}

// gatewayLister is the part of the noun gateway that lists. The noun itself has commands that need the names.
var gatewayLister = &kind{message: "Gateway", messages: "Gateways", field: "gateway", fields: "gateways"}

// listGatewayNames returns no names to a caller that may not list gateways: then it sees numbers.
func listGatewayNames(ctx context.Context, connection *grpc.ClientConn) gatewayNames {
	gateways, err := gatewayLister.list(ctx, connection, nil)
	if err != nil {
		return nil
	}
	names := gatewayNames{}
	for _, gateway := range ofType[*pb.Gateway](gateways) {
		names[gateway.GetStatus().GetNumber()] = gateway.GetMeta().GetName()
	}
	return names
}

// namesFor are the names that a table of the kind shows; nil where it shows none.
func (g *globals) namesFor(ctx context.Context, connection *grpc.ClientConn, k *kind) gatewayNames {
	if g.structured() || !slices.ContainsFunc(k.columns, func(c column) bool { return c.gateway != nil }) {
		return nil
	}
	return listGatewayNames(ctx, connection)
}
