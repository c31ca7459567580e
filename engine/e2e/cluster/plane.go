// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// planeStart and planeStop are the timeouts of the control plane, for a machine with other load.
	planeStart = 3 * time.Minute
	planeStop  = 30 * time.Second
	tailLines  = 15
)

// auditPolicy logs each write twice, when it arrives and when it is answered: a test that sees a write's effect can
// rely on the first line, and wait for the second.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
  verbs: [get, list, watch]
- level: Metadata
  omitStages: [ResponseStarted]
`

// startPlane starts the control plane and returns its kubeconfig.
func (c *Cluster) startPlane(crds []string) (kubeconfig string, err error) {
	program := c.controlPlane()
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("%w (run `make controlplane`, or set $%s or $%s)", err, ControlPlaneVariable, KubeconfigVariable)
	}
	policy, state := filepath.Join(c.dir, "audit-policy.yaml"), filepath.Join(c.dir, "plane")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return "", err
	}
	args := []string{"start", "--dir", state, "--audit-policy", policy}
	// With its default of 20 requests a second, the namespace controller falls ever further behind: each deleted
	// namespace costs it a request or two for each resource, and each test has a namespace.
	for _, arg := range []string{"--kube-api-qps=500", "--kube-api-burst=1000"} {
		args = append(args, "--arg", "kube-controller-manager="+arg)
	}
	if c.bare {
		args = append(args, "--without", "kcm,scheduler,kwok")
	}
	for _, path := range crds {
		args = append(args, "--crds", path)
	}
	// The launcher stops its components in order when it is asked to stop.
	if c.plane, err = startProcess(exec.Command(program, args...), newLines(), syscall.SIGTERM); err != nil {
		return "", err
	}
	if err := c.plane.lines.wait(time.After(planeStart), 1, "ready: "); err != nil {
		c.plane.stop(planeStop)
		said := strings.Join(c.plane.lines.All(), "\n")
		c.plane = nil
		return "", fmt.Errorf("%w:\n%s\n%s", err, said, tails(state))
	}
	c.audit = &auditLog{path: filepath.Join(state, "audit.log")}
	return filepath.Join(state, "kubeconfig"), nil
}

// controlPlane is the path of the control plane's program.
func (c *Cluster) controlPlane() string {
	if program := os.Getenv(ControlPlaneVariable); program != "" {
		return program
	}
	return filepath.Join(c.root, "bin", "controlplane")
}

// Kubectl returns the path of kubectl. It is built with the control plane, and is beside it or in the folder
// KUBEBUILDER_ASSETS.
func (c *Cluster) Kubectl(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		dir = filepath.Dir(c.controlPlane())
	}
	program, err := filepath.Abs(filepath.Join(dir, "kubectl"))
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		t.Fatalf("finding kubectl: %v (run `make controlplane`)", err)
	}
	return program
}

// stopPlane returns an error if the control plane had ended before, or does not stop properly.
func (c *Cluster) stopPlane() error {
	select {
	case <-c.plane.done:
		return fmt.Errorf("it had ended by itself:\n%s", strings.Join(c.plane.lines.All(), "\n"))
	default:
	}
	if !c.plane.stop(planeStop) {
		return errors.New("it had to be killed")
	}
	if code := c.plane.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("exit code %d:\n%s", code, strings.Join(c.plane.lines.All(), "\n"))
	}
	return nil
}

// tails returns the ends of the components' logs.
func tails(dir string) string {
	var out strings.Builder
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log")) // fails only for a wrong pattern
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil || filepath.Base(path) == "audit.log" {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&out, "%s:\n  %s\n", filepath.Base(path), strings.Join(lines[max(0, len(lines)-tailLines):], "\n  "))
	}
	return out.String()
}
