// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	if err := <-s.ended; err == nil || !strings.HasPrefix(err.Error(), "writing kubeconfig "+file) {
		t.Errorf("the play ended with %v", err)
	}
	if data, err := os.ReadFile(file); string(data) != others {
		t.Errorf("the kubeconfig is %q: %v", data, err)
	}
}
