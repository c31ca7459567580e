// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// removesChildren is a handler that removes every child, and then notes which there are.
func removesChildren(j *kit.Journal) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		all, err := r.Children.All()
		for _, c := range all {
			err = errors.Join(err, r.Children.Remove(ctx, c))
		}
		return errors.Join(err, scene.NotesChildren(j)(ctx, r))
	}
}

// appliesConfigMaps is a handler that applies a ConfigMap for each spec, named after the spec's name and key.
func appliesConfigMaps(namespace string, specs ...dsl.ChildSpec) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		for _, spec := range specs {
			if _, err := r.Children.Apply(ctx, scene.ConfigMapIn(namespace, spec.Name+spec.Key), spec); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestAHandlerListsAllChildrenOfItsObject holds which children a handler gets.
func TestAHandlerListsAllChildrenOfItsObject(t *testing.T) {
	specs := []dsl.ChildSpec{
		{Handler: "h", Name: "b", Key: "2", Ownership: dsl.Labelled},
		{Handler: "h", Name: "b", Key: "1", Ownership: dsl.Labelled, OnDelete: dsl.OrphanChild},
		{Handler: "h", Name: "a", Ownership: dsl.Labelled, OnDelete: dsl.RetainChild},
		{Handler: "g", Name: "z", Ownership: dsl.Unowned},
	}
	const found = "h/a/=elsewhere/a:labelled,retain h/b/1=elsewhere/b1:labelled,orphan h/b/2=elsewhere/b2:labelled,delete"
	first := func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.ConfigMaps, "foxen.v1.example.org")
		foo.OnCreate("make", appliesConfigMaps("elsewhere", specs...))
		foo.OnCreate("list", scene.NotesChildren(j))
		foo.OnUpdate("list-again", scene.NotesChildren(j))
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"as they were just applied, unowned ones among them, and later as they are": {Operator: first, Play: func(s *scene.Stage) {
			s.CreateElsewhere()
			s.Launch()
			s.HoldWatches(scene.ConfigMaps)
			s.Create(scene.Web)
			s.Called("g/z/=elsewhere/z:none, " + found)
			s.ReleaseWatches(scene.ConfigMaps)
			s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: elsewhere, annotations: {op.handwerk.dev/child: h/x}}}`)
			s.Resize(2)
			s.Called(found)
			s.Process.Restart()
			s.Resize(3)
			s.Called(found)
		}},
		"one that is being deleted is among them": {Operator: first, Play: func(s *scene.Stage) {
			s.CreateElsewhere()
			s.Begin()
			s.Update(scene.ConfigMaps, "elsewhere", "b2", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/x"}) })
			s.Delete(scene.ConfigMaps, "elsewhere", "b2")
			s.Settle()
			s.Resize(2)
			s.Called(found + ",going")
		}},
		"while not all can be seen there is an error": {Operator: first, Play: func(s *scene.Stage) {
			s.CreateElsewhere()
			s.Begin()
			s.Process.Kill()
			s.Forbid("list", scene.ConfigMaps)
			s.Process.Restart()
			s.Resize(2)
			s.Called("error: listing children: configmaps is forbidden: the operator may not list")
			s.Allow("list", scene.ConfigMaps)
			s.Advance(time.Minute)
			got := s.Take()
			if last := got[len(got)-1]; last != found {
				s.T.Errorf("the last call got %s", last)
			}
		}},
		"a kind that is served in another version only is not taken for one without objects": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns("bars.v1alpha1.example.org")
				foo.OnCreate("list", scene.NotesChildren(j))
			}, Play: func(s *scene.Stage) {
				s.Serve(kit.Resource{Name: "bars.v1.example.org", Kind: "Bar"})
				s.Launch()
				s.Create(scene.Web)
				s.Called("error: listing children: reading bars.v1alpha1.example.org: it is not served: the API server serves it in version v1 and not in that one")
			},
		},
	})
}

// TestChildrenThatAreNotWantedAreRemoved holds what becomes of children that are wanted no more.
func TestChildrenThatAreNotWantedAreRemoved(t *testing.T) {
	operator := func(specs ...dsl.ChildSpec) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnCreate("make", appliesConfigMaps("default", specs...))
			foo.OnUpdate("remove", removesChildren(j))
		}
	}
	each := func(o dsl.Ownership) []dsl.ChildSpec {
		return []dsl.ChildSpec{
			{Handler: "h", Name: "d", Ownership: o}, {Handler: "h", Name: "o", Ownership: o, OnDelete: dsl.OrphanChild},
			{Handler: "h", Name: "r", Ownership: o, OnDelete: dsl.RetainChild},
		}
	}
	play := func(o dsl.Ownership) func(s *scene.Stage) {
		return func(s *scene.Stage) {
			s.Begin()
			kept := s.Update(scene.ConfigMaps, "default", "o", func(o *unstructured.Unstructured) {
				o.SetLabels(map[string]string{"theirs": "x", ownerLabel: o.GetLabels()[ownerLabel]})
				o.Object["data"] = map[string]any{"theirs": "y"}
				o.SetOwnerReferences(append(o.GetOwnerReferences(), reference("Pod", "p", "u-9")))
			})
			s.Settle()
			s.HoldWatches(scene.ConfigMaps)
			s.Resize(2)
			s.Called("h/d/=default/d:" + string(o) + ",delete,going h/r/=default/r:labelled,retain")
			s.Wrote("delete configmaps default/d", "patch configmaps default/o", "patch foos default/web")
			s.ReleaseWatches(scene.ConfigMaps)
			if o == dsl.Labelled { // the finalizer stays until the child is gone, which was deleted
				s.Wrote("patch foos default/web")
			}
			s.WantFinalizers()
			s.Wrote()
			s.Resize(3)
			s.Called("h/r/=default/r:labelled,retain")
			s.Wrote("patch foos default/web")
			free := s.Get(scene.ConfigMaps, "default", "o")
			refs := free.GetOwnerReferences()
			if len(refs) != 1 || refs[0].Kind != "Pod" || len(free.GetAnnotations()) > 0 || free.GetLabels()["theirs"] != "x" || len(free.GetLabels()) > 1 ||
				free.GetUID() != kept.GetUID() || free.Object["data"] == nil {
				s.T.Errorf("what was let go is %v", free.Object)
			}
			if s.Get(scene.ConfigMaps, "default", "d") != nil {
				s.T.Error("what was to be deleted is there")
			}
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"owned":    {Operator: operator(each(dsl.Owned)...), Play: play(dsl.Owned)},
		"labelled": {Operator: operator(each(dsl.Labelled)...), Play: play(dsl.Labelled)},
		"a page that is not found does not say that one is gone": {Operator: operator(each(dsl.Owned)[0]), Play: func(s *scene.Stage) {
			s.Begin()
			s.FailNext("delete", scene.ConfigMaps, kit.ErrPage)
			s.Resize(2)
			s.Advance(time.Minute)
			if s.Get(scene.ConfigMaps, "default", "d") != nil {
				s.T.Error("the child was taken for gone and is there")
			}
		}},
		"a page that is not found does not say that one was let go": {Operator: operator(each(dsl.Owned)[1]), Play: func(s *scene.Stage) {
			s.Begin()
			s.FailNext("patch", scene.ConfigMaps, kit.ErrPage)
			s.Resize(2)
			s.Advance(time.Minute)
			if o := s.Get(scene.ConfigMaps, "default", "o"); len(o.GetOwnerReferences()) > 0 {
				s.T.Errorf("the child is tied still: %v", o.Object)
			}
		}},
		"one that changed since is let go as it is": {Operator: operator(each(dsl.Owned)[1]), Play: func(s *scene.Stage) {
			s.Begin()
			s.HoldWatches(scene.ConfigMaps)
			s.Update(scene.ConfigMaps, "default", "o", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"theirs": "x"}) })
			s.Resize(2)
			s.Wrote("patch configmaps default/o: 409", "patch configmaps default/o", "patch foos default/web")
			if o := s.Get(scene.ConfigMaps, "default", "o"); len(o.GetOwnerReferences()) > 0 || o.GetLabels()["theirs"] != "x" {
				s.T.Errorf("what was let go is %v", o.Object)
			}
		}},
		"one that is another's now is left alone": {Operator: operator(each(dsl.Owned)[:2]...), Play: func(s *scene.Stage) {
			s.Begin()
			s.HoldWatches(scene.ConfigMaps)
			for _, name := range []string{"d", "o"} {
				s.Delete(scene.ConfigMaps, "default", name)
				s.Create(scene.ConfigMapIn("default", name))
			}
			s.Resize(2)
			s.Wrote("delete configmaps default/d: 409", "patch configmaps default/o: 409", "patch foos default/web")
		}},
		"what is retained is taken up by the next owner of the name": {Operator: operator(each(dsl.Labelled)[2]), Play: func(s *scene.Stage) {
			s.Begin()
			uid := s.Get(scene.ConfigMaps, "default", "r").GetUID()
			s.Remove()
			s.Create(scene.Web)
			s.Wrote(recorded, "patch foos default/web")
			s.Update(scene.ConfigMaps, "default", "r", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"a": "b"} })
			s.Resize(2)
			s.Called("h/r/=default/r:labelled,retain")
			if s.Get(scene.ConfigMaps, "default", "r").GetUID() != uid {
				s.T.Error("it was made again")
			}
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}, spec: {size: 1}}`)
			s.Settle()
			if got := s.Get(scene.ConfigMaps, "default", "r").GetAnnotations()[ownerLabel]; got != "example.com/Foo/default/web" {
				s.T.Errorf("it is now %s's", got)
			}
		}},
		"a crash while they are removed leaves none": {Operator: operator(each(dsl.Labelled)...), Play: func(s *scene.Stage) {
			s.Begin()
			s.Process.CrashAfter(1)
			s.Resize(2)
			s.Settle()
			s.Process.Kill()
			s.Process.Restart()
			s.Advance(time.Minute)
			if got := len(s.List(scene.ConfigMaps, "default")); got != 2 || len(s.Get(scene.ConfigMaps, "default", "o").GetLabels()) > 0 {
				s.T.Errorf("%d are left, one of them %v", got, s.Get(scene.ConfigMaps, "default", "o").Object)
			}
		}},
	})
}

// TestAskingWhetherAChildIsStaleWritesNothing holds that asking whether a child would be changed writes nothing.
func TestAskingWhetherAChildIsStaleWritesNothing(t *testing.T) {
	spec := dsl.ChildSpec{Handler: "h", Name: "n", Ownership: dsl.Labelled}
	asks := func(spec *dsl.ChildSpec) func(*dsl.Resource, *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("ask", func(ctx context.Context, r *dsl.Request) error {
				size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
				desired := scene.ConfigMapWithValue("default", fmt.Sprint(max(size.(int64), 2)))
				stale, live, err := r.Children.Stale(ctx, desired, *spec)
				j.Add(fmt.Sprint(stale, live != nil, errors.Is(err, dsl.ErrNotOwned)))
				if size == int64(1) {
					_, err = r.Children.Apply(ctx, desired, *spec)
				}
				return err
			})
		}
	}
	adopts := dsl.ChildSpec{Adopt: dsl.AdoptIfUnowned}
	scene.PlayAll(t, map[string]scene.Scenario{
		"of this owner": {Operator: asks(&spec), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("false false false")
			s.Wrote(recorded, "patch configmaps default/web")
			s.Resize(2)
			s.Called("false true false")
			s.Resize(3)
			s.Called("true true false")
			s.ChangeConfigMap("default", scene.SpoilValue)
			s.Called("true true false")
			s.Wrote()
		}},
		"without an owner, to be left alone": {Operator: asks(&spec), Play: func(s *scene.Stage) {
			s.Create(scene.ConfigMapWithValue("default", "theirs"))
			s.Launch()
			s.Create(strings.Replace(scene.Web, "size: 1", "size: 2", 1))
			s.Called("false false true")
		}},
		"without an owner, to be taken": {Operator: asks(&adopts), Play: func(s *scene.Stage) {
			s.Create(scene.ConfigMapWithValue("default", "theirs"))
			s.Launch()
			s.Create(strings.Replace(scene.Web, "size: 1", "size: 2", 1))
			s.Called("true true false")
			s.Wrote()
		}},
	})
}

// TestChildrenMayBeAppliedFromManyGoroutines holds that a handler may apply children from many goroutines.
func TestChildrenMayBeAppliedFromManyGoroutines(t *testing.T) {
	operator := func(ownership dsl.Ownership) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) { applyAtOnce(foo, j, ownership) }
	}
	play := func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Called("make create", "10")
		s.Process.Restart()
		s.Called("make resume", "10")
	}
	scene.PlayAll(t, map[string]scene.Scenario{"ten at once": {Operator: operator(dsl.Owned), Play: play}, "ten with a label": {Operator: operator(dsl.Labelled), Play: play}})
}

// applyAtOnce declares a handler that applies ten children at once, and one that counts them.
func applyAtOnce(foo *dsl.Resource, j *kit.Journal, ownership dsl.Ownership) {
	foo.Owns(scene.ConfigMaps)
	foo.OnReconcile("make", j.Note("make", func(ctx context.Context, r *dsl.Request) error {
		var all sync.WaitGroup
		errs := make([]error, 10)
		for i := range errs {
			all.Go(func() {
				_, errs[i] = r.Children.Apply(ctx, scene.ConfigMapIn("default", fmt.Sprint("c", i)), dsl.ChildSpec{Name: "c", Key: fmt.Sprint(i), Ownership: ownership})
				_, err := r.Children.List(scene.ConfigMaps)
				errs[i] = errors.Join(errs[i], err)
			})
		}
		all.Wait()
		return errors.Join(errs...)
	}))
	foo.OnReconcile("list", func(_ context.Context, r *dsl.Request) error {
		all, err := r.Children.All()
		j.Add(fmt.Sprint(len(all)))
		return err
	})
}
