// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRefusal(t *testing.T) {
	t.Parallel()
	begun := time.Unix(1000, 0)
	missing := func(r *refusal) { r.begin(false, begun) }
	untaken := func(r *refusal) { r.begin(true, begun) }
	for name, c := range map[string]struct {
		steps []func(*refusal)
		after time.Duration
		lasts bool
		// granted: those that wait for a right are woken.
		granted bool
	}{
		"nothing was refused":                                 {nil, 0, false, false},
		"a missing right lasts":                               {[]func(*refusal){missing}, 24 * time.Hour, true, false},
		"a missing right ends when it is given":               {[]func(*refusal){missing, (*refusal).grant}, 0, false, true},
		"a right that is given before one is missing":         {[]func(*refusal){(*refusal).grant}, 0, false, false},
		"a missing right ends with the term":                  {[]func(*refusal){missing, (*refusal).end}, 0, false, false},
		"a register that is not taken rests":                  {[]func(*refusal){untaken}, writeAgain - 1, true, false},
		"a register that is not taken is tried again":         {[]func(*refusal){untaken}, writeAgain, false, false},
		"a right that is missing at the next try lasts again": {[]func(*refusal){untaken, missing}, writeAgain, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := refusal{granted: make(chan struct{})}
			waits := r.granted
			for _, step := range c.steps {
				step(&r)
			}
			if lasts := r.lasts(begun.Add(c.after)); lasts != c.lasts {
				t.Errorf("it lasts: %v, want %v", lasts, c.lasts)
			}
			granted := false
			select {
			case <-waits:
				granted = true
			default:
			}
			if granted != c.granted {
				t.Errorf("granted: %v, want %v", granted, c.granted)
			}
			select {
			case <-r.granted:
				t.Error("those that wait for the next right are woken already")
			default:
			}
		})
	}
}

func TestKnown(t *testing.T) {
	t.Parallel()
	secret := schema.GroupKind{Kind: "Secret"}
	kinds := map[string][]schema.GroupKind{"works": {secret}}
	add := func(kind schema.GroupKind) edit {
		return func(all []schema.GroupKind) []schema.GroupKind {
			if slices.Contains(all, kind) {
				return all
			}
			return append(slices.Clone(all), kind)
		}
	}
	for name, c := range map[string]struct {
		known    known
		resource string
		edit     edit
		stays    bool
	}{
		"a kind that it has":                               {known{kinds: kinds, read: true}, "works", add(secret), true},
		"another kind":                                     {known{kinds: kinds, read: true}, "works", add(schema.GroupKind{Kind: "Pod"}), false},
		"a kind that another resource has":                 {known{kinds: kinds, read: true}, "foos", add(secret), false},
		"a kind that it has, if the ConfigMap is in doubt": {known{kinds: kinds, read: true, doubt: true}, "works", add(secret), false},
		"nothing was read":                                 {known{}, "works", func(all []schema.GroupKind) []schema.GroupKind { return all }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if stays := c.known.stays(c.resource, c.edit); stays != c.stays {
				t.Errorf("it stays: %v, want %v", stays, c.stays)
			}
		})
	}
}

func TestImmutable(t *testing.T) {
	t.Parallel()
	with := func(value any) known {
		return known{object: &unstructured.Unstructured{Object: map[string]any{"immutable": value}}}
	}
	if !with(true).immutable() {
		t.Error("a ConfigMap with immutable: true can be changed")
	}
	if with(false).immutable() || with("text").immutable() || (known{}).immutable() {
		t.Error("another ConfigMap cannot be changed")
	}
}
