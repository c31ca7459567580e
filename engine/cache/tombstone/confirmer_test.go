// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package tombstone

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

var (
	errAway    = errors.New("no answer")
	errNothing = errors.New("the namespace's state is unknown")
)

// world is what the server has of one object, and what is known of its surroundings.
type world struct {
	live        types.UID // empty where it is gone
	unread      error     // of a look at the object
	selected    bool
	unlisted    error
	absent      bool
	leaves      bool
	namespace   bool // is gone
	unnamespace error
}

func (w *world) finder(selector string, log func(string)) *Confirmer {
	return New(Settings{
		LabelSelector: selector, Resource: w, Log: funcr.New(func(_, args string) { log(args) }, funcr.Options{}),
	})
}

func (w *world) Read(context.Context, cache.ObjectName) (*unstructured.Unstructured, error) {
	if w.unread != nil || w.live == "" {
		return nil, w.unread
	}
	return object(w.live), nil
}

func (w *world) List(context.Context, string, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	out := &unstructured.UnstructuredList{}
	if w.selected {
		out.Items = append(out.Items, *object(w.live))
	}
	return out, w.unlisted
}

func (w *world) Absent() bool { return w.absent }

func (w *world) Leaves(namespace string) bool { return namespace != "" && w.leaves }

func (w *world) NamespaceGone(context.Context, string) (bool, error) {
	return w.namespace, w.unnamespace
}

func object(uid types.UID) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetName("web")
	o.SetUID(uid)
	return o
}

func TestGone(t *testing.T) {
	tests := map[string]struct {
		world
		selector string
		cluster  bool // the object has no namespace
		uid      types.UID
		want     bool
		err      error
	}{
		"it is there":              {world: world{live: "a"}, uid: "a"},
		"it is not there":          {uid: "a", want: true},
		"another one has its name": {world: world{live: "b"}, uid: "a", want: true},
		"one of its name is there, and no more is known":       {world: world{live: "b"}},
		"it is there and selected":                             {world: world{live: "a", selected: true}, selector: "x=y", uid: "a"},
		"it is there and not selected any more":                {world: world{live: "a"}, selector: "x=y", uid: "a", want: true},
		"whether it is selected cannot be asked":               {world: world{live: "a", unlisted: errAway}, selector: "x=y", uid: "a", err: errAway},
		"it cannot be asked for":                               {world: world{unread: errAway}, uid: "a", err: errAway},
		"its resource is gone":                                 {world: world{unread: errAway, absent: true}, uid: "a", want: true},
		"it has no namespace that could be gone":               {world: world{unread: errAway, namespace: true, leaves: true}, cluster: true, uid: "a", err: errAway},
		"it is there, and its namespace has left the scope":    {world: world{live: "a", leaves: true}, uid: "a", want: true},
		"its namespace is known to be gone":                    {world: world{unread: errAway, leaves: true}, uid: "a", want: true},
		"its namespace is found to be gone":                    {world: world{unread: errAway, namespace: true}, uid: "a", want: true},
		"its namespace cannot be asked for either":             {world: world{unread: errAway, unnamespace: errNothing}, uid: "a", err: errNothing},
		"its namespace cannot be asked for, and why it counts": {world: world{unread: errAway, unnamespace: errNothing}, uid: "a", err: errAway},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			key := cache.ObjectName{Namespace: "default", Name: "web"}
			if test.cluster {
				key.Namespace = ""
			}
			got, err := test.finder(test.selector, func(string) {}).gone(t.Context(), key, test.uid)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("gone: %t, %v; want %t, %v", got, err, test.want, test.err)
			}
		})
	}
}

// TestProve holds when an object is looked for, and the texts about it meanwhile.
func TestProve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, lines := &world{live: "a"}, 0
		f := w.finder("", func(string) { lines++ })
		key := cache.ObjectName{Namespace: "default", Name: "web"}
		d := &Confirmation{Unseen: true}
		prove := func(most time.Duration, doubts string) {
			t.Helper()
			wait, err := f.Confirm(t.Context(), key, "a", d)
			if wait > most || wait < most*4/5 || !errors.Is(err, w.unread) {
				t.Errorf("it waits for %v, %v; want %v", wait, err, most)
			}
			if got := f.Unconfirmed(); got != doubts {
				t.Errorf("it says %q, want %q", got, doubts)
			}
			time.Sleep(wait)
		}
		const lives = "not served, and not known to be gone: 1 (it is there, and a listing did not have it)"
		prove(time.Second, lives)
		prove(2*time.Second, lives)
		w.unread = errAway
		prove(4*time.Second, fmt.Sprintf("not served, and not known to be gone: 1 (%v)", errAway))
		w.live, w.unread = "", nil
		prove(0, "")
		if lines != 1 || d.Unseen {
			t.Errorf("the log has %d lines; unseen: %t", lines, d.Unseen)
		}

		w.live = "a"
		d = &Confirmation{Unseen: true}
		for range 20 {
			wait, _ := f.Confirm(t.Context(), key, "a", d)
			time.Sleep(wait)
		}
		if wait, _ := f.Confirm(t.Context(), key, "a", d); wait > lookAgainMost || wait < lookAgainMost*4/5 {
			t.Errorf("at last it waits for %v", wait)
		}
		w.live = ""
		if wait, _ := f.Confirm(t.Context(), key, "a", d); wait == 0 {
			t.Error("it looks before its time")
		}
		d.RetryNow()
		if wait, _ := f.Confirm(t.Context(), key, "a", d); wait > 0 {
			t.Error("it does not look when it is asked to")
		}
	})
}
