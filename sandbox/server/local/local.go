// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package local serves an API server in memory on a port of this machine, by TLS, and makes the kubeconfig for it.
package local

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Listener is an API server that can be reached on a port.
type Listener struct {
	// URL is where it serves, and Certificate the PEM of the certificate by which it is known.
	URL         string
	Certificate []byte

	server *server.Server
	web    *http.Server
	// ended is closed when it serves no more.
	ended chan struct{}
}

// Listen serves an API server on an address such as 127.0.0.1:0 until the context ends. It serves when Listen returns.
// The handler answers requests; nil means [server.Server.Guarded].
func Listen(ctx context.Context, server *server.Server, address string, handler http.Handler) (*Listener, error) {
	port, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	pair, certificate, err := certify(port.Addr().(*net.TCPAddr).IP)
	if err != nil {
		_ = port.Close()
		return nil, fmt.Errorf("making a certificate for %s: %w", address, err)
	}
	server.Certify(string(certificate))
	l := &Listener{URL: "https://" + port.Addr().String(), Certificate: certificate, server: server, ended: make(chan struct{})}
	requests, cancel := context.WithCancel(ctx)
	if handler == nil {
		handler = server.Guarded()
	}
	l.web = &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(nothing{}, "", 0),
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	go func() {
		defer close(l.ended)
		defer cancel()
		_ = l.web.ServeTLS(port, "", "") // it ends by Close, which is what its error says
	}()
	context.AfterFunc(ctx, func() { _ = l.web.Close() })
	return l, nil
}

// nothing drops the errors of connections: they are those of clients that have gone.
type nothing struct{}

// Write drops a line.
func (nothing) Write(p []byte) (int, error) { return len(p), nil }

// Wait returns when the listener has ended.
func (l *Listener) Wait() { <-l.ended }

// Kubeconfig returns a kubeconfig with all rights and one context of this name.
func (l *Listener) Kubeconfig(name string) ([]byte, error) {
	out := api.NewConfig()
	out.Clusters[name] = &api.Cluster{Server: l.URL, CertificateAuthorityData: l.Certificate}
	out.AuthInfos[name] = &api.AuthInfo{Token: l.server.Token(server.Administrator())}
	out.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	out.CurrentContext = name
	return clientcmd.Write(*out)
}

// life is how long a certificate is valid.
const life = 365 * 24 * time.Hour

// certify makes a certificate that signs itself. A key on a curve takes less than a millisecond.
func certify(ip net.IP) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "kube-apiserver"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(life), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes.default.svc"}, IPAddresses: []net.IP{ip},
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data})
	return tls.Certificate{Certificate: [][]byte{data}, PrivateKey: key}, certificate, nil
}
