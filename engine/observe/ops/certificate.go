// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

const (
	// selfSignedLife is the validity of a self-signed certificate. The process makes the next one after half of it.
	selfSignedLife = 365 * 24 * time.Hour
	// filesLookedAt is the least time between two reads of a certificate's files. A kubelet or cert-manager replaces them
	// long before the old certificate expires.
	filesLookedAt = 10 * time.Second
)

// certificates provides a TLS server with its certificate.
type certificates struct {
	// certFile and keyFile have the certificate and its key as PEM. Without them the process signs its own.
	certFile, keyFile string
	log               logr.Logger

	mu sync.Mutex
	// current is the certificate for the next client, read from the texts cert and key. Next is when to read the files again.
	current   *tls.Certificate
	cert, key []byte
	next      time.Time
}

// get returns the certificate for a client that connects now. If the files cannot be read or do not match, it logs the error
// and returns the previous certificate.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && time.Now().Before(c.next) {
		return c.current, nil
	}
	err := c.renew()
	if err != nil && c.current == nil {
		return nil, err
	}
	if err != nil {
		c.log.Error(err, "loading certificate failed; the previous one stays in use")
		c.next = time.Now().Add(filesLookedAt)
	}
	return c.current, nil
}

// renew reads the files, or signs a certificate.
func (c *certificates) renew() error {
	if c.certFile == "" {
		made, err := selfSigned(time.Now())
		if err != nil {
			return fmt.Errorf("making a certificate: %w", err)
		}
		c.current, c.next = made, time.Now().Add(selfSignedLife/2)
		return nil
	}
	cert, err := os.ReadFile(c.certFile)
	if err != nil {
		return fmt.Errorf("reading the certificate: %w", err)
	}
	key, err := os.ReadFile(c.keyFile)
	if err != nil {
		return fmt.Errorf("reading the certificate's key: %w", err)
	}
	c.next = time.Now().Add(filesLookedAt)
	if c.current != nil && bytes.Equal(cert, c.cert) && bytes.Equal(key, c.key) {
		return nil
	}
	read, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("reading the certificate %s with the key %s: %w", c.certFile, c.keyFile, err)
	}
	c.current, c.cert, c.key = &read, cert, key
	return nil
}

// selfSigned returns a certificate for the names by which this process may be reached without a Service: its host name and
// localhost. Clients must be configured to trust it, as Prometheus with insecure_skip_verify.
func selfSigned(now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	names := []string{"localhost"}
	if host, err := os.Hostname(); err == nil && host != "" {
		names = append(names, host)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: names[len(names)-1]},
		DNSNames:     names,
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:    now.Add(-time.Hour), // clocks differ
		NotAfter:     now.Add(selfSignedLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
