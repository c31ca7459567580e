// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestASandboxServesUntilItIsStopped holds that a client can use the printed kubeconfig, and that the file goes with the sandbox.
func TestASandboxServesUntilItIsStopped(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	said, out := io.Pipe()
	b := newBench(t)
	b.Out = out
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- b.execute(ctx, []string{"sandbox", "--kubeconfig", file}) }()
	line := make([]byte, 1024)
	n, err := said.Read(line)
	if got, want := strings.TrimSpace(string(line[:n])), "export KUBECONFIG="+file; err != nil || got != want {
		t.Fatalf("it says %q (%v), want %q", got, err, want)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d: %s", code, b.err.String())
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig is still there: %v", err)
	}
}
