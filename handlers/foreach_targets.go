// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// entryTargets are the objects that one entry of a handler patches. Each entry has a field manager of its own, so entries
// may patch one object.
type entryTargets struct {
	dsl.Targets
	forEach
	key    string
	forced *forced
	// there reports whether an entry with a key exists.
	there func(key string) bool
	// last: it is the last entry, after which those that no longer exist give back what they have patched.
	last bool
}

// after returns the error of the entry's code, and gives back what is to be given back once all entries were tried. Entries that fail or
// wait do not hold that up.
func (t entryTargets) after(ctx context.Context, err error) error {
	if !t.last || len(t.Patches) == 0 {
		return err
	}
	_, lost := t.giveBack(ctx, t.Targets, t.there)
	return withLost(err, lost)
}

// withLost adds to the error of a patch that of giving back what is not wanted any more. A failure counts more than a wait.
func withLost(err, lost error) error {
	_, waits := dsl.IsWaiting(err)
	switch {
	case lost == nil:
		return err
	case waits:
		return lost
	}
	return errors.Join(err, lost)
}

// patches reports whether the handler of the entries patches under a name.
func (t entryTargets) patches(handler string) bool {
	return slices.Contains(t.Patches, handler)
}

// Patch calls Patch with the entry's key. Fields that belong to an entry which no longer exists are given back first, if they are in
// the way: otherwise that happens when all entries have succeeded.
func (t entryTargets) Patch(ctx context.Context, fields any, spec dsl.TargetSpec) (*unstructured.Unstructured, error) {
	if t.patches(spec.Handler) {
		spec.Key = t.key
	}
	if spec.Force {
		if err := t.forced.take(fields, t.key); err != nil {
			return nil, err
		}
	}
	out, err := t.Targets.Patch(ctx, fields, spec)
	if _, is := errors.AsType[*dsl.FieldConflictError](err); !is {
		return out, err
	}
	if some, failed := t.giveBack(ctx, t.Targets, t.there); !some || failed != nil {
		return out, errors.Join(err, failed)
	}
	return t.Targets.Patch(ctx, fields, spec)
}

// GiveBack calls GiveBack with the entry's key.
func (t entryTargets) GiveBack(ctx context.Context, handler, key string) error {
	if t.patches(handler) {
		key = t.key
	}
	return t.Targets.GiveBack(ctx, handler, key)
}

// Keys returns the empty key if the entry has a target: its code knows of no entries.
func (t entryTargets) Keys(handler string) []string {
	keys := t.Targets.Keys(handler)
	switch {
	case !t.patches(handler):
		return keys
	case slices.Contains(keys, t.key):
		return []string{""}
	}
	return nil
}

// forced records which entry has patched which object with force. Two entries that force the same object would take its
// fields from each other for ever.
type forced struct {
	mu sync.Mutex
	by map[[3]string]string
}

// take records that an entry patches an object. The error names another entry that has patched it.
func (f *forced) take(fields any, key string) error {
	object, known := whose(fields)
	if !known {
		return nil // Patch refuses it and says why
	}
	id := [3]string{object.APIVersion + " " + object.Kind, object.Namespace, object.Name}
	f.mu.Lock()
	defer f.mu.Unlock()
	if other, is := f.by[id]; is && other != key {
		return dsl.Permanent(fmt.Errorf("patching %s %s: entry %s patches it with force, too, so the two would take fields from each other", object.Kind, object.Name, entryID(other)))
	}
	if f.by == nil {
		f.by = map[[3]string]string{}
	}
	f.by[id] = key
	return nil
}

// giveBack gives back what entries have patched that no longer exist. Some: there were such entries.
func (e forEach) giveBack(ctx context.Context, targets dsl.Targets, there func(key string) bool) (some bool, err error) {
	var failed []error
	for _, handler := range e.Patches {
		for _, key := range targets.Keys(handler) {
			if !there(key) {
				some, failed = true, append(failed, targets.GiveBack(ctx, handler, key))
			}
		}
	}
	return some, errors.Join(failed...)
}
