// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/handwerk-dev/handwerk/sandbox/server"
)

func TestAStateOfAnotherVersionOfTheCRDIsLeftAsItIs(t *testing.T) {
	first := newStage(t)
	first.settings.Keep = t.TempDir()
	first.begin()
	first.awaits(`^sites/home +sites +.*Ready=True`)
	first.end()

	second := newStage(t)
	second.settings.Keep = first.settings.Keep
	second.write("operator.yaml", strings.Replace(sites, "sites.v1.example.com", "sites.v2.example.com", 1))
	second.begin()
	if err := <-second.ended; err == nil || !strings.HasPrefix(err.Error(), "installing CRD of sites.v2.example.com: objects may be stored as v1") {
		t.Errorf("the second play ended with %v", err)
	}
	third := newStage(t)
	third.settings.Keep = first.settings.Keep
	third.begin()
	third.awaits(`^sites/home +web +handler succeeded \(resume\)$`)
	third.end()
}

func TestWhatAKilledProcessHasLeftIsRemoved(t *testing.T) {
	s := newStage(t)
	s.settings.Keep = t.TempDir()
	half := filepath.Join(s.settings.Keep, ".state-123")
	if err := os.WriteFile(half, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.begin()
	s.awaits(`^sites/home +play +created$`)
	s.end()
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", half, err)
	}
}

func TestADirectoryWithAnotherKubeconfigIsRefused(t *testing.T) {
	const others = "apiVersion: v1\nkind: Config\ncurrent-context: kind-dev\n"
	s := newStage(t)
	s.settings.Keep = t.TempDir()
	file := filepath.Join(s.settings.Keep, "kubeconfig")
	if err := os.WriteFile(file, []byte(others), 0o600); err != nil {
		t.Fatal(err)
	}
	s.begin()
	if err := <-s.ended; err == nil || !strings.HasPrefix(err.Error(), "keeping objects in "+s.settings.Keep) {
		t.Errorf("the play ended with %v", err)
	}
	if data, err := os.ReadFile(file); string(data) != others {
		t.Errorf("the kubeconfig is %q: %v", data, err)
	}
}

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
