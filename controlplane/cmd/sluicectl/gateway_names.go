package main

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// gatewayNames are the names of gateways by number. Messages of the API refer to the owner of a volume by its number.
type gatewayNames map[uint32]string

// of returns the name of a gateway, "-" for the number 0, which is no gateway. A removed gateway is shown by its number.
func (names gatewayNames) of(gateway uint32) string {
	if name := names[gateway]; name != "" {
		return name
	}
	if gateway == 0 {
		return "-"
	}
	return "number " + number(gateway)
}

// gatewayLister is the part of the kind gateway that lists. The kind itself has commands that need the names.
var gatewayLister = &kind{message: "Gateway", messages: "Gateways", field: "gateway", fields: "gateways"}

// listGatewayNames returns no names to a caller that may not list gateways, who then sees numbers.
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

// namesFor returns the names for a table of the kind; nil if it shows none.
func (g *globals) namesFor(ctx context.Context, connection *grpc.ClientConn, k *kind) gatewayNames {
	if g.structured() || !slices.ContainsFunc(k.columns, func(c column) bool { return c.gateway != nil }) {
		return nil
	}
	return listGatewayNames(ctx, connection)
}
