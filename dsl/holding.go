// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Holding says how much of each object the cache holds, of children or of related objects. The zero value is all of it.
type Holding struct {
	// Cache is CacheCompact, which is the default, or CacheMetadata.
	Cache CacheProfile
	// Keep, for CacheCompact, limits the cache to these fields, beside the metadata, status.conditions and
	// status.observedGeneration. Empty means all.
	Keep []Path
	// KeepAt is the place of Keep in a configuration, for messages.
	KeepAt string
}

// held returns the parts of objects that are held. More are fields that are needed beside those of Keep.
func (h Holding) held(more []Path) Held {
	if h.Cache == CacheMetadata || len(h.Keep) == 0 {
		return Held{}
	}
	out := Held{}
	for _, p := range distinct(slices.Concat(h.Keep, engines(), more)) {
		if p[0] != "metadata" {
			out.Fields = append(out.Fields, p)
		}
	}
	return out
}

// Held returns what the cache holds.
func (h Holding) Held() (CacheProfile, Held) { return h.Cache, h.held(nil) }

// kept returns which parts of objects code and expressions see; nil means all.
func (h Holding) kept() *shape.Kept {
	switch {
	case h.Cache == CacheMetadata:
		return &shape.Kept{Metadata: true}
	case len(h.Keep) == 0:
		return nil
	}
	out := &shape.Kept{At: h.KeepAt}
	for _, field := range slices.Concat(h.Keep, engines()) {
		out.Fields = append(out.Fields, field)
	}
	return out
}

// check reports what caches of children and of related objects cannot hold.
func (h Holding) check(c check, at string) {
	profile := cmp.Or(h.Cache, CacheCompact)
	if profile == CacheLive {
		c.fault(at+"cache", "%s holds keys alone, and whose the objects are is in their metadata: want %s or %s", CacheLive, CacheCompact, CacheMetadata)
	} else if c.choice(at+"cache", string(profile), h.Cache); len(h.Keep) > 0 && profile != CacheCompact {
		c.unwanted(at+"keep", "is only for cache %s", CacheCompact)
	}
	for i, path := range h.Keep {
		if len(path) == 0 {
			c.fault(fmt.Sprintf("%skeep[%d]", at, i), "must not be empty")
		}
	}
}

// HoldOwned says how much the cache holds of each child of a resource that [Resource.Owns] declares. What templates set and
// expressions read of children is held in any case. A function in Go sees what is held and no more: a field that is left out is
// absent. The engine never takes a field that is left out for one that is missing: before it changes a child, it reads it from
// the API server.
func (r *Resource) HoldOwned(name string, how Holding) {
	of, err := ParseResourceName(name)
	if err != nil {
		r.wrongOwns = append(r.wrongOwns, err)
		return
	}
	for i := range r.owns {
		if r.owns[i].Name.Objects() == of.Objects() {
			r.owns[i].Holding = how
			return
		}
	}
	r.wrongOwns = append(r.wrongOwns, fmt.Errorf("%s is not among the owned resources", name))
}

// HeldOwned returns what the cache holds of each child of a resource that Owned yields.
func (r *Resource) HeldOwned(name ResourceName) (CacheProfile, Held) {
	for _, owned := range r.owns {
		if owned.Name == name {
			fields, whole := r.neededOfChildren(name)
			switch {
			case whole != "":
				return owned.Cache, Held{}
			case owned.Cache == CacheMetadata && len(fields) > 0: // of children that may be of this resource
				return CacheCompact, Holding{Keep: fields}.held(nil)
			}
			return owned.Cache, owned.held(fields)
		}
	}
	return CacheCompact, Held{}
}

// made yields the named children that are, or may be, of a resource. They are not sure to be if their kind is computed, or has a
// plural that cannot be guessed, as Gateway has: it may be any resource of its group that was declared by name.
func (r *Resource) made(of ResourceName) func(yield func(one shape.NamedChild, sure bool) bool) {
	return func(yield func(shape.NamedChild, bool) bool) {
		for _, made := range r.Makes {
			guess, _ := meta.UnsafeGuessKindToResource(made.Kind)
			sure := guess.Resource == of.Resource && guess.Group == of.Group
			known := BuiltIn(made.Kind.Group) || slices.ContainsFunc(r.owns, func(other ownedKind) bool {
				return other.Kind.Empty() && other.Name.Resource == guess.Resource && other.Name.Group == guess.Group
			})
			if (sure || made.Kind.Empty() || guess.Group == of.Group && !known) && !yield(made, sure) {
				return
			}
		}
	}
}

// neededOfChildren returns the fields of children of a resource that templates set, expressions read, and the engine judges. Whole
// is the name of a child whose fields are not known.
func (r *Resource) neededOfChildren(name ResourceName) (fields []Path, whole string) {
	if r.KeepsReady() {
		fields = ReadinessFields()
	}
	for made := range r.made(name) {
		looked, known := r.childFields(made.Name)
		if !known {
			return nil, made.Name
		}
		fields = append(fields, looked...)
	}
	return fields, ""
}

// checkHeld reports what caches of children and of related objects cannot hold.
func (r *Resource) checkHeld(c check) {
	for i, owned := range r.owns {
		at := fmt.Sprintf("owns[%d].", i)
		owned.check(c, at)
		for made, sure := range r.made(owned.Name) {
			if owned.Cache == CacheMetadata && (sure || made.Kind.Empty()) {
				c.fault(at+"cache", "does not hold what the template of child %s sets: want %s, with keep", made.Name, CacheCompact)
			}
		}
		if _, whole := r.neededOfChildren(owned.Name); len(owned.Keep) > 0 && whole != "" {
			c.fault(at+"keep", "which fields the template of child %s sets is not known, so all fields are held: take keep off", whole)
		}
		if owned.Cache == CacheMetadata && r.KeepsReady() {
			c.fault(at+"cache", "does not hold the status of the children, from which the condition Ready is made: say ready: false, or want %s", CacheCompact)
		}
	}
	for i, relation := range r.relations {
		relation.check(c, fmt.Sprintf("related[%d].", i))
	}
}
