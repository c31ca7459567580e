// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

func there(*unstructured.Unstructured) bool { return true }

// option is the child another with an option in its long form.
func option(text string) string {
	return "another:\n  " + text + "\n  template:\n" + strings.ReplaceAll(strings.TrimPrefix(another, "\nanother:"), "\n  ", "\n    ")
}

// TestApplyLeavesAnotherOperatorsChildAlone holds it for the children of another operator of this
// kind, also where unowned objects may be taken.
func TestApplyLeavesAnotherOperatorsChildAlone(t *testing.T) {
	t.Parallel()
	for _, ownership := range []string{"owned", "labelled", "none"} {
		t.Run("ownership "+ownership, func(t *testing.T) {
			t.Parallel()
			s, rival := newApplyStage(t, nil, made("", "configmaps")), plane.User("rival")
			rival.AllowIn(t, s.ns, fooRules()...)
			rival.AllowIn(t, s.ns, made("", "configmaps"), cluster.Rule("samplecontroller.k8s.io", "foos", "patch"))
			text := strings.Replace(partsOperator("rival", option("ownership: "+ownership)), works, foos, 1)
			text = strings.ReplaceAll(text, "self.spec.value", "self.spec.deploymentName")
			rivals := cluster.Run(t, parsed(t, text, s.ns), engine.Settings{Config: rival.Config()})
			rivals.AwaitReady(t)
			plane.Objects(foos, s.ns).Create(t, foo("w", 1))
			before := s.maps.Await(t, "w-another", "being made", there)
			s.run(t, beside+option("adopt: ifUnowned"))
			s.works.Create(t, work("w", "a"))
			s.endsWell(t, "w", trouble{"NotOwned", []string{"ConfigMap", "w-another", "belongs to Foo", "another name"}, func(t *testing.T) {
				if diff := cmp.Diff(before, s.maps.Get(t, "w-another")); diff != "" {
					t.Errorf("it was changed (-before +after):\n%s", diff)
				}
				rivals.Stop(t)
				s.maps.Delete(t, "w-another")
			}})
		})
	}
}

// TestApplyAdopts: an object that was there before is reported, and taken over when the template says so.
func TestApplyAdopts(t *testing.T) {
	t.Parallel()
	s := newApplyStage(t, nil, made("", "configmaps"))
	before := s.maps.Create(t, &unstructured.Unstructured{Object: configMap("w-another", "theirs")})
	s.run(t, beside+another)
	s.works.Create(t, work("w", "a"))
	s.awaitVerdict(t, "w", "NotOwned", "ConfigMap "+s.ns+"/w-another", "delete it", "adopt: ifUnowned")
	s.awaitWarning(t, "w", "NotOwned", "delete it", "adopt: ifUnowned")
	s.mustBackOff(t, "w")
	if diff := cmp.Diff(before, s.maps.Get(t, "w-another")); diff != "" {
		t.Errorf("it was changed (-before +after):\n%s", diff)
	}
	s.running.Stop(t)
	s.run(t, beside+option("adopt: ifUnowned"))
	s.applied(t, "w")
	after := s.maps.Get(t, "w-another")
	if after.GetUID() != before.GetUID() || dataValue(after) != "a" || !metav1.IsControlledBy(after, s.works.Get(t, "w")) {
		t.Errorf("what was adopted is %v", after.Object)
	}
}

func TestApplyKeepsChildrenApart(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		children string
		reason   string
		words    []string
		// wanted are the ConfigMaps that there are in the end.
		wanted []string
	}{
		"two children with one name": {`
one: {apiVersion: v1, kind: ConfigMap, metadata: {name: "w-${self.spec.?x.orValue('same')}"}, data: {value: one}}
two: {apiVersion: v1, kind: ConfigMap, metadata: {name: "w-${self.spec.?y.orValue('same')}"}, data: {value: two}}
`, "NameCollision", []string{"ConfigMap", "w-same", "child one and child two", "give each a name of its own"}, []string{"w-beside", "w-same", "w-x"}},
		"two items with one name": {`
each:
  forEach: ["a", "b"]
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "w-${self.spec.?x.orValue('same') == 'x' ? item : 'same'}"}, data: {value: "${item}"}}
`, "NameCollision", []string{"w-same", `child each["a"] and child each["b"]`, "give each a name of its own"}, []string{"w-a", "w-b", "w-beside"}},
		"two items with one key": {`
each:
  forEach: ["a", "b"]
  key: "${self.spec.?x.orValue('same') == 'x' ? item : 'same'}"
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "w-${item}"}, data: {value: "${item}"}}
`, "Unresolved", []string{"child each", "of forEach have the key"}, []string{"w-a", "w-b", "w-beside"}},
		"a child that needs the one whose name it has": {`
one: {apiVersion: v1, kind: ConfigMap, metadata: {name: w-same}, data: {value: one}}
two: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.spec.?x.orValue(children.one.metadata.name)}"}, data: {value: two}}
`, "NameCollision", []string{"w-same", "child one and child two"}, []string{"w-beside", "w-same", "x"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApplyStage(t, nil, made("", "configmaps"))
			s.run(t, beside+test.children)
			s.works.Create(t, work("w", "a"))
			s.endsWell(t, "w", trouble{test.reason, test.words, func(t *testing.T) { s.works.Patch(t, "w", `{"spec":{"x":"x"}}`) }})
			var got []string
			for _, o := range s.maps.List(t) {
				if o.GetName() != "kube-root-ca.crt" {
					got = append(got, o.GetName())
				}
			}
			if diff := cmp.Diff(test.wanted, got); diff != "" {
				t.Errorf("ConfigMaps (-want +got):\n%s", diff)
			}
		})
	}
}

// TestApplyTakesNothingAwayWhileNamesCollide holds that children which were apart are kept when they
// come to have one name.
func TestApplyTakesNothingAwayWhileNamesCollide(t *testing.T) {
	t.Parallel()
	s := newApplyStage(t, nil, made("", "configmaps"))
	s.run(t, beside+`
one: {apiVersion: v1, kind: ConfigMap, metadata: {name: "w-${self.spec.value}"}}
two: {apiVersion: v1, kind: ConfigMap, metadata: {name: "w-${self.spec.?y.orValue('b')}"}}
`)
	s.works.Create(t, work("w", "a"))
	s.applied(t, "w")
	mark := plane.Mark(t)
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	s.awaitVerdict(t, "w", "NameCollision", "w-b")
	s.mustBackOff(t, "w")
	if writes := plane.Writes(t, s.user.Name, mark).Of("configmaps", ""); len(writes) > 0 {
		t.Errorf("children were written to:\n%s", writes)
	}
	s.works.Patch(t, "w", `{"spec":{"value":"c"}}`)
	s.applied(t, "w")
	s.maps.AwaitGone(t, "w-a")
	s.maps.Await(t, "w-c", "being made", there)
}
