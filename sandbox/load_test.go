// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/handwerk-dev/handwerk/sandbox"
)

const widgetCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// write writes a file in a folder of the test, and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// configMaps returns the names of the ConfigMaps that are loaded, with their namespaces.
func configMaps(t *testing.T, s *sandbox.Sandbox) (out []string) {
	t.Helper()
	list, err := kubernetes.NewForConfigOrDie(s.Config()).CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Items {
		if c.Name != "kube-root-ca.crt" {
			out = append(out, c.Namespace+"/"+c.Name)
		}
	}
	return out
}

func TestFilesOfManyFormsAreLoaded(t *testing.T) {
	t.Parallel()
	const one, two = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two","namespace":"shop"}}`
	for name, test := range map[string]struct{ file, text string }{
		"YAML with several documents":  {"a.yaml", "# first\n---\n" + one + "\n---\n# none\n--- # second\n" + two + "\n---\n"},
		"YAML with Windows' lines":     {"a.yml", strings.ReplaceAll("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n---\n"+two, "\n", "\r\n")},
		"a list in YAML":               {"a.yaml", "apiVersion: v1\nkind: List\nitems:\n- " + one + "\n- " + two + "\n"},
		"a list in JSON":               {"a.json", `{"apiVersion":"v1","kind":"List","items":[` + one + "," + two + "]}"},
		"a list of the API server":     {"a.json", `{"apiVersion":"v1","kind":"ConfigMapList","items":[{"metadata":{"name":"one"}},{"metadata":{"name":"two","namespace":"shop"}}]}`},
		"JSON with several values":     {"a.json", one + "\n" + two},
		"JSON values in one line":      {"a.json", one + two},
		"YAML that looks like JSON":    {"a.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n---\n" + two},
		"a file that is no file of it": {"a.yaml", "\ufeff" + one + "\n---\n" + two},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sandbox.New(t, sandbox.Options{NoWorkloads: true, Load: []string{filepath.Dir(write(t, test.file, test.text))}})
			if diff := cmp.Diff([]string{"default/one", "shop/two"}, configMaps(t, s)); diff != "" {
				t.Errorf("the ConfigMaps (-want +got):\n%s", diff)
			}
			in := sandbox.New(t, sandbox.Options{NoWorkloads: true, Load: []string{"-"}, Input: strings.NewReader(test.text)})
			if diff := cmp.Diff([]string{"default/one", "shop/two"}, configMaps(t, in)); diff != "" {
				t.Errorf("the ConfigMaps of the input (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCRDsComeBeforeTheirObjects(t *testing.T) {
	t.Parallel()
	const widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: one}\n"
	crds := write(t, "crd.yaml", "kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\n---\n"+widgetCRD)
	objects := write(t, "widget.yaml", widget)
	sandbox.New(t, sandbox.Options{CRDs: []string{filepath.Dir(crds)}, Load: []string{objects}})
	sandbox.New(t, sandbox.Options{Load: []string{write(t, "all.yaml", widget+"---\n"+widgetCRD)}})
	if err := sandbox.New(t, sandbox.Options{}).LoadFiles(crds[:len(crds)-len("crd.yaml")]); err == nil || !strings.Contains(err.Error(), "Kustomization") {
		t.Errorf("loading a Kustomization: %v", err)
	}
}

func TestAllFaultsOfFilesComeAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.yaml":     "# a comment\n\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n---\napiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: b\n",
		"bad.yaml":   "apiVersion: v1\n---\n\na: b\n  c: d\n",
		"bad.json":   "{\"a\":\n 1,\n}",
		"list.yaml":  "kind: List\napiVersion: v1\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: fine}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {}\n- text\n",
		"text.yaml":  "text\n",
		"twice.yaml": "kind: ConfigMap\nkind: Secret\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := sandbox.Start(t.Context(), sandbox.Options{Load: []string{dir, filepath.Join(dir, "gone"), "-"}, CRDs: []string{filepath.Join(dir, "text.yaml"), filepath.Join(dir, "list.yaml")}})
	got := strings.Split(strings.ReplaceAll(err.Error(), dir+"/", ""), "\n")
	want := []string{
		"loading text.yaml:1: the document is not an object",
		"loading CRDs of list.yaml: there is none",
		"loading bad.yaml: yaml: line 5: mapping values are not allowed in this context",
		"loading pipe.yaml: it is not a regular file",
		"loading text.yaml:1: the document is not an object",
		`loading twice.yaml: yaml: unmarshal errors: line 2: key "kind" already set in map`,
		"loading gone: no such file or directory",
		"loading -: there is no input",
		`loading a.yaml:3 (document 1): Pod default/a: Pod "a" is invalid: spec.containers: Required value`,
		"loading a.yaml:8 (document 2): Widget b: the CRD of its kind is missing, which is usually named widgets.example.com: --crds or --load brings it",
		"loading bad.json:1: object without a name: apiVersion and kind are required",
		"loading bad.yaml:1 (document 1): object without a name: apiVersion and kind are required",
		"loading list.yaml:7 (item 2): ConfigMap without a name: metadata.name is required",
		"loading list.yaml:10 (item 3): object without a name: apiVersion and kind are required",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the faults (-want +got):\n%s", diff)
	}
}

func TestGoObjectsAreLoaded(t *testing.T) {
	t.Parallel()
	s := sandbox.New(t, sandbox.Options{NoWorkloads: true})
	named := func(name string) corev1.ConfigMap { return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	typed, tree := named("typed"), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	tree.SetName("tree")
	if err := s.Load(&typed, tree, &corev1.ConfigMapList{Items: []corev1.ConfigMap{named("in-a-list")}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"default/in-a-list", "default/tree", "default/typed"}, configMaps(t, s)); diff != "" {
		t.Errorf("the ConfigMaps (-want +got):\n%s", diff)
	}
	if typed.Namespace != "" || tree.GetNamespace() != "" {
		t.Error("loading has changed an object of the caller")
	}
	err := s.Load(&unknown{}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	const want = "loading *sandbox_test.unknown: its TypeMeta has to say apiVersion and kind, as client-go does not know its type\n" +
		`loading Pod default/a: Pod "a" is invalid: spec.containers: Required value`
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// unknown is a type that client-go does not know.
type unknown struct{ corev1.ConfigMap }
