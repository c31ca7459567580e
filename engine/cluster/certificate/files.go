// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// filesLookedAt is the time between two reads of files. A kubelet and cert-manager replace them long before a certificate expires.
const filesLookedAt = 10 * time.Second

// Files has the certificate that somebody else keeps in a folder, as cert-manager does in a mounted Secret: tls.crt and tls.key, and
// the bundle in ca.crt. Its methods may be called from any goroutine, Follow once.
type Files struct {
	dir     string
	log     logr.Logger
	read    atomic.Pointer[files]
	changes chan struct{}
}

// files are the contents of the files.
type files struct {
	cert, key, bundle []byte
	pair              tls.Certificate
}

// NewFiles returns the certificate in a folder. It reads nothing yet.
func NewFiles(dir string, log logr.Logger) *Files {
	return &Files{dir: dir, log: log, changes: make(chan struct{}, 1)}
}

// Certificate returns the certificate for a client that connects now. It returns an error while the files could not be read.
func (f *Files) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if now := f.read.Load(); now != nil {
		return &now.pair, nil
	}
	return nil, errors.New("serving webhooks: no certificate was read from " + f.dir)
}

// Bundle returns the CAs that clients should trust, in PEM; nil while the files could not be read. Without ca.crt it is empty: API servers
// then trust the CAs of their systems.
func (f *Files) Bundle() []byte {
	if now := f.read.Load(); now != nil {
		return bytes.Clone(now.bundle)
	}
	return nil
}

// Changes returns a channel for one reader. It has an element after the certificate or the bundle has changed.
func (f *Files) Changes() <-chan struct{} { return f.changes }

// Follow reads the files now and every ten seconds until ctx ends. If they cannot be read or do not fit together, the last ones stay
// in use. An error is logged once.
func (f *Files) Follow(ctx context.Context) error {
	tick := time.NewTicker(filesLookedAt)
	defer tick.Stop()
	last := ""
	for {
		err := f.look()
		switch text := fmt.Sprint(err); {
		case err == nil && last != "":
			f.log.Info("certificate is loaded again")
			last = ""
		case err != nil && text != last:
			f.log.Error(err, "loading certificate failed; the previous one stays in use")
			last = text
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look reads the files.
func (f *Files) look() error {
	next := &files{}
	for _, each := range []struct {
		name string
		into *[]byte
	}{{certKey, &next.cert}, {privateKey, &next.key}, {bundleKey, &next.bundle}} {
		text, err := os.ReadFile(filepath.Join(f.dir, each.name))
		if err != nil && (each.name != bundleKey || !errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("reading the certificate: %w", err)
		}
		*each.into = append([]byte{}, text...)
	}
	if now := f.read.Load(); now != nil && bytes.Equal(now.cert, next.cert) && bytes.Equal(now.key, next.key) && bytes.Equal(now.bundle, next.bundle) {
		return nil
	}
	var err error
	if next.pair, err = tls.X509KeyPair(next.cert, next.key); err != nil {
		return fmt.Errorf("reading the certificate in %s: %w", f.dir, err)
	}
	f.read.Store(next)
	signal(f.changes)
	return nil
}
