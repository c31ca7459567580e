// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
)

// TestFilesAreReadAgain holds that a replaced certificate is served without a restart. The last one stays while the files cannot be used,
// which is logged once.
func TestFilesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, one, two := t.TempDir(), made(t), made(t)
		write := func(name string, text []byte) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
			pass(filesLookedAt)
		}
		var logged atomic.Int32
		f := NewFiles(dir, funcr.New(func(string, string) { logged.Add(1) }, funcr.Options{}))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Follow(ctx) }()
		pass(time.Minute)
		if _, err := f.Certificate(nil); err == nil || f.Bundle() != nil || logged.Load() != 1 {
			t.Errorf("without files: %v, %d lines", err, logged.Load())
		}
		serves := func(want *generation, bundle []byte, lines int32) {
			t.Helper()
			got, err := f.Certificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Certificate[0], want.leaf.Raw) || !bytes.Equal(f.Bundle(), bundle) || logged.Load() != lines {
				t.Errorf("another certificate, the bundle %q, or %d lines", f.Bundle(), logged.Load())
			}
		}
		write("tls.key", one.key)
		logged.Store(0)
		write("tls.crt", one.cert)
		serves(one, []byte{}, 1) // is loaded again
		<-f.Changes()
		write("ca.crt", []byte("x"))
		serves(one, []byte("x"), 1)
		<-f.Changes()
		write("tls.crt", two.cert)
		pass(time.Hour)
		serves(one, []byte("x"), 2) // cannot be read
		write("tls.key", two.key)
		serves(two, []byte("x"), 3)
		if err := os.Remove(filepath.Join(dir, "tls.crt")); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		serves(two, []byte("x"), 4)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func made(t *testing.T) *generation {
	t.Helper()
	g, err := generate(hosts, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return g
}
