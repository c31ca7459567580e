// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// notes is an operator that keeps a ConfigMap for each Note, with an example in no namespace.
func notes(t *testing.T, group string) (dir, operator string) {
	t.Helper()
	dir = t.TempDir()
	operator = fmt.Sprintf(`apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: %[2]s}
resources:
  - resource: notes.v1.%[1]s
    schema: {kind: Note, spec: {text: string}}
    handlers:
      - id: copy
        apply:
          copy: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}"}, data: {text: "${self.spec.text}"}}
`, group, strings.ReplaceAll(group, ".", "-"))
	writeIn(t, dir, "operator.yaml", operator)
	writeIn(t, dir, "example.yaml", fmt.Sprintf("{apiVersion: %s/v1, kind: Note, metadata: {name: first}, spec: {text: hello}}\n", group))
	return dir, operator
}

func writeIn(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// kubeconfigIn writes a kubeconfig of the cluster whose context has a namespace.
func kubeconfigIn(t *testing.T, ns string) string {
	t.Helper()
	path := cluster.WriteKubeconfig(t, plane.Config())
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = ns
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPlayInACluster plays against the control plane: the CRD is installed, the example comes, a file changes, and what was written
// stays after Ctrl-C.
func TestPlayInACluster(t *testing.T) {
	t.Parallel()
	ns, other, group := plane.Namespace(t), plane.Namespace(t), ownGroup("play")
	dir, operator := notes(t, group)
	t.Cleanup(func() { plane.Objects(crds, "").Delete(t, "notes."+group) })
	temporary := t.TempDir()
	program := plane.Operator(t, cluster.Launch{
		Args: []string{"play", "--cluster", "--yes", "--examples", "--config", dir, "-n", ns},
		Env:  []string{"KUBECONFIG=" + kubeconfigIn(t, other), "TMPDIR=" + temporary},
	})
	program.Await(t, "namespaces "+ns)
	program.Await(t, "crds/notes."+group)
	maps := plane.Objects("configmaps.v1", ns)
	says := func(text string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			got, _, _ := unstructured.NestedString(o.Object, "data", "text")
			return got == text
		}
	}
	maps.Await(t, "first", "having the text", says("hello"))
	program.Await(t, "configmaps/"+ns+"/first")

	all := plane.Objects("notes.v1."+group, ns)
	elsewhere := plane.Objects("notes.v1."+group, other)
	note := all.Get(t, "first").DeepCopy()
	note.Object = map[string]any{"apiVersion": group + "/v1", "kind": "Note", "metadata": map[string]any{"name": "second"}, "spec": map[string]any{"text": "bye"}}
	elsewhere.Create(t, note.DeepCopy())
	writeIn(t, dir, "operator.yaml", strings.Replace(operator, `"${self.spec.text}"`, `"${self.spec.text}!"`, 1))
	program.Await(t, "operator.yaml changed: the operator starts again")
	maps.Await(t, "first", "having the new text", says("hello!"))
	writeIn(t, dir, "operator.yaml", strings.Replace(operator, "apply:", "aply:", 1))
	program.Await(t, "the configuration has changed, and the last one goes on")
	all.Create(t, note)
	maps.Await(t, "second", "being made by the last configuration", says("bye!"))

	program.Signal(t, os.Interrupt)
	if exit := program.Wait(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	maps.Get(t, "second")
	all.Get(t, "first")
	if got := plane.Objects("configmaps.v1", other).List(t); len(got) != 1 {
		t.Errorf("it has worked in another namespace: %v", got)
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	if lines := program.With("API server in this process"); len(lines) > 0 {
		t.Errorf("it says %s", lines)
	}
}

// TestPlayInAClusterAsksFirst holds that nothing is written without consent, or without a cluster.
func TestPlayInAClusterAsksFirst(t *testing.T) {
	t.Parallel()
	group := ownGroup("asks")
	dir, _ := notes(t, group)
	empty := filepath.Join(t.TempDir(), "kubeconfig")
	writeIn(t, filepath.Dir(empty), "kubeconfig", "apiVersion: v1\nkind: Config\n")
	for name, c := range map[string]struct {
		args       []string
		kubeconfig string
		want       string
		code       int
	}{
		"without a person":        {nil, kubeconfigIn(t, "default"), "error: without a terminal, nothing is changed unless --yes is given", 1},
		"without a context":       {[]string{"--yes"}, empty, "error: finding the API server: nothing in", 1},
		"with an unknown one":     {[]string{"--yes", "--context", "none"}, kubeconfigIn(t, "default"), `context "none" does not exist`, 1},
		"with a state to keep":    {[]string{"--yes", "--keep", "x"}, kubeconfigIn(t, "default"), "error: --keep is for an API server in the process", 2},
		"without a configuration": {[]string{"--yes", "--config", filepath.Join(dir, "none.yaml")}, kubeconfigIn(t, "default"), "no such file", 1},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"play", "--cluster"}, c.args...)
			if !strings.Contains(strings.Join(args, " "), "--config") {
				args = append(args, "--config", dir)
			}
			program := plane.Operator(t, cluster.Launch{Args: args, Env: []string{"KUBECONFIG=" + c.kubeconfig}})
			if exit := program.Wait(t); exit.Code != c.code {
				t.Errorf("exit code is %d, want %d", exit.Code, c.code)
			}
			if said := strings.Join(program.All(), "\n"); !strings.Contains(said, c.want) {
				t.Errorf("it says\n%s\nwant %s", said, c.want)
			}
		})
	}
	for _, crd := range plane.Objects(crds, "").List(t) {
		if strings.HasSuffix(crd.GetName(), group) {
			t.Errorf("CRD %s was installed", crd.GetName())
		}
	}
}
