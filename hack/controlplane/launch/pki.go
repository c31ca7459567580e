// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	validity = 10 * 365 * 24 * time.Hour
	// renewBefore is how long an authority that was found in the folder has to be good for.
	renewBefore = 30 * 24 * time.Hour
)

// authority signs certificates. It is kept in a folder, so that credentials of an earlier run in
// that folder stay good.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
}

// identity is a key pair with a certificate, both in PEM.
type identity struct {
	cert, key []byte
}

// openAuthority loads the authority of a folder or, if there is none or it is about to run out,
// makes one.
func openAuthority(dir string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making certificate folder: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	if err == nil && time.Until(pair.Leaf.NotAfter) > renewBefore {
		return &authority{dir: dir, cert: pair.Leaf, key: pair.PrivateKey.(crypto.Signer)}, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("loading authority: %w", err)
	}
	return newAuthority(dir)
}

func newAuthority(dir string) (*authority, error) {
	template := certificate(pkix.Name{CommonName: "handwerk"})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage |= x509.KeyUsageCertSign
	a := &authority{dir: dir, cert: template}
	id, err := a.sign(template)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(id.cert, id.key)
	if err != nil {
		return nil, fmt.Errorf("reading new authority: %w", err)
	}
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(crypto.Signer)
	return a, a.save("ca", id)
}

// client makes an identity that proves a user and the groups the user is in.
func (a *authority) client(user string, groups ...string) (identity, error) {
	template := certificate(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

// server makes the identity of a server with these names, which may be addresses.
func (a *authority) server(names ...string) (identity, error) {
	template := certificate(pkix.Name{CommonName: names[0]})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return a.sign(template)
}

// save writes an identity to the authority's folder as name.crt and name.key.
func (a *authority) save(name string, id identity) error {
	for suffix, data := range map[string][]byte{".crt": id.cert, ".key": id.key} {
		if err := os.WriteFile(filepath.Join(a.dir, name+suffix), data, 0o600); err != nil {
			return fmt.Errorf("saving %s: %w", name, err)
		}
	}
	return nil
}

// sign makes a key and certifies it. An authority without a key signs with the new one: itself.
func (a *authority) sign(template *x509.Certificate) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("making key: %w", err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return identity{}, fmt.Errorf("making serial number: %w", err)
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), signer)
	if err != nil {
		return identity{}, fmt.Errorf("signing %s: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return identity{}, err
	}
	return identity{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), key: keyPEM}, nil
}

func certificate(subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		Subject:   subject,
		NotBefore: time.Now().Add(-time.Minute),
		NotAfter:  time.Now().Add(validity),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}
}

// keepKey makes a private key file unless it is there. It signs service account tokens, which
// then outlive a restart.
func keepKey(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making key: %w", err)
	}
	data, err := encodeKey(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("saving key: %w", err)
	}
	return nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
