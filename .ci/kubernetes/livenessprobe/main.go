// Command livenessprobe answers a kubelet's question over HTTP whether a CSI driver works, by the flags of the sidecar of that name:
// none of that one's versions can be had as a Go module (they are 2.x, and its path has no /v2). Only for tests.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const patience = 3 * time.Second

func main() {
	socket := flag.String("csi-address", "", "socket of the driver")
	port := flag.Int("health-port", 0, "port that /healthz is answered on")
	flag.Parse()
	connection, err := grpc.NewClient("unix://"+*socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		if err := probe(ctx, connection); err != nil {
			log.Print(err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	server := &http.Server{Addr: fmt.Sprintf(":%d", *port), ReadHeaderTimeout: patience}
	log.Fatal(server.ListenAndServe())
}

// probe is an error where the driver does not answer, or says that it is not ready.
func probe(ctx context.Context, connection *grpc.ClientConn) error {
	answer, err := csi.NewIdentityClient(connection).Probe(ctx, &csi.ProbeRequest{})
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if ready := answer.GetReady(); ready != nil && !ready.GetValue() {
		return fmt.Errorf("the driver is not ready")
	}
	return nil
}
