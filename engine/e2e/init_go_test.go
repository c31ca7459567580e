// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

// commands runs a command in a folder as a person does, with the admin's kubeconfig and kubectl, and returns its output.
func commands(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	if name == "kubectl" {
		name = plane.Kubectl(t)
	}
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.WriteKubeconfig(t, plane.Config()), "GOFLAGS=-mod=readonly")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// TestTheFirstTenMinutesInGo types the commands of docs/go.md: the module that operator init --go writes builds, prints its CRD, runs,
// and kubectl shows the column that the Go type has.
func TestTheFirstTenMinutesInGo(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	ns, group, dir := plane.Namespace(t), ownGroup("ten"), filepath.Join(t.TempDir(), "webapp")
	t.Cleanup(func() { plane.Objects(crds, "").Delete(t, "webapps."+group) })
	var said bytes.Buffer
	init := []string{"init", "--go", "webapp", "--dir", dir, "--resource", "webapps.v1alpha1." + group, "--kind", "WebApp", "--replace", root}
	if code := cmd.Run(t.Context(), init, cmd.Streams{Out: &said, Err: &said}, handlers.Standard()); code != 0 {
		t.Fatalf("init: exit code %d\n%s", code, said.String())
	}
	commands(t, dir, "go", "build", "-o", "webapp", ".")
	if err := os.WriteFile(filepath.Join(dir, "crd.yaml"), []byte(commands(t, dir, "./webapp", "crd")), 0o600); err != nil {
		t.Fatal(err)
	}
	commands(t, dir, "kubectl", "apply", "--server-side", "-f", "crd.yaml")
	commands(t, dir, "kubectl", "wait", "--for=condition=Established", "crd/webapps."+group, "--timeout=2m")
	program := plane.Operator(t, cluster.Launch{Program: filepath.Join(dir, "webapp"), Args: []string{"run", "-n", ns}})
	commands(t, dir, "kubectl", "apply", "-n", ns, "-f", "example.yaml")
	plane.Objects("webapps.v1alpha1."+group, ns).Await(t, "example", "two ready replicas", func(o *unstructured.Unstructured) bool {
		n, _, _ := unstructured.NestedInt64(o.Object, "status", "readyReplicas")
		return n == 2
	})
	shown := commands(t, dir, "kubectl", "get", "webapps."+group, "-n", ns)
	if want := `^NAME +READY +AGE\nexample +2 +[0-9]+s\n$`; !regexp.MustCompile(want).MatchString(shown) {
		t.Errorf("kubectl get webapps shows\n%s\nwant %s", shown, want)
	}
	if exit := program.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	mustLogNoError(t, program.Lines)
}
