// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// smallOperator is a configuration with a given name and more text.
func smallOperator(name, more string) string {
	return "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: '" + name + "'}\nresources: [{resource: pods.v1, handlers: [{id: one, log: {message: x}}]}]\n" + more
}

// asKubectlReads returns the objects of a text as kubectl reads them: by YAML 1.1. Their keys are their kinds.
func asKubectlReads(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for in := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		var o map[string]any
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		out[fmt.Sprint(o["kind"])] = o
	}
}

// bundleText is what bundle prints.
func bundleText(t *testing.T, args ...string) string {
	t.Helper()
	b := standard(t)
	if code := b.execute(t.Context(), append([]string{"bundle"}, args...)); code != exitOK {
		t.Fatal(b.err.String())
	}
	return b.out.String()
}

// TestNamesThatLookLikeOtherThings holds that names which are numbers or booleans in YAML stay names for kubectl.
func TestNamesThatLookLikeOtherThings(t *testing.T) {
	for _, name := range []string{"123", "1e3", "yes", "on", "null", "0x1f"} {
		t.Run(name, func(t *testing.T) {
			config := writeFile(t, "operator.yaml", smallOperator(name, ""))
			for kind, o := range asKubectlReads(t, bundleText(t, "--config="+config, "--namespace="+name, "--create-namespace", "--pod-monitor")) {
				labelled, placed := at(o, "metadata", "labels", "app.kubernetes.io/instance"), at(o, "metadata", "namespace")
				if labelled != name && kind != "Namespace" || placed != nil && placed != name {
					t.Errorf("%s has the label %v in namespace %v", kind, labelled, placed)
				}
				for _, path := range [][]string{{"spec", "selector", "matchLabels"}, {"spec", "podSelector", "matchLabels"}, {"spec", "template", "metadata", "labels"}} {
					if selected := at(o, append(path, "app.kubernetes.io/instance")...); selected != nil && selected != name {
						t.Errorf("%s has %v in %s", kind, selected, path)
					}
				}
			}
		})
	}
}

// TestBundlesInTwoNamespacesShareNothing holds that two deployments of an operator have no object in common but its CRDs.
func TestBundlesInTwoNamespacesShareNothing(t *testing.T) {
	made := func(namespace, scope string) map[string]bool {
		t.Helper()
		text := smallOperator("a", "scope: {namespaces: ["+scope+"]}\n")
		objects, err := documents(bundleText(t, "--config="+writeFile(t, "operator.yaml", text), "--namespace="+namespace, "--create-namespace", "--pod-monitor"))
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]bool{}
		for _, o := range objects {
			out[fmt.Sprint(identified(o), " in ", at(o, "metadata", "namespace"))] = true
		}
		return out
	}
	first, second := made("first", "team-a, third"), made("second", "team-b, third")
	for name := range first {
		if second[name] {
			t.Errorf("both have %s", name)
		}
	}
	if !first["ClusterRole handwerk-a:first in <nil>"] || !first["Role handwerk-a:first in third"] || !first["Role handwerk-a in first"] {
		t.Errorf("there are %v", first)
	}
}

// TestAConfigurationComesThroughToTheByte holds that a ConfigMap has the text of a file as it is.
func TestAConfigurationComesThroughToTheByte(t *testing.T) {
	for name, text := range map[string]string{
		"line ends of Windows": strings.ReplaceAll(smallOperator("a", ""), "\n", "\r\n"), "a byte order mark": "\ufeff" + smallOperator("a", ""),
		"spaces at the end": smallOperator("a", "# x   \n"), "a tab": smallOperator("a", "#\tx\n"), "empty lines first": "\n  \n" + smallOperator("a", ""),
		"a space first": "   # x\n" + smallOperator("a", ""), "no line end": strings.TrimSpace(smallOperator("a", "")), "many line ends": smallOperator("a", "\n\n\n"),
		"a document of its own": "# x\n--- \n" + smallOperator("a", "") + "---\n", "runes": smallOperator("a", "# \u00a0 \U0001F600 \u00fc\n"), "a long line": smallOperator("a", "# "+strings.Repeat("word ", 500)+"\n"),
		"another document first": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n" + smallOperator("a", ""),
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			bundleText(t, "--config="+writeFile(t, "operator.yaml", text), "-o", dir)
			written, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text, at(asKubectlReads(t, string(written))["ConfigMap"], "data", "operator.yaml")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFilesOfOddNames holds that the ConfigMap has each file under a name that it may have, and that run reads in a directory.
func TestFilesOfOddNames(t *testing.T) {
	for name, want := range map[string]string{
		"operator.yml": "operator.yml", "operator.conf": "operator.conf.yaml", "my operator.yaml": "my-operator.yaml", ".hidden.yaml": "hidden.yaml", "ü.yaml": "-.yaml", "..x": "x.yaml",
	} {
		t.Run(name, func(t *testing.T) {
			text := smallOperator("a", "")
			objects := asKubectlReads(t, bundleText(t, "--config="+writeFile(t, name, text)))
			if diff := cmp.Diff(map[string]any{want: text}, objects["ConfigMap"]["data"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOddPatches holds what patches do that change more than a field, or not what they seem to.
func TestOddPatches(t *testing.T) {
	tests := map[string]struct {
		patch string
		kind  string
		path  []string
		want  any
		fails string
	}{
		"one that takes the object away":                                    {patch: "kind: NetworkPolicy\nmetadata: {name: handwerk-a}\n$patch: delete\n", kind: "NetworkPolicy"},
		"one that takes away an object of a kind that is not of Kubernetes": {patch: "kind: PodMonitor\nmetadata: {name: handwerk-a}\n$patch: delete\n", kind: "PodMonitor"},
		"a large whole number": {
			patch: "kind: Deployment\nmetadata: {name: handwerk-a}\nspec: {template: {spec: {securityContext: {runAsUser: 1000650000}}}}\n",
			kind:  "Deployment", path: []string{"spec", "template", "spec", "securityContext", "runAsUser"}, want: int64(1000650000),
		},
		"one for an object in another namespace": {patch: "kind: Role\nmetadata: {name: handwerk-a, namespace: team-c}\nrules: []\n", fails: "there is no Role handwerk-a in namespace team-c among the objects: "},
		"one of two objects without a namespace": {patch: "kind: Role\nmetadata: {name: handwerk-a:handwerk-system}\nrules: []\n", fails: "there are 2 objects Role handwerk-a:handwerk-system: say the metadata.namespace"},
		"one of two objects":                     {patch: "kind: Role\nmetadata: {name: handwerk-a:handwerk-system, namespace: team-b}\nrules: []\n"},
		"one of another version":                 {patch: "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: handwerk-a}\n", fails: "there is no Deployment handwerk-a of apps/v1beta1 among the objects: "},
		"a field in other letters":               {patch: "kind: Deployment\nmetadata: {name: handwerk-a}\nspec: {Replicas: 1}\n", fails: `Deployment handwerk-a: unknown field "spec.Replicas"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := standard(t)
			config := writeFile(t, "operator.yaml", smallOperator("a", "scope: {namespaces: [team-a, team-b]}\n"))
			code := b.execute(t.Context(), []string{"bundle", "--config=" + config, "--pod-monitor", "--patch=" + writeFile(t, "patch.yaml", tt.patch)})
			if text := b.err.String(); (code == exitOK) != (tt.fails == "") || !strings.Contains(text, tt.fails) {
				t.Fatalf("exit code %d: %s", code, text)
			}
			if tt.kind == "" {
				return
			}
			object := asKubectlReads(t, b.out.String())[tt.kind]
			if strings.Contains(b.out.String(), "{}\n") || object != nil && tt.path == nil {
				t.Errorf("it is %v in:\n%s", object, b.out.String())
			}
			if tt.path != nil && !strings.Contains(b.out.String(), fmt.Sprintf("%s: %d\n", tt.path[len(tt.path)-1], tt.want)) {
				t.Errorf("%s is %v", tt.path, at(object, tt.path...))
			}
		})
	}
}

// TestABundleSparesWhatItIsMadeFrom holds that no file of the configuration is written over.
func TestABundleSparesWhatItIsMadeFrom(t *testing.T) {
	text := smallOperator("a", "")
	config := writeFile(t, "config.yaml", text)
	b := standard(t)
	code := b.execute(t.Context(), []string{"bundle", "--config=" + config, "-o", filepath.Dir(config)})
	if want := "error: writing " + config + ": the bundle is made from this file; write into another directory\n"; code != exitFailed || b.err.String() != want {
		t.Errorf("exit code %d: %s", code, b.err.String())
	}
	if left, err := os.ReadFile(config); err != nil || string(left) != text {
		t.Errorf("the configuration is %s, %v", left, err)
	}
}

// TestABundleSaysWhatToKnowBeforeApplyingIt holds the notes, which do not come into the objects.
func TestABundleSaysWhatToKnowBeforeApplyingIt(t *testing.T) {
	for name, test := range map[string]struct{ args, want string }{
		"risky rights, and an image in no registry": {
			"--config ../samples/tenant", "note: without --image, the Deployment runs handwerk:dev, which is in no registry: load it into the cluster, or push it and name it (docs/deploy.md)\n" +
				"note: the account of operator tenant can\n  bind roles whose rights it does not have: admin in all namespaces (handler namespaces/provision)\n",
		},
		"nothing to say": {"--config ../samples/foo-yaml --image registry.example.com/handwerk:v1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := standard(t)
			bundled(t, b, strings.Fields(test.args)...)
			if diff := cmp.Diff(test.want, b.err.String()); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
		})
	}
}

// TestABundleNamesDroppedFiles holds that a second bundle in a folder warns before its namespace is pruned.
func TestABundleNamesDroppedFiles(t *testing.T) {
	args := []string{"--config", "../samples/foo-yaml", "--image", "registry.example.com/handwerk:v1", "-o", t.TempDir()}
	for _, step := range []struct{ flag, want string }{
		{"--create-namespace", ""}, {"--create-namespace", ""},
		{"--replicas=3", "note: namespace.yaml was part of the last bundle, and is not of this one: whoever prunes deletes its objects\n"},
		{"--replicas=3", ""},
	} {
		b := standard(t)
		if code := b.execute(t.Context(), slices.Concat([]string{"bundle"}, args, []string{step.flag})); code != exitOK {
			t.Fatal(b.err.String())
		}
		if diff := cmp.Diff(step.want, b.err.String()); diff != "" {
			t.Errorf("stderr with %s (-want +got):\n%s", step.flag, diff)
		}
	}
}

// TestWhatANetworkPolicyLetsThrough holds where a deployed operator may connect to.
func TestWhatANetworkPolicyLetsThrough(t *testing.T) {
	ports := func(of ...any) map[string]any { return map[string]any{"ports": of} }
	port := func(number int) map[string]any { return map[string]any{"port": number} }
	network := func(cidr string) []any { return []any{map[string]any{"ipBlock": map[string]any{"cidr": cidr}}} }
	usual := []any{ports(port(443), port(6443)), ports(port(53), map[string]any{"port": 53, "protocol": "UDP"})}
	tests := map[string]struct {
		args []string
		more []any
	}{
		"the API server and DNS":  {},
		"a port anywhere":         {[]string{"--egress=5432"}, []any{ports(port(5432))}},
		"a network, and a second": {[]string{"--egress=10.1.2.3/8:5432", "--egress=[fd00::/8]:80"}, []any{map[string]any{"ports": []any{port(5432)}, "to": network("10.0.0.0/8")}, map[string]any{"ports": []any{port(80)}, "to": network("fd00::/8")}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			policy := bundled(t, standard(t), append([]string{"--config=../samples/foo/operator.yaml"}, tt.args...)...)["NetworkPolicy handwerk-foo"]
			if diff := cmp.Diff(append(slices.Clone(usual), tt.more...), at(policy, "spec", "egress")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]any{"Ingress", "Egress"}, at(policy, "spec", "policyTypes")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBundleChecksItsRules holds what somebody reads whose rule or destination is not valid.
func TestBundleChecksItsRules(t *testing.T) {
	for args, want := range map[string]string{
		"--confine=preview-*":                      `want namespace name matches GLOB, as in 'namespace name matches preview-*,staging'`,
		"--confine=namespace name matches Preview": `"Preview" is no name of a namespace with * for any characters and ? for one`,
		"--confine=namespace name matches a,":      `"" is no name of a namespace`,
		"--confine=namespace name matches a|.*":    `"a|.*" is no name of a namespace`,
		"--egress=https":                           `want a port, or a network and a port, as in 10.0.0.0/8:5432`,
		"--egress=0":                               `want a port`,
		"--egress=10.0.0.0/40:1":                   `"10.0.0.0/40" is no network such as 10.0.0.0/8`,
	} {
		t.Run(args, func(t *testing.T) {
			b := standard(t)
			if code := b.execute(t.Context(), []string{"bundle", "--config=../samples/foo/operator.yaml", args}); code != exitUsage || !strings.Contains(b.err.String(), want) {
				t.Errorf("exit %d, want %d; it says:\n%s", code, exitUsage, b.err.String())
			}
		})
	}
}
