// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestDeployIsWhatBundleWrites holds that deploy/kustomize is the bundle of samples/foo.
func TestDeployIsWhatBundleWrites(t *testing.T) {
	const deployed = "../deploy/kustomize"
	dir := t.TempDir()
	b := standard(t)
	if code := b.execute(t.Context(), []string{"bundle", "--config=../samples/foo/operator.yaml", "--create-namespace", "-o", dir}); code != exitOK {
		t.Fatal(b.err.String())
	}
	if *update {
		err := os.RemoveAll(deployed) // CopyFS leaves files alone that are there
		if err == nil {
			err = os.CopyFS(deployed, os.DirFS(dir))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(filesOf(t, dir), filesOf(t, deployed)); diff != "" {
		t.Errorf("deploy/kustomize is not current: operator bundle --config samples/foo/operator.yaml --create-namespace -o deploy/kustomize (-written +file):\n%s", diff)
	}
}

func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[entry.Name()] = string(text)
	}
	return out
}

func TestBundleCommand(t *testing.T) {
	for name, args := range map[string]string{
		"help":                               "bundle --help",
		"without-config":                     "bundle",
		"with-faults":                        "bundle --config testdata/crd/faulty.yaml",
		"webapp":                             "bundle --config ../samples/webapp --image registry.example.com/handwerk:v1 --namespace shop --replicas 3 --pod-monitor",
		"bad-namespace":                      "bundle --config testdata/operator.yaml --namespace Shop",
		"bad-image":                          "bundle --config testdata/operator.yaml --image=",
		"unsecured-monitor":                  "bundle --config testdata/operator.yaml --metrics-secure=false --pod-monitor",
		"patch-of-nothing":                   "bundle --config ../samples/webapp --patch testdata/bundle/nothing.yaml",
		"patch-that-is-no-map":               "bundle --config ../samples/webapp --patch testdata/bundle/list.yaml",
		"patch-without-a-name":               "bundle --config ../samples/webapp --patch testdata/bundle/nameless.yaml",
		"patch-of-a-field-that-is-not-there": "bundle --config ../samples/webapp --patch testdata/bundle/field.yaml",
		"patch-of-another-type":              "bundle --config ../samples/webapp --patch testdata/bundle/type.yaml",
	} {
		t.Run(name, func(t *testing.T) {
			b := standard(t)
			if name == "with-faults" {
				b.registry = noting()
			}
			golden(t, "bundle/"+name+".golden", said(t, b, args))
		})
	}
}

// bundled returns the objects that a bundle has, by kind and name.
func bundled(t *testing.T, b *bench, args ...string) map[string]map[string]any {
	t.Helper()
	if code := b.execute(t.Context(), append([]string{"bundle"}, args...)); code != exitOK {
		t.Fatal(b.err.String())
	}
	objects, err := documents(b.out.String())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for _, o := range objects {
		out[identified(o)] = o
	}
	return out
}

// container returns the container of a Pod's spec.
func container(pod any) any { return pod.(map[string]any)["containers"].([]any)[0] }

// TestWhatABundleHas holds which objects the flags and the operator bring.
func TestWhatABundleHas(t *testing.T) {
	always := []string{
		"ServiceAccount handwerk-foo", "ClusterRole handwerk-foo:handwerk-system", "ClusterRoleBinding handwerk-foo:handwerk-system", "Role handwerk-foo", "RoleBinding handwerk-foo",
		"Deployment handwerk-foo", "PodDisruptionBudget handwerk-foo",
	}
	foo := []string{"--config=../samples/foo/operator.yaml"}
	const configMap, service, policy = "ConfigMap", "Service handwerk-foo-metrics", "NetworkPolicy handwerk-foo"
	tests := map[string]struct {
		args []string
		want []string
	}{
		"without a word":       {foo, []string{configMap, service, policy}},
		"with its namespace":   {append(foo, "--create-namespace"), []string{configMap, service, policy, "Namespace handwerk-system"}},
		"without a policy":     {append(foo, "--no-network-policy"), []string{configMap, service}},
		"with metrics at home": {append(foo, "--metrics-secure=false"), []string{configMap, policy}},
		"with a PodMonitor":    {append(foo, "--pod-monitor"), []string{configMap, service, policy, "ServiceAccount handwerk-foo-metrics", "Secret handwerk-foo-metrics", "ClusterRole handwerk-foo-metrics:handwerk-system", "ClusterRoleBinding handwerk-foo-metrics:handwerk-system", "PodMonitor handwerk-foo"}},
		"declared in Go alone": {nil, []string{service, policy}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := standard(t)
			if tt.args == nil {
				b.extra = []func(*dsl.Operator){func(op *dsl.Operator) { op.Name = "foo"; addBars(op) }}
			}
			want := slices.Sorted(slices.Values(append(slices.Clone(always), tt.want...)))
			var names []string
			for name := range bundled(t, b, tt.args...) {
				if strings.HasPrefix(name, configMap) {
					name = configMap
				}
				names = append(names, name)
			}
			slices.Sort(names)
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestABundleFollowsTheConfiguration holds what of the configuration shows in the objects.
func TestABundleFollowsTheConfiguration(t *testing.T) {
	text, err := os.ReadFile("../samples/foo/operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	deployment := func(t *testing.T, text string) map[string]any {
		t.Helper()
		dir := t.TempDir()
		for name, text := range map[string]string{"operator.yaml": text, "example.yaml": "kind: Foo\napiVersion: example.com/v1\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		objects := bundled(t, standard(t), "--config="+dir)
		pod := at(objects["Deployment handwerk-foo"], "spec", "template", "spec").(map[string]any)
		name := at(pod["volumes"].([]any)[0], "configMap", "name").(string)
		if diff := cmp.Diff(map[string]any{"operator.yaml": text}, at(objects["ConfigMap "+name], "data")); diff != "" {
			t.Errorf("the ConfigMap that is mounted (-want +got):\n%s", diff)
		}
		return pod
	}
	before := deployment(t, string(text))
	args := func(pod map[string]any) any { return at(container(pod), "args") }
	grace := func(pod map[string]any) any { return pod["terminationGracePeriodSeconds"] }
	tests := map[string]struct {
		text  string
		get   func(pod map[string]any) any
		want  any
		other bool
	}{
		"the same":          {text: string(text)},
		"a comment more":    {text: string(text) + "# more\n", other: true},
		"a grace period":    {string(text) + "settings: {gracePeriod: 1m}\n", grace, 70, true},
		"parts of a second": {string(text) + "settings: {gracePeriod: 1500ms}\n", grace, 12, true},
		"a lock for life":   {string(text) + "settings: {leaderElection: {mode: life}}\n", args, []any{"run", "--config", "/etc/handwerk", "--metrics-secure"}, true},
		"an election that is off: a lease is due": {string(text) + "settings: {leaderElection: {mode: none}}\n", args, []any{"run", "--config", "/etc/handwerk", "--leader-elect=lease", "--metrics-secure"}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			after := deployment(t, tt.text)
			if other := fmt.Sprint(at(before, "volumes")) != fmt.Sprint(at(after, "volumes")); other != tt.other {
				t.Errorf("another ConfigMap is mounted: %v, want %v", other, tt.other)
			}
			if tt.get == nil {
				return
			}
			if diff := cmp.Diff(tt.want, tt.get(after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestABundleHasThePartsOfItsConfiguration holds where the files of parts are mounted, and that the operator can be read there.
func TestABundleHasThePartsOfItsConfiguration(t *testing.T) {
	files := map[string]string{
		"operator.yaml": `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: foo}
resources:
  - resource: configmaps.v1
    handlers:
      - {id: one, use: {file: parts/log.yaml}}
      - {id: two, use: {file: beside.yaml}}
`,
		"parts/log.yaml": "apiVersion: handwerk.dev/v1alpha1\nkind: Part\nlog: {message: a}\n",
		"beside.yaml":    "apiVersion: handwerk.dev/v1alpha1\nkind: Part\nlog: {message: b}\n",
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "parts"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects := bundled(t, standard(t), "--config="+dir)
	volume := at(objects["Deployment handwerk-foo"], "spec", "template", "spec", "volumes").([]any)[0]
	name := at(volume, "configMap", "name").(string)
	data := at(objects["ConfigMap "+name], "data").(map[string]any)
	mounted := map[string]string{}
	for _, one := range at(volume, "configMap", "items").([]any) {
		mounted[at(one, "path").(string)] = data[at(one, "key").(string)].(string)
	}
	if diff := cmp.Diff(files, mounted); diff != "" {
		t.Errorf("what is mounted (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(filepath.Join(dir, "parts/log.yaml"), []byte(files["parts/log.yaml"]+"# more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	objects = bundled(t, standard(t), "--config="+dir)
	volume = at(objects["Deployment handwerk-foo"], "spec", "template", "spec", "volumes").([]any)[0]
	if again := at(volume, "configMap", "name"); again == name {
		t.Errorf("a changed part is in the ConfigMap %s, too, so the Deployment does not roll", again)
	}
}

// TestBundleRefuses holds which configurations cannot be deployed.
func TestBundleRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	operator := func(name string) string {
		return "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: " + name + "}\n"
	}
	const resource = "resources: [{resource: %s.v1, handlers: [{id: one, log: {message: x}}]}]\n"
	long := strings.Repeat("a", 50)
	tests := map[string]struct {
		files []string
		want  string
	}{
		"a name that is too long": {[]string{write("long.yaml", operator(long)+fmt.Sprintf(resource, "pods"))},
			"error: deploying operator " + long + ": its name is too long for that of a Service, which has at most 63 characters: handwerk-" + long + "-metrics\n"},
		"two files of one name": {[]string{write("a/op.yaml", operator("a")+fmt.Sprintf(resource, "pods")), write("b/op.yaml", operator("a")+fmt.Sprintf(resource, "nodes"))},
			"error: putting op.yaml into a ConfigMap: there are two files of this name\n"},
		"admission without rules": {[]string{write("none.yaml", operator("none")+fmt.Sprintf(resource, "pods"))},
			"error: printing admission: operator none has no rules about requests, and converts no versions: leave --admission out\n"},
		"more than a ConfigMap holds": {[]string{write("c.yaml", operator("a")+fmt.Sprintf(resource, "pods")+strings.Repeat("# x\n", 150<<10)), write("d.yaml", operator("a")+fmt.Sprintf(resource, "nodes")+strings.Repeat("# x\n", 150<<10))},
			"error: putting the configuration into a ConfigMap: it has more than 1 MiB\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := standard(t)
			args := []string{"bundle"}
			if strings.HasPrefix(name, "admission") {
				args = append(args, "--admission")
			}
			for _, file := range tt.files {
				args = append(args, "--config="+file)
			}
			if code := b.execute(t.Context(), args); code != exitFailed || b.err.String() != tt.want {
				t.Errorf("exit code %d: %s\nwant %s", code, b.err.String(), tt.want)
			}
		})
	}
}

// TestPatchesOfABundle holds how a patch changes an object: lists of Kubernetes' kinds merge by their keys.
func TestPatchesOfABundle(t *testing.T) {
	patch := filepath.Join(t.TempDir(), "patch.yaml")
	text := `
kind: Deployment
metadata: {name: handwerk-foo}
spec:
  template:
    spec:
      nodeSelector: {disk: ssd}
      containers:
        - name: operator
          resources: {limits: {memory: 1Gi}}
          env: [{name: GOMEMLIMIT, value: 768MiB}]
---
kind: PodMonitor
metadata: {name: handwerk-foo, labels: {release: prometheus}}
spec: {podMetricsEndpoints: [{port: metrics, interval: 10s}]}
`
	if err := os.WriteFile(patch, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	objects := bundled(t, standard(t), "--config=../samples/foo/operator.yaml", "--pod-monitor", "--patch="+patch)
	pod := at(objects["Deployment handwerk-foo"], "spec", "template", "spec")
	env := map[string]any{}
	for _, e := range at(container(pod), "env").([]any) {
		env[at(e, "name").(string)] = at(e, "value")
	}
	got := []any{
		at(pod, "nodeSelector"), at(container(pod), "resources"), env, at(container(pod), "image"),
		at(objects["PodMonitor handwerk-foo"], "metadata", "labels", "release"), at(objects["PodMonitor handwerk-foo"], "spec", "podMetricsEndpoints"),
	}
	want := []any{
		map[string]any{"disk": "ssd"},
		map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "64Mi"}, "limits": map[string]any{"memory": "1Gi"}},
		map[string]any{"POD_NAME": nil, "POD_NAMESPACE": nil, "GOMEMLIMIT": "768MiB"}, "handwerk:dev",
		"prometheus", []any{map[string]any{"port": "metrics", "interval": "10s"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
