// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestKubectlIsOfTheClustersRelease holds that the kubectl that is built with the control plane knows its release, and that of the cluster.
func TestKubectlIsOfTheClustersRelease(t *testing.T) {
	t.Parallel()
	kubectl := exec.CommandContext(t.Context(), plane.Kubectl(t), "version")
	kubectl.Env = append(os.Environ(), "KUBECONFIG="+cluster.WriteKubeconfig(t, plane.Config()))
	out, err := kubectl.CombinedOutput()
	for _, want := range []string{"Client Version: v1.", "Server Version: v1."} {
		if !strings.Contains(string(out), want) {
			t.Errorf("kubectl version has no %q: %v\n%s", want, err, out)
		}
	}
	if strings.Contains(string(out), "WARNING") {
		t.Errorf("kubectl and the cluster differ too much:\n%s", out)
	}
}
