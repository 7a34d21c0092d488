package main

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// prolong signs all certificates of a directory again, with the same keys, subjects and names, valid from 2020 for a hundred years.
func prolong(directory string) error {
	authority, err := certificate(filepath.Join(directory, "ca.crt"))
	if err != nil {
		return err
	}
	signer, err := key(filepath.Join(directory, "ca.key"))
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(directory, "*.crt"))
	if err != nil {
		return err
	}
	for _, file := range files {
		template, err := certificate(file)
		if err != nil {
			return err
		}
		template.NotBefore = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		template.NotAfter = template.NotBefore.AddDate(100, 0, 0)
		signed, err := x509.CreateCertificate(rand.Reader, template, authority, template.PublicKey, signer)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func decode(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(text)
	if block == nil || len(rest) > 0 {
		return nil, errors.New(file + " is not one PEM block")
	}
	return block.Bytes, nil
}

func certificate(file string) (*x509.Certificate, error) {
	bytes, err := decode(file)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(bytes)
}

func key(file string) (crypto.Signer, error) {
	bytes, err := decode(file)
	if err != nil {
		return nil, err
	}
	return x509.ParseECPrivateKey(bytes)
}
