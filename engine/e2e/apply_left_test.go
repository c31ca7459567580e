// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// keeper is a handler that keeps a child of this kind and name.
func keeper(id, version, kind, name string, more ...string) string {
	return `{id: ` + id + `, apply: {` + name + `: {apiVersion: ` + version + `, kind: ` + kind + `, metadata: {name: ` + name + `}}}` +
		strings.Join(append([]string{""}, more...), ", ") + `}`
}

// marks is a handler that makes nothing.
const marks = `{id: marks, set: {labels: {seen: "yes"}}}`

// versionStage is where versions of an operator of works follow each other.
type versionStage struct {
	*applyStage
	secrets *cluster.Objects
}

// newVersionStage makes a stage on which an operator may register kinds, and keep ConfigMaps and Secrets.
func newVersionStage(t *testing.T) *versionStage {
	t.Helper()
	s := newApplyStage(t, nil, made("", "configmaps"), made("", "secrets"), cluster.Rule("", "configmaps", "update"))
	return &versionStage{s, plane.Objects("secrets.v1", s.ns)}
}

// version runs the version of the operator that has these handlers, instead of the one before; the register is in a
// namespace, if one is given.
func (s *versionStage) version(t *testing.T, register string, handlers ...string) {
	t.Helper()
	if s.running != nil {
		s.running.Stop(t)
	}
	op := parsed(t, `{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: left}, resources: [{resource: `+works+
		`, handlers: [`+strings.Join(handlers, ", ")+`]}]}`, s.ns)
	s.running = cluster.Run(t, op, engine.Settings{Config: s.user.Config(), Namespace: register})
}

// registered waits until these kinds of children are registered.
func (s *versionStage) registered(t *testing.T, kinds ...string) {
	t.Helper()
	s.maps.Await(t, "left-children", "the kinds "+strings.Join(kinds, " "), func(o *unstructured.Unstructured) bool {
		text, _, _ := unstructured.NestedString(o.Object, "data", "works.e2e.example.com")
		return strings.Join(strings.Fields(text), " ") == strings.Join(kinds, " ")
	})
}

// is waits until an object is there that says it is this child, and returns its UID.
func is(t *testing.T, objects *cluster.Objects, name, child string) types.UID {
	t.Helper()
	return objects.Await(t, name, "being "+child, func(o *unstructured.Unstructured) bool {
		return o.GetAnnotations()["left.handwerk.dev/child"] == child
	}).GetUID()
}

// TestALaterVersionTakesAwayWhatAnEarlierOneMade: children of kinds and handlers that a version does not have any more
// are found and taken away; those that it has stay.
func TestALaterVersionTakesAwayWhatAnEarlierOneMade(t *testing.T) {
	t.Parallel()
	first := []string{keeper("app", "v1", "ConfigMap", "a"), keeper("old", "v1", "Secret", "b")}
	tests := map[string]struct {
		play func(t *testing.T, s *versionStage)
	}{
		"without the kind": {func(t *testing.T, s *versionStage) {
			s.version(t, s.ns, first[0])
			s.secrets.AwaitGone(t, "b")
			s.registered(t, "ConfigMap")
			is(t, s.maps, "a", "app/a")
			s.running.Await(t, "deleted Secret "+s.ns+"/b: there is no handler old any more")
		}},
		"without any kind": {func(t *testing.T, s *versionStage) {
			s.version(t, s.ns, marks)
			s.secrets.AwaitGone(t, "b")
			s.maps.AwaitGone(t, "a")
			s.registered(t)
		}},
		"without the handler": {func(t *testing.T, s *versionStage) {
			s.version(t, s.ns, keeper("app", "v1", "Secret", "c"))
			s.secrets.AwaitGone(t, "b")
			s.maps.AwaitGone(t, "a")
			is(t, s.secrets, "c", "app/c")
			s.registered(t, "Secret")
		}},
		"renamed": {func(t *testing.T, s *versionStage) {
			before := is(t, s.secrets, "b", "old/b")
			s.version(t, s.ns, first[0], keeper("new", "v1", "Secret", "b"))
			if after := is(t, s.secrets, "b", "new/b"); after != before {
				t.Error("the child was recreated")
			}
		}},
		"renamed, and says so": {func(t *testing.T, s *versionStage) {
			before := is(t, s.secrets, "b", "old/b")
			mark := plane.Mark(t)
			s.version(t, s.ns, first[0], keeper("new", "v1", "Secret", "b", "was: old"))
			if after := is(t, s.secrets, "b", "new/b"); after != before {
				t.Error("the child was recreated")
			}
			s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
			for _, w := range plane.Writes(t, s.user.Name, mark).Of("secrets", "b") {
				if w.Verb != "patch" {
					t.Errorf("the child was written by %s", w)
				}
			}
		}},
		"a version later than the next": {func(t *testing.T, s *versionStage) {
			s.version(t, "", marks)
			s.works.Await(t, "w", "the mark", func(o *unstructured.Unstructured) bool { return o.GetLabels()["seen"] == "yes" })
			s.version(t, s.ns, marks)
			s.secrets.AwaitGone(t, "b")
			s.maps.AwaitGone(t, "a")
			s.registered(t)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newVersionStage(t)
			s.version(t, s.ns, first...)
			s.works.Create(t, work("w", "a"))
			is(t, s.maps, "a", "app/a")
			is(t, s.secrets, "b", "old/b")
			s.registered(t, "ConfigMap", "Secret")
			test.play(t, s)
		})
	}
}

// TestChildrenOfAFilterThatHoldsNoMore: they go when labels or an includeWhen say so, also while no process runs, but for
// those that are to stay, and come back when it holds again. A when lets them be.
func TestChildrenOfAFilterThatHoldsNoMore(t *testing.T) {
	for name, filter := range map[string]string{"labels": `labels: {state: "on"}`, "includeWhen": `includeWhen: self.spec.value == "on"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newVersionStage(t)
			on := []string{
				keeper("app", "v1", "ConfigMap", "a"),
				keeper("some", "v1", "Secret", "b", filter),
				`{id: left, ` + filter + `, apply: {c: {onDelete: orphan, template: {apiVersion: v1, kind: Secret, metadata: {name: c}}}}}`,
				keeper("kept", "v1", "Secret", "d", `when: self.spec.value == "on"`),
			}
			turn := func(to string) {
				s.works.Patch(t, "w", `{"metadata":{"labels":{"state":"`+to+`"}},"spec":{"value":"`+to+`"}}`)
			}
			s.version(t, s.ns, on...)
			s.works.Create(t, work("w", "off"))
			turn("on")
			first := is(t, s.secrets, "b", "some/b")
			free := is(t, s.secrets, "c", "left/c;orphan")
			kept := is(t, s.secrets, "d", "kept/d")
			is(t, s.maps, "a", "app/a")
			turn("off")
			s.secrets.AwaitGone(t, "b")
			s.secrets.Await(t, "c", "being free", func(o *unstructured.Unstructured) bool {
				return o.GetUID() == free && len(o.GetOwnerReferences()) == 0
			})
			s.secrets.Delete(t, "c")
			turn("on")
			if again := is(t, s.secrets, "b", "some/b"); again == first {
				t.Error("the child was not taken away")
			}
			is(t, s.secrets, "c", "left/c;orphan")
			s.running.Stop(t)
			turn("off")
			s.version(t, s.ns, on...)
			s.secrets.AwaitGone(t, "b")
			is(t, s.maps, "a", "app/a")
			if now := is(t, s.secrets, "d", "kept/d"); now != kept {
				t.Error("the child of the handler with a when was taken away")
			}
		})
	}
}

// TestChildrenMadeWithoutARegister: children that the operator made while it kept no register are registered at first
// sight, and not written.
func TestChildrenMadeWithoutARegister(t *testing.T) {
	t.Parallel()
	s := newVersionStage(t)
	s.version(t, "", keeper("app", "v1", "Secret", "b"))
	s.works.Create(t, work("w", "a"))
	before := is(t, s.secrets, "b", "app/b")
	version := s.secrets.Get(t, "b").GetResourceVersion()
	s.version(t, s.ns, keeper("app", "v1", "Secret", "b"))
	s.registered(t, "Secret")
	if o := s.secrets.Get(t, "b"); o.GetUID() != before || o.GetResourceVersion() != version {
		t.Errorf("the child was written: version %s, want %s", o.GetResourceVersion(), version)
	}
	s.version(t, s.ns, marks)
	s.secrets.AwaitGone(t, "b")
}

// TestChildrenAreMadeWithoutTheRightToRegister: without the right to it children are made as ever, and it is said.
func TestChildrenAreMadeWithoutTheRightToRegister(t *testing.T) {
	t.Parallel()
	s := &versionStage{newApplyStage(t, nil, made("", "secrets")), nil}
	s.secrets = plane.Objects("secrets.v1", s.ns)
	s.version(t, s.ns, keeper("app", "v1", "Secret", "b"))
	s.works.Create(t, work("w", "a"))
	is(t, s.secrets, "b", "app/b")
	s.running.Await(t, "kinds of children cannot be registered")
	eventually(t, "the check of rights", func() (bool, string) {
		for _, c := range s.running.Engine.Ready() {
			if c.Name == "rights/configmaps" && containsAll(c.Message, "left-children", "in namespace "+s.ns) {
				return true, ""
			}
		}
		return false, "there is none"
	})
	s.user.AllowIn(t, s.ns, cluster.Rule("", "configmaps", "get", "create", "update"))
	s.running.Await(t, "missing right was granted")
	s.works.Patch(t, "w", `{"spec":{"value":"b"},"metadata":{"labels":{"x":"y"}}}`)
	s.registered(t, "Secret")
}

// TestTheCRDOfAKindIsGone: a kind of children that is not declared any more, and not served, counts as empty.
func TestTheCRDOfAKindIsGone(t *testing.T) {
	t.Parallel()
	s, group := newVersionStage(t), "g"+rand.String(6)+".example.com"
	s.user.Allow(t, cluster.Rule(group, "things", "*"), cluster.Rule("apiextensions.k8s.io", "customresourcedefinitions", "get", "list", "watch"))
	plane.Apply(t, "", thingsIn(group, "v1"))
	s.version(t, s.ns, keeper("app", "v1", "ConfigMap", "a"), keeper("old", group+"/v1", "Thing", "b"))
	s.works.Create(t, work("w", "a"))
	is(t, plane.Objects("things.v1."+group, s.ns), "b", "old/b")
	s.registered(t, "ConfigMap", "Thing."+group)
	s.running.Stop(t)
	plane.Objects(crds, "").Delete(t, "things."+group)
	plane.Objects(crds, "").AwaitGone(t, "things."+group)
	s.running = nil
	s.version(t, s.ns, keeper("app", "v1", "ConfigMap", "a"))
	s.registered(t, "ConfigMap")
}
