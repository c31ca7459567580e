// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
)

// load reads the chart.
func load(t *testing.T) chart.Charter {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatalf("loading the chart: %v", err)
	}
	return c
}

// render makes a release of the chart without a cluster, as helm template does.
func render(t *testing.T, values map[string]any) (*release.Release, error) {
	t.Helper()
	return renderIn(t, "ops", values)
}

// renderIn makes a release in a namespace.
func renderIn(t *testing.T, namespace string, values map[string]any) (*release.Release, error) {
	t.Helper()
	install := action.NewInstall(action.NewConfiguration())
	install.ReleaseName, install.Namespace, install.DryRunStrategy = "release", namespace, action.DryRunClient
	made, err := install.RunWithContext(t.Context(), load(t), values)
	if err != nil {
		return nil, err
	}
	return made.(*release.Release), nil
}

// objects are those of some manifests, by kind and name.
func objects(t *testing.T, manifests ...string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for document := range strings.SplitSeq("\n"+strings.Join(manifests, "\n---\n"), "\n---") {
		o := parse(t, document)
		if len(o) == 0 {
			continue
		}
		key := o["kind"].(string) + " " + at[string](o, "metadata", "name")
		if namespace := at[string](o, "metadata", "namespace"); namespace != "" && namespace != "ops" {
			key += " in " + namespace
		}
		if _, twice := out[key]; twice {
			t.Errorf("there are two objects %s", key)
		}
		out[key] = o
	}
	return out
}

// hooksOf are the manifests of a release's hooks.
func hooksOf(r *release.Release) (out []string) {
	for _, hook := range r.Hooks {
		out = append(out, hook.Manifest)
	}
	return out
}

// at returns what is below a path of keys, the zero value where there is nothing.
func at[T any](value any, path ...string) (out T) {
	for _, key := range path {
		m, _ := value.(map[string]any)
		value = m[key]
	}
	out, _ = value.(T)
	return out
}

// TestTemplates compares all that the chart makes of some values with a file.
func TestTemplates(t *testing.T) {
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d files of values (%v)", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			made, err := render(t, parse(t, read(t, file)))
			if err != nil {
				t.Fatal(err)
			}
			all := append([]string{strings.TrimSpace(made.Manifest)}, hooksOf(made)...)
			objects(t, all...) // each is YAML
			got := strings.Join(all, "\n---\n") + "\n=== NOTES ===\n" + made.Info.Notes
			golden := filepath.Join("testdata", "golden", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(read(t, golden), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestImpossibleValuesAreRefused holds that a mistake in values is said before anything is made.
func TestImpossibleValuesAreRefused(t *testing.T) {
	const foo = "operator: foo\n"
	tests := map[string]struct{ values, want string }{
		"no name of the operator":               {"{}", "give the operator's name"},
		"two operators in the configuration":    {"config: {a.yaml: \"kind: Operator\\nmetadata: {name: a}\\n---\\nkind: Operator\\nmetadata: {name: b}\"}", "give the operator's name"},
		"another name than the configuration's": {foo + "config: {a.yaml: \"kind: Operator\\nmetadata: {name: bar}\"}", "operator is foo, but metadata.name in config is bar"},
		"two sources of the configuration":      {foo + "config: {a.yaml: \"{}\"}\nexistingConfigMap: a", "give config or existingConfigMap, not both"},
		"a monitor of metrics on loopback":      {foo + "metrics: {secure: false, podMonitor: {enabled: true}}", "metrics on loopback cannot be scraped"},
		"two Pods without a leader":             {foo + "leaderElection: none", "leaderElection: none takes replicas: 1"},
		"a CRD that is something else":          {foo + "crds: {manifests: \"kind: Pod\"}", "want CustomResourceDefinitions, found Pod"},
		"a CRD that is no YAML":                 {foo + "crds: {manifests: \"a: b: c\"}", "want CustomResourceDefinitions, found error"},
		"a policy that is something else":       {foo + "admission: {manifests: \"{apiVersion: v1, kind: Pod}\"}", "admission.manifests: want policies and webhook configurations, found Pod"},
		"an unknown value":                      {foo + "replica: 3", "additional properties 'replica' not allowed"},
		"an unknown value below another":        {foo + "metrics: {port: 1}", "additional properties 'port' not allowed"},
		"a number that is a text":               {foo + "replicas: many", "got string, want integer"},
		"an impossible name":                    {"operator: Foo", "does not match pattern"},
		"an unknown mode":                       {foo + "leaderElection: raft", "value must be one of 'lease', 'life', 'none'"},
		"a rule without verbs":                  {foo + "rbac: {rules: [{resources: [pods]}]}", "missing property 'verbs'"},
		"a misspelt rule":                       {foo + "rbac: {rules: [{resource: [pods], verbs: [get]}]}", "additional properties 'resource' not allowed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, parse(t, tt.values))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q in it", err, tt.want)
			}
		})
	}
}

// TestTheChartHasWhatTheBundleHas holds that the chart makes the objects of deploy/kustomize of the same configuration.
func TestTheChartHasWhatTheBundleHas(t *testing.T) {
	made, err := render(t, valuesOf(t, repository+"/samples/foo/operator.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(repository + "/deploy/kustomize/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var bundle []string
	for _, file := range files {
		if base := filepath.Base(file); base != "kustomization.yaml" && base != "namespace.yaml" {
			bundle = append(bundle, read(t, file))
		}
	}
	if diff := cmp.Diff(plain(objects(t, bundle...)), plain(objects(t, made.Manifest))); diff != "" {
		t.Errorf("(-bundle +chart):\n%s", diff)
	}
}

// plain takes off what a chart does otherwise: names, namespaces, labels, and the way to the configuration.
func plain(all map[string]map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, o := range all {
		kind := o["kind"].(string)
		metadata := o["metadata"].(map[string]any)
		name, _, _ := strings.Cut(metadata["name"].(string), ":")
		if kind == "ConfigMap" {
			name = "the configuration"
			delete(o, "immutable")
		}
		delete(o, "metadata")
		if ref := at[map[string]any](o, "roleRef"); ref != nil {
			ref["name"] = "a role"
			at[[]any](o, "subjects")[0].(map[string]any)["namespace"] = "here"
		}
		if kind == "Deployment" {
			plainPod(at[map[string]any](o, "spec", "template"))
		}
		out[kind+" "+name] = o
	}
	return out
}

func plainPod(template map[string]any) {
	delete(at[map[string]any](template, "metadata", "annotations"), "checksum/config")
	spec := at[map[string]any](template, "spec")
	at[map[string]any](at[[]any](spec, "volumes")[0], "configMap")["name"] = "the configuration"
	container := at[[]any](spec, "containers")[0].(map[string]any)
	delete(container, "imagePullPolicy") // IfNotPresent is what it is without a word
	args := at[[]any](container, "args")
	if i := slices.Index(args, any("--config")); i >= 0 {
		container["args"] = slices.Replace(args, i, i+2, any("--config="+args[i+1].(string)))
	}
}

// TestDashboardAndAlertsAreTheFiles holds that the optional objects have what lies in the chart's folder, untouched.
func TestDashboardAndAlertsAreTheFiles(t *testing.T) {
	made, err := render(t, parse(t, "{operator: foo, dashboard: {enabled: true}, alerts: {enabled: true, labels: {release: prometheus}}}"))
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, made.Manifest)
	dashboard := all["ConfigMap handwerk-foo-dashboard"]
	if diff := cmp.Diff(read(t, chartDir+"/files/dashboard.json"), at[string](dashboard, "data", "handwerk.json")); diff != "" {
		t.Errorf("the dashboard (-file +object):\n%s", diff)
	}
	if at[string](dashboard, "metadata", "labels", "grafana_dashboard") != "1" {
		t.Error("Grafana's sidecar does not find the dashboard")
	}
	alerts := all["PrometheusRule handwerk-foo"]
	if diff := cmp.Diff(parse(t, read(t, chartDir+"/files/alerts.yaml")), at[map[string]any](alerts, "spec")); diff != "" {
		t.Errorf("the alerts (-file +object):\n%s", diff)
	}
	if at[string](alerts, "metadata", "labels", "release") != "prometheus" {
		t.Error("the alerts lack the label that was asked for")
	}
}

// TestReleasesInTwoNamespacesShareNothing holds that what is outside of the namespace differs between releases of one operator.
func TestReleasesInTwoNamespacesShareNothing(t *testing.T) {
	names := func(namespace string) []string {
		r, err := renderIn(t, namespace, parse(t, read(t, "testdata/values/everything.yaml")))
		if err != nil {
			t.Fatal(err)
		}
		all := objects(t, append(hooksOf(r), r.Manifest)...)
		maps.DeleteFunc(all, func(key string, o map[string]any) bool {
			return at[string](o, "metadata", "namespace") == namespace || strings.HasPrefix(key, "CustomResourceDefinition")
		})
		return slices.Sorted(maps.Keys(all))
	}
	first, second := names("first"), names("second")
	for _, name := range first {
		if slices.Contains(second, name) {
			t.Errorf("both have %s", name)
		}
	}
	if len(first) < 6 {
		t.Errorf("outside of the namespace there are only %v", first)
	}
}

// TestNamesThatLookLikeOtherThings holds that names which are numbers or booleans in YAML stay texts, and that a version which is no
// label comes as much of it as a label takes.
func TestNamesThatLookLikeOtherThings(t *testing.T) {
	named := []string{"name", "namespace", "app.kubernetes.io/instance", "app.kubernetes.io/version", "serviceAccountName", "priorityClassName"}
	long := strings.Repeat("a", 61)
	for name, tag := range map[string]string{"123": "1.10", "1e3": "_", "on": long + "._b", "null": "1e3"} {
		t.Run(name, func(t *testing.T) {
			values := parse(t, read(t, "testdata/values/everything.yaml"))
			delete(values, "config")
			values["operator"], values["existingConfigMap"], values["priorityClassName"] = name, name, name
			values["serviceAccount"] = map[string]any{"name": name}
			at[map[string]any](values, "image")["tag"] = tag
			at[map[string]any](values, "rbac")["namespaces"] = map[string]any{"42": at[any](values, "rbac", "rules")}
			r, err := renderIn(t, name, values)
			if err != nil {
				t.Fatal(err)
			}
			for key, o := range objects(t, append(hooksOf(r), r.Manifest)...) {
				if strings.HasPrefix(key, "CustomResourceDefinition") {
					continue
				}
				each(o, func(field string, value any) {
					if text, ok := value.(string); slices.Contains(named, field) && !ok {
						t.Errorf("%s: %s is %v", key, field, value)
					} else if want := map[string]string{"_": "", long + "._b": long}[tag]; field == "app.kubernetes.io/version" && text != tag && text != want {
						t.Errorf("%s: the version is %s", key, text)
					}
				})
			}
		})
	}
}

// each calls a function with each field of a value, those below others among them.
func each(value any, do func(field string, value any)) {
	switch value := value.(type) {
	case map[string]any:
		for field, below := range value {
			do(field, below)
			each(below, do)
		}
	case []any:
		for _, below := range value {
			each(below, do)
		}
	}
}
