// Command etcd is one member of a small etcd cluster on loopback, with the limits that Sluice requires, for tests that stop
// members.
package main

import (
	"flag"
	"log"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	config := embed.NewConfig()
	var client, peer string
	flag.StringVar(&config.Name, "name", "", "the member")
	flag.StringVar(&config.Dir, "data-dir", "", "its directory")
	flag.StringVar(&client, "client", "", "URL for clients")
	flag.StringVar(&peer, "peer", "", "URL for other members")
	flag.StringVar(&config.InitialCluster, "members", "", "all as name=url,...")
	flag.Int64Var(&config.QuotaBackendBytes, "quota-backend-bytes", 0, "the most space of its database; 0: etcd's default")
	flag.Parse()
	config.MaxTxnOps, config.MaxRequestBytes = 16384, 8<<20
	config.LogLevel = "warn"
	config.ListenClientUrls, config.AdvertiseClientUrls = urls(client), urls(client)
	config.ListenPeerUrls, config.AdvertisePeerUrls = urls(peer), urls(peer)
	server, err := embed.StartEtcd(config)
	if err != nil {
		log.Fatal(err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	select {
	case err = <-server.Err():
	case <-stop:
	}
	server.Close()
	if err != nil {
		log.Fatal(err)
	}
}

func urls(text string) []url.URL {
	parsed, err := url.Parse(text)
	if err != nil {
		log.Fatal(err)
	}
	return []url.URL{*parsed}
}
