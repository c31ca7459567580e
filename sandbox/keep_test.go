// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

func TestAKeptStateComesBackWhenItsFileIsGone(t *testing.T) {
	k, server := keeping(t)
	for range 2 {
		if err := k.save(server); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(k.file()); err != nil { // it is there
			t.Fatal(err)
		}
	}
}

func TestAStateThatCannotBeKeptIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, server := keeping(t)
		if err := os.RemoveAll(k.dir); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*often)
		defer stop()
		var said []string
		k.run(ctx, server, func(err error) { said = append(said, err.Error()) })
		if want := "writing " + k.file() + ": no such file or directory"; len(said) != 1 || said[0] != want {
			t.Errorf("it says %q, want %q once", said, want)
		}
	})
}

func TestAFileCannotKeepObjects(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newKeeper(file); err == nil || err.Error() != "keeping objects in "+file+": not a directory" {
		t.Errorf("the error is %v", err)
	}
}

// keeping returns a keeper of a new server.
func keeping(t *testing.T) (*keeper, *server.Server) {
	t.Helper()
	server := server.New(server.Settings{})
	k, err := newKeeper(filepath.Join(t.TempDir(), "kept"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.unlock)
	if _, err := k.load(server); err != nil {
		t.Fatal(err)
	}
	return k, server
}
