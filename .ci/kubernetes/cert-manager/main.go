// Command cert-manager runs those of cert-manager's controllers that issue certificates of an authority in the cluster, and of one
// that signs itself, until it is ended. Its own program cannot be had as a Go module: its packages can, so this is what issues
// certificates elsewhere, without webhooks, metrics and the issuers that ask others. It is what the end-to-end test has instead.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	controllers, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Second,
			CertificateRequestMaximumBackoffDuration: time.Minute,
		},
	})
	if err != nil {
		return err
	}
	all, err := controllers.Build()
	if err != nil {
		return err
	}
	running, ctx := errgroup.WithContext(ctx)
	for _, name := range slices.Sorted(maps.Keys(controller.Known())) {
		each, err := controller.Known()[name](controllers)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		running.Go(func() error { return each.Run(2, ctx) })
	}
	all.SharedInformerFactory.Start(ctx.Done())
	all.KubeSharedInformerFactory.Start(ctx.Done())
	return running.Wait()
}
