// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package tombstone confirms the deletion of objects that left a cache without a deletion event: the listing without them may come
// from a server that lags behind, or may select other objects.
package tombstone

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/cluster/backoff"
)

const (
	// lookAgain and lookAgainMost bound the wait before an object is looked for again: it doubles from the first to
	// the second.
	lookAgain     = time.Second
	lookAgainMost = 5 * time.Minute
)

// Settings configure a confirmer. The selectors are optional.
type Settings struct {
	// LabelSelector and FieldSelector are the operator's.
	LabelSelector, FieldSelector string
	// Resource answers questions about the objects.
	Resource Resource
	// Log gets each object once whose deletion is not confirmed.
	Log logr.Logger
}

// Resource answers questions about the objects of one resource.
type Resource interface {
	// Read reads an object from the server; nil if it is gone.
	Read(ctx context.Context, key cache.ObjectName) (*unstructured.Unstructured, error)
	// List lists the objects of a namespace.
	List(ctx context.Context, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error)
	// Absent reports whether the resource is gone, with all its objects.
	Absent() bool
	// Leaves reports whether the caches show that a namespace is not in the operator's scope, for example because it
	// does not exist.
	Leaves(namespace string) bool
	// NamespaceGone reads a namespace from the server, and reports whether it is gone.
	NamespaceGone(ctx context.Context, namespace string) (bool, error)
}

// Confirmer confirms deletions of the objects of one resource. Its methods may be called by any number of goroutines, but by one
// goroutine for each object.
type Confirmer struct {
	settings Settings

	mu sync.Mutex
	// unclear has the reasons why the deletions of objects are not confirmed.
	unclear map[types.UID]string
}

// New returns a confirmer.
func New(s Settings) *Confirmer { return &Confirmer{settings: s, unclear: map[types.UID]string{}} }

// Confirmation is the state of the confirmation for one object. The zero value is for a confirmed deletion.
type Confirmation struct {
	// Unseen is true until the deletion is confirmed, if the watch missed it.
	Unseen bool
	// wait is the last wait between two looks; zero before the first. Next is when to look again.
	wait time.Duration
	next time.Time
}

// RetryNow ends the back-off, because the reason of the last failure may be gone.
func (d *Confirmation) RetryNow() { d.next = time.Time{} }

// Confirm looks for an object whose deletion is not confirmed, unless its back-off lasts. It returns the wait until the
// next look; zero if the object is gone. It logs the error of a failed look.
func (f *Confirmer) Confirm(ctx context.Context, key cache.ObjectName, uid types.UID, d *Confirmation) (wait time.Duration, err error) {
	if !d.Unseen {
		if d.wait > 0 {
			f.Forget(uid)
		}
		return 0, nil
	}
	if wait := time.Until(d.next); wait > 0 {
		return wait, nil
	}
	gone, err := f.gone(ctx, key, uid)
	if gone {
		d.Unseen = false
		f.Forget(uid)
		return 0, nil
	}
	if ctx.Err() == nil {
		f.doubted(key, uid, err)
	}
	d.wait, wait = backoff.Next(d.wait, lookAgain, lookAgainMost)
	d.next = time.Now().Add(wait)
	return wait, err
}

// gone reports whether an object is gone, or has left the operator's scope or selector. An empty uid stands for any. If it is false
// without an error, the object exists, and the cache will show it again.
func (f *Confirmer) gone(ctx context.Context, key cache.ObjectName, uid types.UID) (bool, error) {
	if f.settings.Resource.Leaves(key.Namespace) {
		return true, nil
	}
	live, err := f.settings.Resource.Read(ctx, key)
	switch {
	case err != nil:
		return f.allGone(ctx, key, err)
	case live == nil, uid != "" && live.GetUID() != uid:
		return true, nil
	}
	selected, err := f.selects(ctx, live)
	return !selected && err == nil, err
}

// allGone reports whether an object is gone with its resource or its namespace, when the object cannot be read because of the
// error why.
func (f *Confirmer) allGone(ctx context.Context, key cache.ObjectName, why error) (bool, error) {
	switch {
	case f.settings.Resource.Absent():
		return true, nil
	case key.Namespace == "":
		return false, why
	}
	gone, err := f.settings.Resource.NamespaceGone(ctx, key.Namespace)
	switch {
	case gone:
		return true, nil
	case err != nil:
		return false, fmt.Errorf("%w (%w)", why, err)
	}
	return false, why
}

// selects reports whether the operator's selectors match an object. The server evaluates them.
func (f *Confirmer) selects(ctx context.Context, o *unstructured.Unstructured) (bool, error) {
	s := f.settings
	if s.LabelSelector == "" && s.FieldSelector == "" {
		return true, nil
	}
	one := fields.OneTermEqualSelector("metadata.name", o.GetName()).String()
	list, err := s.Resource.List(ctx, o.GetNamespace(), metav1.ListOptions{
		LabelSelector: s.LabelSelector, FieldSelector: strings.Trim(s.FieldSelector+","+one, ","),
	})
	if err != nil {
		return false, fmt.Errorf("asking whether object is selected: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(i unstructured.Unstructured) bool { return i.GetUID() == o.GetUID() }), nil
}

// doubted records that a deletion is not confirmed. The error is nil if the object exists.
func (f *Confirmer) doubted(key cache.ObjectName, uid types.UID, err error) {
	reason := "it is there, and a listing did not have it"
	if err != nil {
		reason = err.Error()
	}
	f.mu.Lock()
	_, known := f.unclear[uid]
	f.unclear[uid] = reason
	f.mu.Unlock()
	if !known {
		f.settings.Log.Info("object left the cache, and its deletion is not confirmed; its delete handlers wait, and its daemons keep running", logmark.Warning, true,
			"namespace", key.Namespace, "name", key.Name, "reason", reason)
	}
}

// Forget ends the confirmation for an object: its deletion is confirmed, or the cache shows it again.
func (f *Confirmer) Forget(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.unclear, uid)
}

// Clear ends all confirmations.
func (f *Confirmer) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.unclear)
}

// Unconfirmed returns the number of objects whose deletion is not confirmed, with the reason for one of them; empty if there
// are none.
func (f *Confirmer) Unconfirmed() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.unclear) == 0 {
		return ""
	}
	return fmt.Sprintf("not served, and not known to be gone: %d (%s)", len(f.unclear), slices.Min(slices.Collect(maps.Values(f.unclear))))
}
