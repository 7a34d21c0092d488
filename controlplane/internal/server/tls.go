package server

import (
	"crypto/tls"
	"time"

	"sluice.dev/sluice/proto/client"
)

// reloadEvery bounds the time until a renewed certificate is used. Clients cause the handshakes, so not every handshake may read
// the files.
const reloadEvery = time.Minute

// ServerTLS requires a certificate of the CA from every client. It reads the files again when they change. Errors: those of
// client.NewReloader.
func ServerTLS(files client.Files) (*tls.Config, error) {
	reloader, err := client.NewReloader(files, reloadEvery)
	if err != nil {
		return nil, err
	}
	return serverTLS(reloader, tls.RequireAndVerifyClientCert, "h2"), nil
}

// ConsoleTLS is ServerTLS for HTTPS: a client may show a certificate of the CA, and need not.
func ConsoleTLS(files client.Files) (*tls.Config, error) {
	reloader, err := client.NewReloader(files, reloadEvery)
	if err != nil {
		return nil, err
	}
	return serverTLS(reloader, tls.VerifyClientCertIfGiven, "h2", "http/1.1"), nil
}

func serverTLS(reloader *client.Reloader, clients tls.ClientAuthType, protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := reloader.Current()
			return &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{now.Certificate},
				ClientCAs: now.Authorities, ClientAuth: clients, NextProtos: protocols,
			}, nil
		},
	}
}
