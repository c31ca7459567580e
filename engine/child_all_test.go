// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// named is a ConfigMap of a name.
func named(namespace, name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": namespace}}
}

// tell writes children for a journal.
func tell(children []dsl.ChildObject) string {
	var out []string
	for _, c := range children {
		text := fmt.Sprintf("%s/%s/%s=%s/%s:%s,%s", c.Handler, c.Name, c.Key, c.Object.GetNamespace(), c.Object.GetName(), c.Ownership, c.OnDelete)
		if c.Object.GetDeletionTimestamp() != nil {
			text += ",going"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// lists is a handler that tells which children there are.
func lists(j *journal) dsl.Func {
	return func(_ ctx, r *dsl.Request) error {
		all, err := r.Children.All()
		if err != nil {
			j.Add("error: " + err.Error())
			return dsl.Temporary(err, time.Second)
		}
		j.Add(tell(all))
		return nil
	}
}

// removes is a handler that removes every child, and then tells which there are.
func removes(j *journal) dsl.Func {
	return func(ctx ctx, r *dsl.Request) error {
		all, err := r.Children.All()
		for _, c := range all {
			err = errors.Join(err, r.Children.Remove(ctx, c))
		}
		return errors.Join(err, lists(j)(ctx, r))
	}
}

// makes is a handler that applies a ConfigMap for each spec, named after the spec's name and key.
func makes(namespace string, specs ...dsl.ChildSpec) dsl.Func {
	return func(ctx ctx, r *dsl.Request) error {
		for _, spec := range specs {
			if _, err := r.Children.Apply(ctx, named(namespace, spec.Name+spec.Key), spec); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestAllChildren holds which children a handler is told of.
func TestAllChildren(t *testing.T) {
	specs := []dsl.ChildSpec{
		{Handler: "h", Name: "b", Key: "2", Ownership: dsl.Labelled},
		{Handler: "h", Name: "b", Key: "1", Ownership: dsl.Labelled, OnDelete: dsl.OrphanChild},
		{Handler: "h", Name: "a", Ownership: dsl.Labelled, OnDelete: dsl.RetainChild},
		{Handler: "g", Name: "z", Ownership: dsl.Unowned},
	}
	const found = "h/a/=elsewhere/a:labelled,retain h/b/1=elsewhere/b1:labelled,orphan h/b/2=elsewhere/b2:labelled,delete"
	first := func(foo *dsl.Resource, j *journal) {
		foo.Owns(configMaps, "foxen.v1.example.org")
		foo.OnCreate("make", makes("elsewhere", specs...))
		foo.OnCreate("list", lists(j))
		foo.OnUpdate("list-again", lists(j))
	}
	scenarios(t, map[string]scenario{
		"as they were just applied, unowned ones among them, and later as they are": {first, func(s *stage) {
			s.elsewhere()
			s.Launch()
			s.HoldWatches(configMaps)
			s.Create(web)
			s.Called("g/z/=elsewhere/z:none, " + found)
			s.ReleaseWatches(configMaps)
			s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: elsewhere, annotations: {op.handwerk.dev/child: h/x}}}`)
			s.size(2)
			s.Called(found)
			s.Process.Restart()
			s.size(3)
			s.Called(found)
		}},
		"one that is being deleted is among them": {first, func(s *stage) {
			s.elsewhere()
			s.begin()
			s.Update(configMaps, "elsewhere", "b2", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/x"}) })
			s.Delete(configMaps, "elsewhere", "b2")
			s.Settle()
			s.size(2)
			s.Called(found + ",going")
		}},
		"while not all can be seen there is an error": {first, func(s *stage) {
			s.elsewhere()
			s.begin()
			s.Process.Kill()
			s.Forbid("list", configMaps)
			s.Process.Restart()
			s.size(2)
			s.Called("error: listing children: configmaps is forbidden: the operator may not list")
			s.Allow("list", configMaps)
			s.Advance(time.Minute)
			got := s.Take()
			if last := got[len(got)-1]; last != found {
				s.t.Errorf("the last call got %s", last)
			}
		}},
		"a kind that is served in another version only is not taken for one without objects": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns("bars.v1alpha1.example.org")
				foo.OnCreate("list", lists(j))
			}, func(s *stage) {
				s.Serve(enginetest.Resource{Name: "bars.v1.example.org", Kind: "Bar"})
				s.Launch()
				s.Create(web)
				s.Called("error: listing children: reading bars.v1alpha1.example.org: it is not served: the API server serves it in version v1 and not in that one")
			},
		},
	})
}

// TestRemoveChildren holds what becomes of children that are wanted no more.
func TestRemoveChildren(t *testing.T) {
	operator := func(specs ...dsl.ChildSpec) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.Owns(configMaps)
			foo.OnCreate("make", makes("default", specs...))
			foo.OnUpdate("remove", removes(j))
		}
	}
	each := func(o dsl.Ownership) []dsl.ChildSpec {
		return []dsl.ChildSpec{
			{Handler: "h", Name: "d", Ownership: o}, {Handler: "h", Name: "o", Ownership: o, OnDelete: dsl.OrphanChild},
			{Handler: "h", Name: "r", Ownership: o, OnDelete: dsl.RetainChild},
		}
	}
	play := func(o dsl.Ownership) func(s *stage) {
		return func(s *stage) {
			s.begin()
			kept := s.Update(configMaps, "default", "o", func(o *unstructured.Unstructured) {
				o.SetLabels(map[string]string{"theirs": "x", ownerLabel: o.GetLabels()[ownerLabel]})
				o.Object["data"] = map[string]any{"theirs": "y"}
				o.SetOwnerReferences(append(o.GetOwnerReferences(), reference("Pod", "p", "u-9")))
			})
			s.Settle()
			s.HoldWatches(configMaps)
			s.size(2)
			s.Called("h/d/=default/d:" + string(o) + ",delete,going h/r/=default/r:labelled,retain")
			s.Wrote("delete configmaps default/d", "patch configmaps default/o", "patch foos default/web")
			s.ReleaseWatches(configMaps)
			if o == dsl.Labelled { // the finalizer stays until the child is gone, which was deleted
				s.Wrote("patch foos default/web")
			}
			s.finalizers()
			s.Wrote()
			s.size(3)
			s.Called("h/r/=default/r:labelled,retain")
			s.Wrote("patch foos default/web")
			free := s.Get(configMaps, "default", "o")
			refs := free.GetOwnerReferences()
			if len(refs) != 1 || refs[0].Kind != "Pod" || len(free.GetAnnotations()) > 0 || free.GetLabels()["theirs"] != "x" || len(free.GetLabels()) > 1 ||
				free.GetUID() != kept.GetUID() || free.Object["data"] == nil {
				s.t.Errorf("what was let go is %v", free.Object)
			}
			if s.Get(configMaps, "default", "d") != nil {
				s.t.Error("what was to be deleted is there")
			}
		}
	}
	scenarios(t, map[string]scenario{
		"owned":    {operator(each(dsl.Owned)...), play(dsl.Owned)},
		"labelled": {operator(each(dsl.Labelled)...), play(dsl.Labelled)},
		"a page that is not found does not say that one is gone": {operator(each(dsl.Owned)[0]), func(s *stage) {
			s.begin()
			s.FailNext("delete", configMaps, enginetest.ErrPage)
			s.size(2)
			s.Advance(time.Minute)
			if s.Get(configMaps, "default", "d") != nil {
				s.t.Error("the child was taken for gone and is there")
			}
		}},
		"a page that is not found does not say that one was let go": {operator(each(dsl.Owned)[1]), func(s *stage) {
			s.begin()
			s.FailNext("patch", configMaps, enginetest.ErrPage)
			s.size(2)
			s.Advance(time.Minute)
			if o := s.Get(configMaps, "default", "o"); len(o.GetOwnerReferences()) > 0 {
				s.t.Errorf("the child is tied still: %v", o.Object)
			}
		}},
		"one that changed since is let go as it is": {operator(each(dsl.Owned)[1]), func(s *stage) {
			s.begin()
			s.HoldWatches(configMaps)
			s.Update(configMaps, "default", "o", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"theirs": "x"}) })
			s.size(2)
			s.Wrote("patch configmaps default/o: 409", "patch configmaps default/o", "patch foos default/web")
			if o := s.Get(configMaps, "default", "o"); len(o.GetOwnerReferences()) > 0 || o.GetLabels()["theirs"] != "x" {
				s.t.Errorf("what was let go is %v", o.Object)
			}
		}},
		"one that is another's now is left alone": {operator(each(dsl.Owned)[:2]...), func(s *stage) {
			s.begin()
			s.HoldWatches(configMaps)
			for _, name := range []string{"d", "o"} {
				s.Delete(configMaps, "default", name)
				s.Create(named("default", name))
			}
			s.size(2)
			s.Wrote("delete configmaps default/d: 409", "patch configmaps default/o: 409", "patch foos default/web")
		}},
		"what is retained is taken up by the next owner of the name": {operator(each(dsl.Labelled)[2]), func(s *stage) {
			s.begin()
			uid := s.Get(configMaps, "default", "r").GetUID()
			s.remove()
			s.Create(web)
			s.Wrote(recorded, "patch foos default/web")
			s.Update(configMaps, "default", "r", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"a": "b"} })
			s.size(2)
			s.Called("h/r/=default/r:labelled,retain")
			if s.Get(configMaps, "default", "r").GetUID() != uid {
				s.t.Error("it was made again")
			}
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}, spec: {size: 1}}`)
			s.Settle()
			if got := s.Get(configMaps, "default", "r").GetAnnotations()[ownerLabel]; got != "example.com/Foo/default/web" {
				s.t.Errorf("it is now %s's", got)
			}
		}},
		"a crash while they are removed leaves none": {operator(each(dsl.Labelled)...), func(s *stage) {
			s.begin()
			s.Process.CrashAfter(1)
			s.size(2)
			s.Settle()
			s.Process.Kill()
			s.Process.Restart()
			s.Advance(time.Minute)
			if got := len(s.List(configMaps, "default")); got != 2 || len(s.Get(configMaps, "default", "o").GetLabels()) > 0 {
				s.t.Errorf("%d are left, one of them %v", got, s.Get(configMaps, "default", "o").Object)
			}
		}},
	})
}

// TestStaleChildren holds that asking whether a child would be changed writes nothing.
func TestStaleChildren(t *testing.T) {
	spec := dsl.ChildSpec{Handler: "h", Name: "n", Ownership: dsl.Labelled}
	asks := func(spec *dsl.ChildSpec) func(*dsl.Resource, *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("ask", func(ctx ctx, r *dsl.Request) error {
				size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
				desired := settings("default", fmt.Sprint(max(size.(int64), 2)))
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
	scenarios(t, map[string]scenario{
		"of this owner": {asks(&spec), func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Called("false false false")
			s.Wrote(recorded, "patch configmaps default/web")
			s.size(2)
			s.Called("false true false")
			s.size(3)
			s.Called("true true false")
			s.drift("default", spoil)
			s.Called("true true false")
			s.Wrote()
		}},
		"of nobody, to be left alone": {asks(&spec), func(s *stage) {
			s.Create(settings("default", "theirs"))
			s.Launch()
			s.Create(strings.Replace(web, "size: 1", "size: 2", 1))
			s.Called("false false true")
		}},
		"of nobody, to be taken": {asks(&adopts), func(s *stage) {
			s.Create(settings("default", "theirs"))
			s.Launch()
			s.Create(strings.Replace(web, "size: 1", "size: 2", 1))
			s.Called("true true false")
			s.Wrote()
		}},
	})
}

// TestChildrenAtOnce holds that a handler may apply children from many goroutines.
func TestChildrenAtOnce(t *testing.T) {
	operator := func(ownership dsl.Ownership) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) { applyAtOnce(foo, j, ownership) }
	}
	play := func(s *stage) {
		s.Launch()
		s.Create(web)
		s.Called("make create", "10")
		s.Process.Restart()
		s.Called("make resume", "10")
	}
	scenarios(t, map[string]scenario{"ten at once": {operator(dsl.Owned), play}, "ten with a label": {operator(dsl.Labelled), play}})
}

// applyAtOnce declares a handler that applies ten children at once, and one that counts them.
func applyAtOnce(foo *dsl.Resource, j *journal, ownership dsl.Ownership) {
	foo.Owns(configMaps)
	foo.OnReconcile("make", j.Note("make", func(ctx ctx, r *dsl.Request) error {
		var all sync.WaitGroup
		errs := make([]error, 10)
		for i := range errs {
			all.Go(func() {
				_, errs[i] = r.Children.Apply(ctx, named("default", fmt.Sprint("c", i)), dsl.ChildSpec{Name: "c", Key: fmt.Sprint(i), Ownership: ownership})
				_, err := r.Children.List(configMaps)
				errs[i] = errors.Join(errs[i], err)
			})
		}
		all.Wait()
		return errors.Join(errs...)
	}))
	foo.OnReconcile("list", func(_ ctx, r *dsl.Request) error {
		all, err := r.Children.All()
		j.Add(fmt.Sprint(len(all)))
		return err
	})
}
