// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/handwerk-dev/handwerk/dsl"
)

// relates returns an operator whose handler notes what a relation selects.
func relates(relation dsl.Relation, causes ...dsl.Cause) func(foo *dsl.Resource, j *journal) {
	return func(foo *dsl.Resource, j *journal) {
		relation.Name = "them"
		if relation.Resource.Resource == "" {
			relation.Resource = dsl.ResourceName{Resource: "configmaps", Version: "v1"}
		}
		foo.Relates(relation)
		foo.On(causes, "see", func(_ ctx, r *dsl.Request) error {
			line := r.Object.GetName() + " " + string(r.Cause) + ":"
			found, err := r.Related.Get("them")
			for _, o := range found {
				value, _, _ := unstructured.NestedString(o.Object, "data", "v")
				line += " " + o.GetNamespace() + "/" + o.GetName() + "=" + value
				o.Object["data"] = "spoilt"
			}
			if err != nil {
				line += " error"
			}
			j.Add(line)
			return err
		}, dsl.WithBackoff(24*time.Hour, 24*time.Hour))
	}
}

// byName selects the ConfigMap that spec.ref names, in the object's namespace.
func byName(r *dsl.Subject) (dsl.Selection, error) {
	name, _, err := unstructured.NestedString(r.Object.Object, "spec", "ref")
	return dsl.Selection{Namespace: r.Object.GetNamespace(), Names: []string{name}}, err
}

// byLabel selects the ConfigMaps of the namespace that have the object's name as their label app.
func byLabel(r *dsl.Subject) (dsl.Selection, error) {
	return dsl.Selection{Namespace: r.Object.GetNamespace(), Labels: labels.SelectorFromSet(labels.Set{"app": r.Object.GetName()})}, nil
}

// byMatch selects the ConfigMaps of any namespace whose data has the object's name.
func byMatch(r *dsl.Subject) (dsl.Selection, error) {
	name := r.Object.GetName()
	return dsl.Selection{Match: func(o *unstructured.Unstructured) (bool, error) {
		owner, found, _ := unstructured.NestedString(o.Object, "data", "for")
		if !found {
			return true, errors.New("an error is a no")
		}
		return owner == name, nil
	}}, nil
}

func foo(name, ref string) string {
	return fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: %s}, spec: {ref: %s}}`, name, ref)
}

// settingsMap returns a ConfigMap; the name may have a namespace before it.
func settingsMap(name, app, owner, value string) string {
	namespace, rest, both := strings.Cut(name, "/")
	if !both {
		namespace, rest = "default", name
	}
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: %s, labels: {app: "%s"}}, data: {for: "%s", v: "%s"}}`,
		namespace, rest, app, owner, value)
}

// give sets the value of a ConfigMap's data.
func (s *stage) give(name, key, value string) {
	s.t.Helper()
	namespace, rest, both := strings.Cut(name, "/")
	if !both {
		namespace, rest = "default", name
	}
	s.Update(configMaps, namespace, rest, func(o *unstructured.Unstructured) {
		if key == "app" {
			o.SetLabels(map[string]string{"app": value})
			return
		}
		_ = unstructured.SetNestedField(o.Object, value, "data", key)
	})
}

func TestRelated(t *testing.T) {
	scenarios(t, map[string]scenario{
		"by name: those that name the object are woken, and no others": {
			relates(dsl.Relation{Select: byName}, dsl.Reconcile), func(s *stage) {
				s.Create(settingsMap("a", "", "", "1"))
				s.Launch()
				s.Create(foo("one", "a"))
				s.Create(foo("two", "b"))
				s.CalledInAnyOrder("one create: default/a=1", "two create:")
				s.give("a", "v", "2")
				s.Called("one related: default/a=2")
				s.Create(settingsMap("b", "", "", "1"))
				s.Called("two related: default/b=1")
				s.Create(settingsMap("other/b", "", "", "9"))
				s.Create(settingsMap("c", "", "", "9"))
				s.Called()
				s.Delete(configMaps, "default", "b")
				s.Called("two related:")
				s.Wrote()
			},
		},
		"what an object asks for may change": {
			relates(dsl.Relation{Select: byName}, dsl.Reconcile), func(s *stage) {
				s.Create(settingsMap("a", "", "", "1"))
				s.Create(settingsMap("b", "", "", "1"))
				s.Launch()
				s.Create(foo("web", "a"))
				s.Called("web create: default/a=1")
				s.set("b", "spec", "ref")
				s.Called("web update: default/b=1")
				s.give("a", "v", "2")
				s.Called()
				s.give("b", "v", "2")
				s.Called("web related: default/b=2")
				s.remove()
				s.Settle()
				s.give("b", "v", "3")
				s.Called()
			},
		},
		"a handler for related changes alone sees that its object asks for another": {
			relates(dsl.Relation{Select: byName}, dsl.RelatedChange), func(s *stage) {
				s.Create(settingsMap("a", "", "", "1"))
				s.Launch()
				s.Create(foo("web", "x"))
				s.set("y", "spec", "ref")
				s.Called()
				s.set("a", "spec", "ref")
				s.Called("web related: default/a=1")
			},
		},
		"by labels: those whose selector the object fulfils or did fulfil": {
			relates(dsl.Relation{Select: byLabel}, dsl.Reconcile), func(s *stage) {
				s.Launch()
				s.Create(foo("one", "x"))
				s.Create(foo("two", "x"))
				s.Forget()
				s.Create(settingsMap("b", "one", "", "1"))
				s.Called("one related: default/b=1")
				s.Create(settingsMap("a", "one", "", "1"))
				s.Called("one related: default/a=1 default/b=1")
				s.give("a", "app", "two")
				s.CalledInAnyOrder("one related: default/b=1", "two related: default/a=1")
				s.give("a", "app", "none")
				s.Called("two related:")
				s.Create(settingsMap("other/a", "one", "", "1"))
				s.Called()
			},
		},
		"by a condition: those for which it holds or did hold": {
			relates(dsl.Relation{Select: byMatch}, dsl.Reconcile), func(s *stage) {
				s.Launch()
				s.Create(foo("one", "x"))
				s.Create(foo("two", "x"))
				s.Forget()
				s.Create(settingsMap("other/a", "", "one", "1"))
				s.Called("one related: other/a=1")
				s.give("other/a", "for", "two")
				s.CalledInAnyOrder("one related:", "two related: other/a=1")
				s.give("other/a", "for", "nobody")
				s.Called("two related:")
				s.give("other/a", "v", "2")
				s.Delete(configMaps, "other", "a")
				s.Called()
			},
		},
		"without a selection all of them": {
			relates(dsl.Relation{}, dsl.Reconcile), func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("web create:")
				s.Create(settingsMap("other/a", "", "", "1"))
				s.Called("web related: other/a=1")
			},
		},
		"what the server does not select is not there": {
			relates(dsl.Relation{LabelSelector: "app=x"}, dsl.Reconcile), func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Forget()
				s.Create(settingsMap("a", "y", "", "1"))
				s.Called()
				s.Create(settingsMap("b", "x", "", "1"))
				s.Called("web related: default/b=1")
			},
		},
		"a deletion in a gap of the watch counts": {
			relates(dsl.Relation{Select: byName}, dsl.Reconcile), func(s *stage) {
				s.Create(settingsMap("a", "", "", "1"))
				s.Launch()
				s.Create(foo("web", "a"))
				s.Forget()
				s.HoldWatches(configMaps)
				s.Delete(configMaps, "default", "a")
				s.ExpireWatches(configMaps)
				s.ReleaseWatches(configMaps)
				s.Advance(time.Minute)
				s.Called("web related:")
			},
		},
		"a selection that fails fails the handler, which is tried again": {
			relates(dsl.Relation{Select: func(*dsl.Subject) (dsl.Selection, error) { return dsl.Selection{}, errAgain }}, dsl.Reconcile),
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(29 * time.Hour)
				s.Called("web create: error", "web create: error")
			},
		},
		"one that panics too": {
			relates(dsl.Relation{Select: func(*dsl.Subject) (dsl.Selection, error) { panic("no") }}, dsl.Reconcile),
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("web create: error")
			},
		},
		"a change cuts a retry short": {
			func(foo *dsl.Resource, j *journal) {
				relates(dsl.Relation{}, dsl.RelatedChange)(foo, j)
				foo.OnReconcile("vain", j.Note("vain", temporary(time.Hour), fails(dsl.Waiting("them", time.Hour)), succeeds))
				foo.OnCreate("made", j.Note("made", fails(dsl.Waiting("them", time.Hour)), succeeds))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("vain create", "made create")
				s.Create(settingsMap("a", "", "", "1"))
				s.Called("web related: default/a=1", "vain create 2", "made create")
				s.give("a", "v", "2")
				s.Called("web related: default/a=2", "vain create 2")
			},
		},
		"a restart brings no news": {
			relates(dsl.Relation{}, dsl.RelatedChange), func(s *stage) {
				s.Create(settingsMap("a", "", "", "1"))
				s.begin()
				s.Process.Restart()
				s.Called()
				s.give("a", "v", "2")
				s.Called("web related: default/a=2")
			},
		},
		"news of a pass that failed are told to the next": {
			func(foo *dsl.Resource, j *journal) {
				foo.Relates(dsl.Relation{Name: "them", Resource: dsl.ResourceName{Resource: "configmaps", Version: "v1"}})
				foo.OnRelated("see", j.Note("see", func(_ ctx, r *dsl.Request) error {
					r.Patch.SetStatus("seen", r.Now.String())
					return nil
				}))
			}, func(s *stage) {
				s.begin()
				s.FailNext("patch", foos+"/status", errors.New("connection refused"))
				s.Create(settingsMap("a", "", "", "1"))
				s.Advance(time.Second)
				s.Called("see related", "see related")
			},
		},
	})
}

// TestRelatedToItself holds that an object that is among its related ones is not news to itself, and
// that two that are each other's come to rest.
func TestRelatedToItself(t *testing.T) {
	any := func(*unstructured.Unstructured) (bool, error) { return true, nil }
	operator := func(foo *dsl.Resource, j *journal) {
		foo.Relates(dsl.Relation{
			Name: "foos", Resource: dsl.ResourceName{Resource: "foos", Version: "v1", Group: "example.com"},
			Select: func(*dsl.Subject) (dsl.Selection, error) { return dsl.Selection{Match: any}, nil },
		})
		foo.OnReconcile("count", func(_ ctx, r *dsl.Request) error {
			found, err := r.Related.Get("foos")
			j.Add(fmt.Sprint(r.Object.GetName(), " ", r.Cause, " ", len(found)))
			r.Patch.SetStatus("foos", len(found))
			r.Patch.SetStatus("at", r.Now.String())
			if r.Object.GetName() != "web" {
				delete(r.Patch.Status, "at")
			}
			return err
		})
	}
	scenarios(t, map[string]scenario{
		"alone it writes once": {operator, func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Called("web create 1")
			s.Wrote("patch foos/status default/web")
			s.Advance(time.Hour)
			s.Called()
			s.Wrote()
		}},
		"others are news": {operator, func(s *stage) {
			s.begin()
			s.Create(foo("other", "x"))
			s.Advance(time.Minute)
			if n := len(s.Writes()); n < 2 || n > 6 {
				s.t.Errorf("%d writes", n)
			}
			s.Forget()
			s.Advance(time.Hour)
			s.Called()
			s.Wrote()
		}},
	})
}
