// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// Secrets say which values that code reads may come from Secrets. The zero value means none.
type Secrets struct {
	// Read: the code may read values of Secrets. Texts that are made from its errors do not contain values.
	Read bool
	// From are the sources of such values, in the form of [KnownReads.Values].
	From []string
}

// In reports whether some of the given values may come from a Secret.
func (s Secrets) In(values []string) bool {
	return slices.ContainsFunc(values, func(read string) bool {
		all, any := strings.CutSuffix(read, "*")
		return slices.ContainsFunc(s.From, func(from string) bool { return from == read || any && strings.HasPrefix(from, all) })
	})
}

// Unshown replaces a value that may come from a Secret in texts for people.
const Unshown = "a value that is not shown, for it may be a Secret's"

// longestShown is how many bytes of a value are shown.
const longestShown = 100

// Shown formats a value for the text of an error: quoted and shortened, or [Unshown] if it may come from a Secret.
// Actions must use it for all values in their texts.
func (s Secrets) Shown(value any) string {
	if s.Read {
		return Unshown
	}
	if text, is := value.(string); is {
		return fmt.Sprintf("%q", plain.Short(text, longestShown))
	}
	return plain.Short(fmt.Sprint(value), longestShown)
}

// isSecret reports whether objects of a resource are Secrets.
func (n ResourceName) isSecret() bool { return n.Group == "" && n.Resource == "secrets" }

// OfSecrets reports whether the objects of the resource are Secrets.
func (r *Resource) OfSecrets() bool { return r.Name.isSecret() }

// DigestsSecrets reports whether the engine stores digests of Secrets for the resource: what handlers that are not
// level-triggered have handled last.
func (r *Resource) DigestsSecrets() bool {
	return r.OfSecrets() && slices.ContainsFunc(r.handlers, func(h *Handler) bool { return !h.ResourceWide && h.Daemon == nil && h.Stores() })
}

// secretKind is the kind of Secrets.
var secretKind = schema.GroupKind{Kind: "Secret"}

// MayBeSecret reports whether objects of a kind may be Secrets. An empty kind is computed, so it counts.
func MayBeSecret(kind schema.GroupVersionKind) bool {
	return kind.Empty() || kind.GroupKind() == secretKind
}

// Secrets returns what a handler of the resource may read of Secrets. For expressions that is known; other code may
// read everything that its resource declares.
func (r *Resource) Secrets(h *Handler) Secrets {
	out := Secrets{From: r.secretSources()}
	if !h.Known.Reads.Complete {
		out.Read = len(out.From) > 0 || slices.ContainsFunc(h.Needs, Need.ofSecrets)
		return out
	}
	out.Read = h.ResourceWide && r.OfSecrets() || out.In(h.Known.Reads.Values)
	return out
}

// RelationSecrets is [Resource.Secrets] for the selection of a relation.
func (r *Resource) RelationSecrets(of Relation) Secrets {
	return Secrets{Read: r.OfSecrets() || of.Resource.isSecret() || r.afterSecrets(of), From: r.secretSources()}
}

// afterSecrets reports whether a relation reads Secrets that other relations select: the names that it selects may be values of
// these.
func (r *Resource) afterSecrets(of Relation) bool {
	return slices.ContainsFunc(r.relations, func(other Relation) bool {
		return slices.Contains(of.After, other.Name) && (other.Resource.isSecret() || r.afterSecrets(other))
	})
}

// secretSources returns the sources of values of Secrets around an object.
func (r *Resource) secretSources() (out []string) {
	if r.OfSecrets() {
		out = append(out, "self")
	}
	for _, relation := range r.relations {
		if relation.Resource.isSecret() {
			out = append(out, "related."+relation.Name)
		}
	}
	for _, c := range r.Makes {
		if MayBeSecret(c.Kind) {
			out = append(out, "children."+c.Name)
		}
	}
	for name, kind := range r.Owned() {
		if name.isSecret() || kind.GroupKind() == secretKind {
			out = append(out, "children.*")
		}
	}
	return append(out, r.op.secretIndexes()...)
}

// secretIndexes returns the names of the operator's indexes over Secrets.
func (op *Operator) secretIndexes() (out []string) {
	if op == nil {
		return nil
	}
	for _, x := range op.indexes {
		if x.OfSecrets() {
			out = append(out, "indexes."+x.Name)
		}
	}
	return out
}

// OfSecrets reports whether the index is over Secrets.
func (x *IndexSpec) OfSecrets() bool { return x.Resource.isSecret() }

// Secrets returns what the operator's activities may read of Secrets.
func (op *Operator) Secrets() Secrets {
	from := op.secretIndexes()
	return Secrets{Read: len(from) > 0, From: from}
}

// ofSecrets reports whether the need is to read Secrets. A right that is only granted to others does not count.
func (n Need) ofSecrets() bool {
	reads := slices.ContainsFunc(n.Verbs, func(verb string) bool { return slices.Contains([]string{"get", "list", "watch", "*"}, verb) })
	return reads && n.For.Empty() && (n.Resource.isSecret() || n.Kind.GroupKind() == secretKind)
}

// discreet is the key of contexts of [Discreetly].
type discreet struct{}

// Discreetly returns a context for requests whose responses may quote values of Secrets. Errors of these requests
// have only the kind and the place. See [Withhold].
func Discreetly(ctx context.Context) context.Context { return context.WithValue(ctx, discreet{}, true) }

// Discreet reports whether a context comes from [Discreetly].
func Discreet(ctx context.Context) bool { return ctx.Value(discreet{}) != nil }
