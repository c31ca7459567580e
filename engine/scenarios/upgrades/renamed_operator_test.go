// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package upgrades_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// renaming is a stage on which an operator gets another name. It leaves each kind of mark: progress, a finalizer, a record of
// children, an owned child, a labelled one in another namespace, an unowned one, and an object that its client applies.
type renaming struct {
	*scene.Stage
	// full: templates have the fields that a later version drops.
	full bool
	uids map[string]types.UID
}

// playRenaming plays on a stage where the operator op has handled web.
func playRenaming(t *testing.T, play func(s *renaming)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s := &renaming{Stage: scene.NewStage(t, c), full: true}
		s.CreateElsewhere()
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ops}}`)
		s.Create(scene.Web)
		s.run("op", "")
		s.Called("made create", "size create", "child create")
		s.uids = s.identities()
		play(s)
	})
}

// run starts a version of the operator.
func (s *renaming) run(name, domain string, was ...string) {
	s.T.Helper()
	s.Operator = dsl.New(name)
	s.Operator.Domain, s.Operator.Was = domain, was
	s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
		foo.Owns(scene.Deployments)
		foo.Owns(scene.ConfigMaps)
		foo.OnCreate("made", s.Note("made"))
		foo.On(scene.CreateAndUpdate(), "size", s.Note("size", s.apply), dsl.Field("spec.size"))
		foo.OnReconcile("child", s.Note("child", s.keep))
		foo.OnDelete("left", s.Note("left", takesAll))
	})
	s.Process = s.Start(s.Operator, func(settings *engine.Settings) { settings.Namespace = scene.OpsNamespace })
}

// keep keeps a child of each kind. Those of the first version have more fields.
func (s *renaming) keep(ctx context.Context, r *dsl.Request) error {
	child := func(name string, ownership dsl.Ownership) dsl.ChildSpec {
		return dsl.ChildSpec{Handler: "child", Name: name, Ownership: ownership}
	}
	owned, labelled, unowned := scene.DeploymentNamed("web", int64(1)), s.config("elsewhere"), s.config("default")
	if s.full {
		owned["spec"].(map[string]any)["paused"] = true
	}
	_, first := r.Children.Apply(ctx, owned, child("owned", dsl.Owned))
	_, second := r.Children.Apply(ctx, labelled, child("labelled", dsl.Labelled))
	_, third := r.Children.Apply(ctx, unowned, child("unowned", dsl.Unowned))
	return errors.Join(first, second, third)
}

// apply applies an object that is no child.
func (s *renaming) apply(ctx context.Context, r *dsl.Request) error {
	_, err := r.Client.Apply(ctx, s.config("ops"))
	return err
}

func (s *renaming) config(namespace string) map[string]any {
	o := scene.ConfigMapWithValue(namespace, "x")
	if s.full {
		o["data"].(map[string]any)["dropped"] = "later"
	}
	return o
}

// takesAll removes all children that have names.
func takesAll(ctx context.Context, r *dsl.Request) error {
	all, err := r.Children.All()
	for _, one := range all {
		err = errors.Join(err, r.Children.Remove(ctx, one))
	}
	return err
}

// all are the objects that the operator has written.
func (s *renaming) all() (out []*unstructured.Unstructured) {
	s.T.Helper()
	s.Settle()
	for _, resource := range []string{scene.Foos, scene.Deployments, scene.ConfigMaps} {
		for _, namespace := range []string{"default", "elsewhere", "ops"} {
			out = append(out, s.List(resource, namespace)...)
		}
	}
	return out
}

func (s *renaming) identities() map[string]types.UID {
	s.T.Helper()
	out := map[string]types.UID{}
	for _, o := range s.all() {
		if !strings.HasSuffix(o.GetName(), "-children") {
			out[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o.GetUID()
		}
	}
	return out
}

// marked fails the test unless all marks are those of a prefix and a manager.
func (s *renaming) marked(prefix, manager string) {
	s.T.Helper()
	for _, o := range s.all() {
		keys := o.GetFinalizers()
		for key := range o.GetLabels() {
			keys = append(keys, key)
		}
		for key := range o.GetAnnotations() {
			keys = append(keys, key)
		}
		for _, key := range keys {
			if before, _, cut := strings.Cut(key, "/"); cut && before != prefix {
				s.T.Errorf("%s %s/%s has %s", o.GetKind(), o.GetNamespace(), o.GetName(), key)
			}
		}
		for _, e := range o.GetManagedFields() {
			if e.Manager != manager && o.GetNamespace()+o.GetName() != "opsweb" && // which no handler applies yet
				e.Manager != "kit" {
				s.T.Errorf("%s %s/%s is managed by %s", o.GetKind(), o.GetNamespace(), o.GetName(), e.Manager)
			}
			if e.Operation == metav1.ManagedFieldsOperationUpdate && o.GetKind() != "Foo" && strings.Contains(e.FieldsV1.GetRawString(), prefix) {
				s.T.Errorf("%s %s/%s has marks that an updater owns: %s", o.GetKind(), o.GetNamespace(), o.GetName(), e.FieldsV1.GetRawString())
			}
		}
	}
}

// kept fails the test unless the objects are the same ones as before the operator was renamed, without the fields that the
// new version drops.
func (s *renaming) kept() {
	s.T.Helper()
	if diff := cmp.Diff(s.uids, s.identities()); diff != "" {
		s.T.Errorf("objects (-before +after):\n%s", diff)
	}
	for _, o := range s.all() {
		if text := fmt.Sprint(o.Object["spec"], o.Object["data"]); !s.full && (strings.Contains(text, "paused") || strings.Contains(text, "dropped")) {
			s.T.Errorf("%s %s/%s still has what the template has no more: %s", o.GetKind(), o.GetNamespace(), o.GetName(), text)
		}
	}
}

// TestARenamedOperatorGoesOnWithItsObjects holds that an operator with another name, or another domain, goes on with what it
// has left on objects under the earlier one.
func TestARenamedOperatorGoesOnWithItsObjects(t *testing.T) {
	names := map[string]struct{ name, domain, was, prefix string }{
		"another name":                      {"new", "", "op", "new.handwerk.dev"},
		"another domain":                    {"op", "example.com", "op.handwerk.dev", "op.example.com"},
		"another name and domain":           {"new", "example.com", "op.handwerk.dev", "new.example.com"},
		"a name that begins as the old one": {"op2", "", "op", "op2.handwerk.dev"},
	}
	for title, to := range names {
		again := func(s *renaming) { s.run(to.name, to.domain, to.was) }
		plays := map[string]func(s *renaming){
			"nothing is new, no child is made again, and a restart writes nothing": func(s *renaming) {
				s.Process.Kill()
				again(s)
				s.calls("child resume")
				s.marked(to.prefix, to.name)
				s.kept()
				s.Forget()
				s.Process.Restart()
				s.calls("child resume")
				s.Wrote()
				s.Advance(time.Hour)
				s.Wrote()
				s.Resize(2)
				s.Called("size update", "child update")
			},
			"it takes a write for an object, and one more for what was applied, which is applied then": func(s *renaming) {
				s.Process.Kill()
				s.Forget()
				again(s)
				var register []string
				if to.name != "op" {
					register = []string{"create configmaps ops/" + to.name + "-children", "delete configmaps ops/op-children"}
				}
				moved := []string{
					"patch foos default/web",
					"patch deployments default/web", "patch deployments default/web", "patch configmaps elsewhere/web", "patch configmaps elsewhere/web",
					"patch deployments default/web", "patch configmaps elsewhere/web",
					"patch configmaps default/web", "patch configmaps default/web", "patch configmaps default/web",
				}
				s.Settle()
				var got []string
				for _, w := range s.Writes() {
					got = append(got, w.String())
				}
				if diff := cmp.Diff(append(register, moved...), got, cmpopts.SortSlices(strings.Compare)); diff != "" {
					s.T.Errorf("writes (-want +got):\n%s", diff)
				}
			},
			"a field that the new template has no more goes": func(s *renaming) {
				s.Process.Kill()
				s.full = false
				again(s)
				s.Resize(2)
				s.calls("child resume", "size update", "child update")
				s.kept()
				s.marked(to.prefix, to.name)
			},
			"a field that a later template has no more goes": func(s *renaming) {
				s.Process.Kill()
				again(s)
				s.Settle()
				s.full = false
				s.Process.Restart()
				s.Resize(2)
				s.kept()
			},
			"a change meanwhile is an update": func(s *renaming) {
				s.Process.Kill()
				s.Resize(2)
				again(s)
				s.calls("size update", "child resume")
				s.marked(to.prefix, to.name)
			},
			"its deletion takes the children along": func(s *renaming) {
				s.Process.Kill()
				again(s)
				s.Forget()
				s.Remove()
				s.Called("left delete")
				s.gone()
			},
			"a deletion that has begun is finished": func(s *renaming) {
				s.Process.Kill()
				s.Remove()
				again(s)
				s.Called("left delete")
				s.gone()
			},
			"an earlier version that says the new name in was goes on": func(s *renaming) {
				s.Process.Kill()
				again(s)
				s.Process.Kill()
				s.Forget()
				s.run("op", "", strings.TrimSuffix(to.prefix, ".handwerk.dev"))
				s.calls("child resume")
				s.kept()
				s.marked("op.handwerk.dev", "op")
			},
			"children that come late to the cache are moved, too": func(s *renaming) {
				s.Process.Kill()
				s.HoldWatches(scene.ConfigMaps)
				again(s)
				s.ReleaseWatches(scene.ConfigMaps)
				s.Advance(time.Hour)
				s.marked(to.prefix, to.name)
				s.kept()
			},
		}
		for what, play := range plays {
			t.Run(title+": "+what, func(t *testing.T) { playRenaming(t, play) })
		}
	}
}

// calls is Called, but for calls for what has changed of children: of several writes to one, some are news.
func (s *renaming) calls(want ...string) {
	s.T.Helper()
	s.Settle()
	got := slices.DeleteFunc(s.Take(), func(line string) bool { return line == "child child" })
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		s.T.Errorf("calls (-want +got):\n%s", diff)
	}
}

// gone fails the test unless web and its children are gone, but for the unowned one.
func (s *renaming) gone() {
	s.T.Helper()
	s.Advance(time.Minute)
	got := slices.Sorted(func(yield func(string) bool) {
		for key := range s.identities() {
			if !yield(key) {
				return
			}
		}
	})
	if diff := cmp.Diff([]string{"ConfigMap default/web", "ConfigMap ops/web"}, got); diff != "" {
		s.T.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// TestARenamedOperatorFindsRetiredKinds holds that children of a kind that the operator does not make any more are found and
// taken away, whether they were made under the earlier name or not.
func TestARenamedOperatorFindsRetiredKinds(t *testing.T) {
	tests := map[string]struct {
		was  string
		want []string
	}{
		"with the earlier name": {", was: op", []string{"Deployment a of "}},
		"without it, they stay": {"", []string{"Deployment a of app/a", "ConfigMap b of more/b", "Service c of most/c"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				v.CreateElsewhere()
				v.Next(scene.AppliesChild("app", "Deployment", "a"), scene.AppliesChild("more", "ConfigMap", "b"),
					`{id: most, apply: {c: {template: {apiVersion: v1, kind: Service, metadata: {name: c}}, ownership: labelled}}}`)
				v.WantChildren("Deployment a of app/a", "ConfigMap b of more/b", "Service c of most/c")
				v.NextNamed("{name: new"+tt.was+"}", scene.AppliesChild("app", "Deployment", "a"))
				v.Advance(time.Hour)
				v.WantChildren(tt.want...) // by the annotation of the earlier name
				if tt.was == "" {
					return
				}
				if v.Get(scene.ConfigMaps, scene.OpsNamespace, "op-children") != nil {
					v.T.Error("the register of the earlier name is there")
				}
				data := v.Get(scene.ConfigMaps, scene.OpsNamespace, "new-children").Object["data"].(map[string]any)
				if diff := cmp.Diff(map[string]any{"foos.example.com": "Deployment.apps\n"}, data); diff != "" {
					v.T.Errorf("the register (-want +got):\n%s", diff)
				}
				v.Forget()
				v.Process.Restart()
				v.Advance(time.Hour)
				v.Wrote()
			})
		})
	}
}
