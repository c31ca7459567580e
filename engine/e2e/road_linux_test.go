// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestTheRoad goes the whole road of an operator, from init to a cluster that has nothing of it, as hack/road.sh types it. The
// operator's processes run from the image, as the Pods of the Deployment say.
func TestTheRoad(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, who alone may mount a file system and change the root folder")
	}
	root, config := unpackedImage(t)
	node := newKubelet(t, "road-system", root, config)

	tools := t.TempDir()
	for name, program := range map[string]string{"kubectl": plane.Kubectl(t), "operator": filepath.Join(root, "operator")} {
		if err := os.Symlink(program, filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	road := cluster.Command(t.Context(), "../../hack/road.sh")
	road.Env = append(os.Environ(), "KUBECONFIG="+cluster.WriteKubeconfig(t, plane.Config()), "PATH="+tools+":"+os.Getenv("PATH"), "HOME="+t.TempDir())
	road.Stdout, road.Stderr = t.Output(), t.Output()
	// With the script end the commands that it waits for.
	road.Cancel = func() error { return syscall.Kill(-road.Process.Pid, syscall.SIGKILL) }
	ended := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() {
		runtime.LockOSThread()
		ended <- road.Run()
	})
	t.Cleanup(running.Wait)
	for on := true; on; {
		select {
		case event := <-node.pods.ResultChan():
			node.sees(event)
		case err := <-ended:
			if err != nil {
				t.Errorf("hack/road.sh: %v", err)
			}
			on = false
		}
	}
	if started, ended := len(node.runs), len(node.ended); started < 4 || started != ended {
		t.Errorf("%d processes were started and %d ended, want those of two Pods, and of two more with the new configuration", started, ended)
	}
	for _, run := range node.ended {
		mustLogNoError(t, run.Lines)
	}
}
