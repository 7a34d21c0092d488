// Command coredns is the test cluster's name server: CoreDNS with the few plugins that cluster.local needs. The whole of it
// would bring the client libraries of three clouds along.
package main

import (
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"

	"github.com/coredns/coredns/coremain"
)

func main() { coremain.Run() }
