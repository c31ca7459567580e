// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
)

const attacker = "attacker"

// forge makes what whoever may create a ConfigMap in a namespace can make of it: everything that a
// child of web has, but a line in web's record.
func (s *stage) forge(namespace, name, title string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	s.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"value": "forged"}}}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(map[string]string{ownerLabel: string(s.web().GetUID())})
	u.SetAnnotations(map[string]string{
		ownerLabel: "example.com/Foo/default/web", childAnnotation: title, "op.handwerk.dev/applied": "handwerk:forged",
	})
	u.SetFinalizers([]string{"example.com/hold"})
	for _, c := range change {
		c(u)
	}
	return s.Create(u.Object)
}

// referring gives an object web as its owner, and no label.
func (s *stage) referring(u *unstructured.Unstructured) {
	u.SetLabels(nil)
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(s.web(), s.web().GroupVersionKind())})
}

// retained gives an object the label of what is retained for web.
func retained(u *unstructured.Unstructured) {
	name, _ := apply.ParseOwnerName("example.com/Foo/default/web")
	u.SetLabels(map[string]string{ownerLabel: name.Retained()})
}

// listed returns what web's record lists, as it is on web.
func (s *stage) listed() string {
	s.t.Helper()
	_, list, _ := strings.Cut(s.web().GetAnnotations()[record], `"children":`)
	return strings.ReplaceAll(strings.TrimSuffix(list, "}"), " keep/settings", "")
}

// grows returns an operator that keeps a ConfigMap in each of the first namespaces, so many as the
// size of the object says.
func grows(spec dsl.ChildSpec, namespaces ...string) func(*dsl.Resource, *journal) {
	return func(foo *dsl.Resource, j *journal) {
		foo.Owns(configMaps)
		foo.OnReconcile("keep", j.Note("keep", func(ctx ctx, r *dsl.Request) error {
			size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
			all, err := r.Children.All()
			if err != nil {
				return err
			}
			for _, c := range all {
				if !slices.Contains(namespaces[:size.(int64)], c.Object.GetNamespace()) {
					if err := r.Children.Remove(ctx, c); err != nil {
						return err
					}
				}
			}
			var wanted []dsl.DesiredChild
			for _, ns := range namespaces[:size.(int64)] {
				wanted = append(wanted, dsl.DesiredChild{ChildSpec: spec, Object: settings(ns, "x")})
			}
			if err := r.Children.Enter(ctx, wanted...); err != nil {
				j.Add(err.Error())
				return err
			}
			for _, ns := range namespaces[:size.(int64)] {
				if _, err := r.Children.Apply(ctx, settings(ns, "x"), spec); err != nil {
					j.Add(err.Error())
					return err
				}
			}
			return nil
		}))
		foo.OnDelete("leave", j.Note("leave", func(ctx ctx, r *dsl.Request) error {
			all, err := r.Children.All()
			for _, c := range all {
				if err := r.Children.Remove(ctx, c); err != nil {
					return err
				}
			}
			if len(all) > 0 {
				return dsl.Waiting("children to be gone", 0)
			}
			return err
		}))
		foo.OnUpdate("list", lists(j), dsl.NoOld())
	}
}

// TestForgedChildren holds that nobody gives another's object a child by creating one somewhere.
func TestForgedChildren(t *testing.T) {
	labelled := dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Labelled}
	operator := grows(labelled, "elsewhere", attacker)
	begin := func(s *stage) {
		s.elsewhere()
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: attacker}}`)
		s.begin()
	}
	const genuine = "keep/settings/=elsewhere/web:labelled,delete"
	ways := map[string]func(*stage) []func(*unstructured.Unstructured){
		"by the label of its uid":  func(*stage) []func(*unstructured.Unstructured) { return nil },
		"by the label of its name": func(*stage) []func(*unstructured.Unstructured) { return []func(*unstructured.Unstructured){retained} },
		"by an owner reference": func(s *stage) []func(*unstructured.Unstructured) {
			return []func(*unstructured.Unstructured){func(u *unstructured.Unstructured) { s.referring(u) }}
		},
	}
	all := map[string]scenario{}
	for way, of := range ways {
		for when, before := range map[string]bool{"": false, ", found at the start": true} {
			all["one that is forged "+way+when+" wakes nobody, is seen by nobody, and holds nothing up"] = scenario{operator, func(s *stage) {
				begin(s)
				s.forge(attacker, "aaa", "keep/settings", of(s)...)
				s.Called()
				s.Update(configMaps, attacker, "aaa", spoil)
				s.Called()
				if before {
					s.Process.Restart()
					s.Forget()
				}
				s.set("blue", "spec", "color")
				s.Called("keep update", genuine)
				s.remove()
				s.Advance(2 * time.Minute)
				s.gone()
				if o := s.Get(configMaps, attacker, "aaa"); o == nil || o.GetDeletionTimestamp() != nil || s.Get(configMaps, "elsewhere", "web") != nil {
					s.t.Error("the wrong one is gone")
				}
			}}
		}
	}
	maps.Copy(all, map[string]scenario{
		"one in the place of a child to come is left alone, and told": {operator, func(s *stage) {
			begin(s)
			forged := s.forge(attacker, "web", "keep/settings")
			s.Settle() // or it may be seen too late, which is the next one
			s.size(2)
			s.Called("keep update", "applying ConfigMap attacker/web: it exists and is not owned by this object; it has the label of this object, "+
				"but is not in its record of children (annotation op.handwerk.dev/children): delete it, or give the child another name",
				genuine)
			s.Wrote("patch foos default/web")
			if o := s.Get(configMaps, attacker, "web"); o.GetResourceVersion() != forged.GetResourceVersion() || s.listed() != `["/ConfigMap/elsewhere/web"]` {
				s.t.Errorf("the object is %v, and the record %s", o.Object, s.listed())
			}
			s.size(1)
			s.remove()
			s.Advance(2 * time.Minute)
			s.gone()
		}},
		"one that takes the place of the last child that went is left alone, for the empty record says that it came later": {operator, func(s *stage) {
			begin(s)
			s.Advance(time.Minute)
			s.size(0)
			s.Settle()
			s.set("blue", "spec", "color") // its write takes the child out of the record
			s.Advance(time.Minute)
			s.forge("elsewhere", "web", "keep/settings")
			s.Settle()
			s.size(1)
			s.Advance(time.Minute)
			s.value("elsewhere", "forged")
		}},
		"one that comes while its place is entered is struck out again": {operator, func(s *stage) {
			begin(s)
			s.HoldWatches(configMaps)
			s.forge(attacker, "web", "keep/settings")
			s.size(2)
			s.Settle()
			if s.value(attacker, "forged"); s.listed() != `["/ConfigMap/elsewhere/web"]` {
				s.t.Errorf("the record is %s", s.listed())
			}
			s.ReleaseWatches(configMaps)
			s.Advance(time.Minute)
			s.value(attacker, "forged")
		}},
		"a child that is made to pass for another one is what it was entered as": {func(foo *dsl.Resource, j *journal) {
			foo.Owns(configMaps)
			foo.OnCreate("keep", func(ctx ctx, r *dsl.Request) error {
				other := labelled
				other.Name = "other"
				if _, err := r.Children.Apply(ctx, settings("elsewhere", "x"), labelled); err != nil {
					return err
				}
				_, err := r.Children.Apply(ctx, settings(attacker, "x"), other)
				return err
			})
			foo.OnUpdate("list", lists(j), dsl.NoOld())
		}, func(s *stage) {
			begin(s)
			s.Update(configMaps, attacker, "web", func(o *unstructured.Unstructured) {
				notes := o.GetAnnotations()
				notes[childAnnotation] = "keep/settings"
				o.SetAnnotations(notes)
				o.SetFinalizers([]string{"example.com/hold"})
			})
			s.Delete(configMaps, attacker, "web")
			s.Forget()
			s.set("blue", "spec", "color")
			s.Called("keep/other/=attacker/web:labelled,delete,going " + genuine)
			s.Process.Restart()
			s.Forget()
			s.set("green", "spec", "color")
			s.Called("keep/other/=attacker/web:labelled,delete,going " + genuine)
		}},
		"one in a place that a child has left is none": {operator, func(s *stage) {
			begin(s)
			s.size(2)
			s.size(1)
			s.Forget()
			s.forge(attacker, "web", "keep/settings")
			s.Called()
			s.set("blue", "spec", "color")
			s.Called("keep update", genuine)
			if s.listed() != `["/ConfigMap/elsewhere/web"]` {
				s.t.Errorf("the record is %s", s.listed())
			}
		}},
		"the record of an object that is restored from a copy is void": {operator, func(s *stage) {
			begin(s)
			s.size(2)
			s.Settle()
			copied := s.web().GetAnnotations()[record]
			s.remove()
			s.Advance(2 * time.Minute)
			s.gone()
			s.Create(map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "spec": map[string]any{"size": int64(1)},
				"metadata": map[string]any{"name": "web", "annotations": map[string]any{record: copied}}})
			s.Forget()
			s.forge(attacker, "web", "keep/settings", retained)
			s.set("blue", "spec", "color")
			s.Called("keep update", genuine)
		}},
	})
	scenarios(t, all)
}

// TestRecord holds what the record costs, and that it is never in the way.
func TestRecord(t *testing.T) {
	labelled := dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Labelled}
	operator := grows(labelled, "elsewhere", "default")
	begin := func(s *stage) {
		s.elsewhere()
		s.begin()
	}
	// before takes back what an operator without a record would not have written.
	before := func(s *stage, change ...func(*unstructured.Unstructured)) {
		s.Process.Kill()
		s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
			notes := o.GetAnnotations()
			delete(notes, record)
			o.SetAnnotations(notes)
			for _, c := range change {
				c(o)
			}
		})
		s.Forget()
	}
	scenarios(t, map[string]scenario{
		"it is no news to anybody, and no reason to write again": {operator, func(s *stage) {
			begin(s)
			s.Called()
			s.Process.Restart()
			s.Wrote()
			if s.listed() != `["/ConfigMap/elsewhere/web"]` {
				s.t.Errorf("the record is %s", s.listed())
			}
		}},
		"children from before there was one are entered by one write": {operator, func(s *stage) {
			begin(s)
			s.size(2)
			s.Settle()
			uids := []any{s.value("elsewhere", "x").GetUID(), s.value("default", "x").GetUID()}
			before(s)
			s.Process.Restart()
			s.Wrote(recorded)
			if now := []any{s.value("elsewhere", "x").GetUID(), s.value("default", "x").GetUID()}; fmt.Sprint(now) != fmt.Sprint(uids) {
				s.t.Errorf("they were made again: %v", now)
			}
			s.Process.Restart()
			s.Wrote()
			s.remove()
			s.Advance(2 * time.Minute)
			s.gone()
			if len(s.List(configMaps, "elsewhere"))+len(s.List(configMaps, "default")) > 0 {
				s.t.Error("children are left behind")
			}
		}},
		"a crash while they are entered one by one leaves none behind": {func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("make", makes("elsewhere", labelled, dsl.ChildSpec{Handler: "keep", Name: "more", Ownership: dsl.Labelled}))
		}, func(s *stage) {
			begin(s)
			before(s)
			s.Advance(time.Minute)
			s.Process.Restart()
			s.Process.CrashAfter(1)
			s.Settle()
			s.Process.Kill()
			s.Forget()
			s.Process.Restart()
			s.Settle()
			if s.listed() != `["/ConfigMap/elsewhere/more keep/more","/ConfigMap/elsewhere/settings"]` {
				s.t.Errorf("the record is %s", s.listed())
			}
		}},
		"those that are wanted no more are named, and left alone": {operator, func(s *stage) {
			begin(s)
			s.size(2)
			s.Settle()
			before(s, func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"size": int64(1)} })
			var mu sync.Mutex
			var lines []string
			s.Process = s.Start(s.Operator, func(e *engine.Settings) {
				e.Log = funcr.New(func(_, line string) {
					mu.Lock()
					defer mu.Unlock()
					lines = append(lines, line)
				}, funcr.Options{})
			})
			s.Settle()
			mu.Lock()
			defer mu.Unlock()
			s.value("default", "x")
			if !slices.ContainsFunc(lines, func(l string) bool {
				return strings.Contains(l, "left alone") && strings.Contains(l, `"objects"="/ConfigMap/default/web"`)
			}) {
				s.t.Errorf("the log is %s", strings.Join(lines, "\n"))
			}
		}},
		"an object that cannot keep it makes no child": {operator, func(s *stage) {
			s.elsewhere()
			s.Launch()
			s.Create(map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "spec": map[string]any{"size": int64(1)},
				"metadata": map[string]any{"name": "web", "annotations": map[string]any{"note": strings.Repeat("x", 262144-100)}}})
			s.Advance(time.Hour)
			got := s.Take()
			if len(got) != 2 || !strings.Contains(got[1], "entering children of Foo default/web into its record: its annotations would have 26") {
				s.t.Errorf("calls %v", got)
			}
			if s.Get(configMaps, "elsewhere", "web") != nil {
				s.t.Error("there is a child")
			}
		}},
		"an object that cannot be written to makes no child": {operator, func(s *stage) {
			s.elsewhere()
			s.Launch()
			s.Create(strings.Replace(web, "size: 1", "size: 0", 1))
			s.Forget()
			s.FailNext("patch", foos, notFound())
			s.size(1)
			s.Settle()
			if s.Get(configMaps, "elsewhere", "web") != nil {
				s.t.Error("there is a child")
			}
			s.Advance(time.Minute)
			s.value("elsewhere", "x")
		}},
		"an answer that is lost loses no child": {operator, func(s *stage) {
			begin(s)
			s.LoseNext("patch", configMaps)
			s.HoldWatches(configMaps)
			s.size(2)
			s.Settle()
			s.set(int64(1), "spec", "size")
			s.Settle()
			s.ReleaseWatches(configMaps)
			s.Advance(time.Minute)
			if s.set("blue", "spec", "color"); s.Get(configMaps, "default", "web") != nil {
				s.Advance(time.Minute)
			}
			if s.Get(configMaps, "default", "web") != nil {
				s.t.Error("what is wanted no more is there")
			}
		}},
	})
}
