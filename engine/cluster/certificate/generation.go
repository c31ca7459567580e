// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

const (
	// life is how long a certificate is valid. Renewal begins after two thirds of it.
	life = 90 * 24 * time.Hour
	// skew is how far clocks may differ: a certificate is valid from that time before it was made.
	skew = time.Hour
)

// Hosts are the names and addresses of a certificate.
type Hosts struct {
	// Names are DNS names; see [ServiceNames].
	Names []string
	// IPs are for a process that clients reach without a Service, as on the author's machine.
	IPs []net.IP
}

// ServiceNames returns the DNS names of a Service. API servers use the first one (ResolveEndpoint of
// k8s.io/apiserver/pkg/util/webhook).
func ServiceNames(namespace, name string) []string {
	base := name + "." + namespace
	return []string{base + ".svc", base + ".svc.cluster.local", base}
}

// generation is a serving certificate with its key, and the CA that has signed it. Each generation has a CA of its own, whose key is
// dropped when the certificate is signed: nobody can sign another one.
type generation struct {
	// cert and key are PEM. Cert has the certificate and the CA.
	cert, key []byte
	leaf, ca  *x509.Certificate
	pair      tls.Certificate
}

// generate makes a generation.
func generate(hosts Hosts, now time.Time) (*generation, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a CA: %w", err)
	}
	ca, err := template(now)
	if err != nil {
		return nil, fmt.Errorf("making a CA: %w", err)
	}
	ca.Subject.CommonName = fmt.Sprintf("webhook CA %x", ca.SerialNumber.Bytes()[:4])
	ca.BasicConstraintsValid, ca.IsCA, ca.MaxPathLenZero, ca.KeyUsage = true, true, true, x509.KeyUsageCertSign
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("making a CA: %w", err)
	}
	if ca, err = x509.ParseCertificate(caDER); err != nil { // with its key's id
		return nil, fmt.Errorf("making a CA: %w", err)
	}
	return signed(hosts, ca, caKey, now)
}

// signed makes the certificate of a generation.
func signed(hosts Hosts, ca *x509.Certificate, caKey *ecdsa.PrivateKey, now time.Time) (*generation, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	leaf, err := template(now)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	if len(hosts.Names) > 0 {
		leaf.Subject.CommonName = hosts.Names[0][:min(64, len(hosts.Names[0]))] // the longest that X.520 has
	}
	leaf.DNSNames, leaf.IPAddresses = hosts.Names, hosts.IPs
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	return parse(slices.Concat(certPEM(der), certPEM(ca.Raw)), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

func template(now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, err
	}
	serial.SetBit(serial, 126, 1) // never short, and positive
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{}, NotBefore: now.Add(-skew), NotAfter: now.Add(life)}, nil
}

// parse reads a generation. It returns an error if a part is missing or does not belong to the others.
func parse(cert, key []byte) (*generation, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	if len(pair.Certificate) != 2 {
		return nil, errors.New("reading a certificate: it must be followed by its CA")
	}
	ca, err := x509.ParseCertificate(pair.Certificate[1])
	if err != nil {
		return nil, fmt.Errorf("reading a CA: %w", err)
	}
	if err := pair.Leaf.CheckSignatureFrom(ca); err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	pair.Certificate = pair.Certificate[:1] // clients have the CA
	return &generation{cert: cert, key: key, leaf: pair.Leaf, ca: ca, pair: pair}, nil
}

// isValid reports whether clients accept the generation at a time.
func (g *generation) isValid(now time.Time) bool {
	return g != nil && !now.Before(g.leaf.NotBefore) && now.Before(g.leaf.NotAfter) && now.Before(g.ca.NotAfter)
}

// renewal is when the next generation is due.
func (g *generation) renewal() time.Time {
	return g.leaf.NotBefore.Add(g.leaf.NotAfter.Sub(g.leaf.NotBefore) * 2 / 3)
}

// isFor reports whether the generation is for these hosts and no others.
func (g *generation) isFor(hosts Hosts) bool {
	return slices.Equal(sorted(g.leaf.DNSNames, g.leaf.IPAddresses), sorted(hosts.Names, hosts.IPs))
}

// servesAny reports whether the generation is for one of these hosts: clients that use that one accept it.
func (g *generation) servesAny(hosts Hosts) bool {
	of := sorted(g.leaf.DNSNames, g.leaf.IPAddresses)
	return slices.ContainsFunc(sorted(hosts.Names, hosts.IPs), func(h string) bool { return slices.Contains(of, h) })
}

func sorted(names []string, ips []net.IP) []string {
	out := slices.Clone(names)
	for _, ip := range ips {
		out = append(out, ip.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// has reports whether a bundle has a CA.
func has(bundle []byte, ca *x509.Certificate) bool { return bytes.Contains(bundle, certPEM(ca.Raw)) }
