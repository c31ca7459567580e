// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package related

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

var (
	owner = cache.ObjectName{Namespace: "default", Name: "owner"}
	x, y  = labels.SelectorFromSet(labels.Set{"app": "x"}), labels.SelectorFromSet(labels.Set{"app": "y"})
)

// held returns an object with a label as a cache holds it.
func held(t *testing.T, app string) *cached.Object {
	t.Helper()
	transformer, err := new(cached.Compressor).NewTransformer(cached.Form{}, schema.GroupVersion{Version: "v1"}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	o, err := transformer.Transform(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"namespace": "default", "name": "a", "uid": "0b1f", "labels": map[string]any{"app": app},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return o.(*cached.Object)
}

// TestWhoIsAffected holds that an event reaches those that asked for its object, once each.
func TestWhoIsAffected(t *testing.T) {
	now, before := held(t, "x"), held(t, "y")
	key := cache.ObjectName{Namespace: "default", Name: "a"}
	created := watch.Event{Key: key, Object: now}
	changed := watch.Event{Key: key, Object: now, Old: before}
	wide := watch.Event{Key: cache.ObjectName{Name: "a"}, Object: now}
	unknown := watch.Event{Key: key, Object: &cached.Object{}}
	for name, tt := range map[string]struct {
		selection dsl.Selection
		event     watch.Event
		want      bool
	}{
		"who names it":                         {dsl.Selection{Namespace: "default", Names: []string{"b", "a", "a"}}, created, true},
		"who names it in any namespace":        {dsl.Selection{Names: []string{"a"}}, created, true},
		"who names it in another one":          {dsl.Selection{Namespace: "other", Names: []string{"a"}}, created, false},
		"who names another one":                {dsl.Selection{Namespace: "default", Names: []string{"b"}}, created, false},
		"who names none":                       {dsl.Selection{Namespace: "default", Names: []string{}}, created, false},
		"who has an empty name":                {dsl.Selection{Namespace: "default", Names: []string{""}}, created, false},
		"who asks for its namespace":           {dsl.Selection{Namespace: "default"}, created, true},
		"who asks for another namespace":       {dsl.Selection{Namespace: "other"}, created, false},
		"who asks for all":                     {dsl.Selection{}, created, true},
		"who asks for its labels":              {dsl.Selection{Labels: x}, created, true},
		"who asks for other labels":            {dsl.Selection{Labels: y}, created, false},
		"who asks for labels that it had":      {dsl.Selection{Labels: y}, changed, true},
		"who names it, with other labels":      {dsl.Selection{Names: []string{"a"}, Labels: y}, created, false},
		"who asks for all, without namespaces": {dsl.Selection{}, wide, true},
		"who names it, without namespaces":     {dsl.Selection{Names: []string{"a"}}, wide, true},
		"labels, when only the name is known":  {dsl.Selection{Labels: y}, unknown, true},
		"a name, when only the name is known":  {dsl.Selection{Names: []string{"b"}}, unknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &subscriptions{}
			s.put(owner, tt.selection)
			times := 0
			s.eachAffected(tt.event, func(cache.ObjectName) { times++ })
			if want := map[bool]int{true: 1}[tt.want]; times != want {
				t.Errorf("it was visited %d times, want %d", times, want)
			}
			s.drop(owner)
			if len(s.of) > 0 || s.readers.Size() > 0 {
				t.Errorf("something is left of one that is dropped: %v", s.of)
			}
		})
	}
}

// TestAnOwnerThatAsksForMoreMissesNoEvent lets events come while an owner changes what it asks for: it asks for their object before
// and after.
func TestAnOwnerThatAsksForMoreMissesNoEvent(t *testing.T) {
	s := &subscriptions{}
	s.put(owner, dsl.Selection{Names: []string{"a"}})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 10_000 {
			s.put(owner, dsl.Selection{Names: []string{"a", "b"}})
			s.put(owner, dsl.Selection{Names: []string{"a"}})
		}
	}()
	ev := watch.Event{Key: cache.ObjectName{Namespace: "default", Name: "a"}, Object: held(t, "x")}
	for events, asks := 1, true; asks; events++ {
		times := 0
		s.eachAffected(ev, func(cache.ObjectName) { times++ })
		if times != 1 {
			t.Fatalf("event %d reached its owner %d times, want once", events, times)
		}
		select {
		case <-ended:
			asks = false
		default:
		}
	}
}

// TestWhetherSelectionsChange holds which changes of a selection count as another demand of an object. A condition does
// not, nor what has to do with namespaces where there are none.
func TestWhetherSelectionsChange(t *testing.T) {
	match := func(*unstructured.Unstructured) (bool, error) { return true, nil }
	for name, tt := range map[string]struct {
		before, now dsl.Selection
		unchanged   bool
	}{
		"all and all":                     {dsl.Selection{}, dsl.Selection{}, true},
		"a condition":                     {dsl.Selection{}, dsl.Selection{Match: match}, true},
		"a namespace, where there is one": {dsl.Selection{}, dsl.Selection{Namespace: "other"}, false},
		"the same names":                  {dsl.Selection{Names: []string{"a"}}, dsl.Selection{Names: []string{"a"}}, true},
		"other names":                     {dsl.Selection{Names: []string{"a"}}, dsl.Selection{Names: []string{"b"}}, false},
		"no names and any":                {dsl.Selection{Names: []string{}}, dsl.Selection{}, false},
		"the same labels":                 {dsl.Selection{Labels: x}, dsl.Selection{Labels: labels.SelectorFromSet(labels.Set{"app": "x"})}, true},
		"other labels":                    {dsl.Selection{Labels: x}, dsl.Selection{Labels: y}, false},
		"no labels and any":               {dsl.Selection{Labels: labels.Nothing()}, dsl.Selection{}, false},
		"all labels and any":              {dsl.Selection{Labels: labels.Everything()}, dsl.Selection{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &subscriptions{}
			s.put(owner, plain(tt.before, true))
			if _, got := s.put(owner, plain(tt.now, true)); got != tt.unchanged {
				t.Errorf("unchanged %v, want %v", got, tt.unchanged)
			}
		})
	}
	if got := plain(dsl.Selection{Namespace: "default"}, false); got.Namespace != "" {
		t.Errorf("namespace %q of a resource that has none", got.Namespace)
	}
}

// TestUnsynced holds that who could not see related objects is woken until it asks once more.
func TestUnsynced(t *testing.T) {
	for name, over := range map[string]func(*subscriptions){
		"who asks for the same once more": func(s *subscriptions) { s.put(owner, dsl.Selection{}) },
		"who asks for something else":     func(s *subscriptions) { s.put(owner, dsl.Selection{Namespace: "other"}) },
		"who is gone":                     func(s *subscriptions) { s.drop(owner) },
		"all of them":                     (*subscriptions).clear,
	} {
		t.Run(name, func(t *testing.T) {
			var woken []cache.ObjectName
			wake := func(who *reader) { woken = append(woken, who.owner) }
			s := &subscriptions{}
			who, _ := s.put(owner, dsl.Selection{})
			_ = s.readers.Read(who, func() error { return errors.New("not listed") })
			s.readers.EachFailed(wake)
			over(s)
			s.readers.EachFailed(wake)
			if !slices.Equal(woken, []cache.ObjectName{owner}) {
				t.Errorf("woken are %v, want the owner once", woken)
			}
		})
	}
}

// TestClearForgetsEarlierSubscriptions lets a late look be with a subscription that its owner has given up.
func TestClearForgetsEarlierSubscriptions(t *testing.T) {
	s := &subscriptions{}
	before, _ := s.put(owner, dsl.Selection{})
	s.put(owner, dsl.Selection{Namespace: "other"})
	_ = s.readers.Read(before, func() error { return errors.New("not listed") })
	s.clear()
	s.readers.EachFailed(func(who *reader) { t.Errorf("%s is still looked at", who.owner) })
	if len(s.of) > 0 || s.readers.Size() > 0 {
		t.Errorf("%d owners have %d subscriptions", len(s.of), s.readers.Size())
	}
}

// TestConditionsOfSelections holds that a condition which fails, panics or ends its goroutine is an error about its object, and that
// an event of that object counts as one of a selected object.
func TestConditionsOfSelections(t *testing.T) {
	for name, tt := range map[string]struct {
		match   func(*unstructured.Unstructured) (bool, error)
		want    bool
		wantErr string
	}{
		"none":              {nil, true, ""},
		"one that holds":    {func(o *unstructured.Unstructured) (bool, error) { return o.GetName() == "a", nil }, true, ""},
		"one that does not": {func(*unstructured.Unstructured) (bool, error) { return false, nil }, false, ""},
		"one with an error": {func(*unstructured.Unstructured) (bool, error) { return false, errors.New("no") }, true, "no"},
		"one that panics":   {func(*unstructured.Unstructured) (bool, error) { panic("no") }, true, "panic: no"},
		"one that ends its goroutine": {func(*unstructured.Unstructured) (bool, error) {
			runtime.Goexit()
			return false, nil
		}, true, "relation called runtime.Goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := selection{Selection: dsl.Selection{Match: tt.match}}, held(t, "x")
			if got := s.selects(o); got != tt.want || s.selects(nil) {
				t.Errorf("it selects the object: %v, want %v", got, tt.want)
			}
			_, about, err := s.among(o)
			if err == nil != (tt.wantErr == "") || err != nil && (err.Error() != tt.wantErr || about != o) {
				t.Errorf("the error about %v is %v, want %q", about, err, tt.wantErr)
			}
		})
	}
}
