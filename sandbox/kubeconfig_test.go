// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/sandbox"
)

func TestTheKubeconfigOfARunningSandboxIsNotTouched(t *testing.T) {
	t.Parallel()
	o := sandbox.Options{Kubeconfig: filepath.Join(t.TempDir(), "config"), NoWorkloads: true}
	first := sandbox.New(t, o)
	_, err := sandbox.Start(t.Context(), o)
	if want := "writing kubeconfig " + o.Kubeconfig + ": the file is that of a sandbox that runs: another process uses it"; !errors.Is(err, sandbox.ErrInUse) || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	if _, err := client(t, first).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the first sandbox: %v", err)
	}
}

func TestTheKubeconfigIsReplacedWhenNothingUsesIt(t *testing.T) {
	t.Parallel()
	stale := func(t *testing.T, path string) {
		s := sandbox.New(t, sandbox.Options{Kubeconfig: path, NoWorkloads: true})
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s.Stop()
		if err := os.WriteFile(path, content, 0o644); err != nil { // as if the process had been killed
			t.Fatal(err)
		}
	}
	for name, before := range map[string]func(t *testing.T, path string){
		"left by a killed sandbox": stale,
		"empty": func(t *testing.T, path string) {
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		},
		"in a folder that does not exist": func(t *testing.T, path string) {
			if err := os.Remove(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "folder", "config")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			before(t, path)
			s := sandbox.New(t, sandbox.Options{Kubeconfig: path, NoWorkloads: true})
			if _, err := client(t, s).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Error(err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the file has the mode %v: %v", info.Mode(), err)
			}
		})
	}
}

func TestAKubeconfigIsAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{filepath.Dir(file): "it is not a regular file", filepath.Join(file, "config"): "not a directory"} {
		if _, err := sandbox.Start(t.Context(), sandbox.Options{Kubeconfig: path}); err == nil || err.Error() != "writing kubeconfig "+path+": "+want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func TestASecondStopLeavesTheFilesOfTheNextSandbox(t *testing.T) {
	t.Parallel()
	o := sandbox.Options{Keep: t.TempDir(), NoWorkloads: true}
	first := sandbox.New(t, o)
	first.Stop()
	second := sandbox.New(t, o)
	first.Stop()
	if _, err := os.Stat(second.Kubeconfig()); err != nil {
		t.Error(err)
	}
}

func TestAStartThatFailsLeavesTheFolderToOthers(t *testing.T) {
	t.Parallel()
	o := sandbox.Options{Keep: t.TempDir(), Kubeconfig: t.TempDir(), NoWorkloads: true}
	if _, err := sandbox.Start(t.Context(), o); err == nil {
		t.Fatal("a folder is the kubeconfig")
	}
	o.Kubeconfig, o.Address = "", "256.0.0.1:0"
	if _, err := sandbox.Start(t.Context(), o); err == nil {
		t.Fatal("it listens on an address that cannot exist")
	}
	o.Address = ""
	sandbox.New(t, o) // it fails if the folder is locked
}

func TestACleanupOfATestMayUseTheSandbox(t *testing.T) {
	t.Parallel()
	clients := client(t, sandbox.New(t, sandbox.Options{NoWorkloads: true}))
	t.Cleanup(func() {
		// The context of the test has ended.
		if err := clients.CoreV1().Namespaces().Delete(context.Background(), "default", metav1.DeleteOptions{}); err != nil && !apierrors.IsForbidden(err) {
			t.Error(err)
		}
	})
}
