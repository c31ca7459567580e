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

// Secrets say which of the things that code reads may have values of Secrets. The zero value says that none has.
type Secrets struct {
	// Read: the code may read such values. Texts that are made of its errors have no values in them.
	Read bool
	// From are the things that have them, in the form of [Reads.Values].
	From []string
}

// In reports whether some values that are read may be those of a Secret.
func (s Secrets) In(values []string) bool {
	return slices.ContainsFunc(values, func(read string) bool {
		all, any := strings.CutSuffix(read, "*")
		return slices.ContainsFunc(s.From, func(from string) bool { return from == read || any && strings.HasPrefix(from, all) })
	})
}

// Unshown stands in texts for people in the place of a value that may be a Secret's.
const Unshown = "a value that is not shown, for it may be a Secret's"

// longestShown is how many bytes of a value are shown.
const longestShown = 100

// Shown is a value for the text of an error: quoted and shortened, or [Unshown] where it may be a Secret's. All texts of actions
// that have values in them are made with it.
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

// OfSecrets reports whether the resource is that of Secrets.
func (r *Resource) OfSecrets() bool { return r.Name.isSecret() }

// DigestsSecrets reports whether digests of Secrets are stored for the resource: what handlers handled last, of those that are not
// level-triggered.
func (r *Resource) DigestsSecrets() bool {
	return r.OfSecrets() && slices.ContainsFunc(r.handlers, func(h *Handler) bool { return !h.ResourceWide && h.Daemon == nil && h.Stores() })
}

// secretKind is the kind of Secrets.
var secretKind = schema.GroupKind{Kind: "Secret"}

// Secrets say what a handler of the resource may read of Secrets. It is known of expressions what they read; other code may read
// all that its resource declares. A kind that is worked out counts as that of a Secret.
func (r *Resource) Secrets(h *Handler) Secrets {
	out := Secrets{From: r.secretSources()}
	if !h.Reads.Told {
		out.Read = len(out.From) > 0 || slices.ContainsFunc(h.Needs, Need.ofSecrets)
		return out
	}
	out.Read = h.ResourceWide && r.OfSecrets() || out.In(h.Reads.Values)
	return out
}

// RelationSecrets are [Resource.Secrets] for what selects the objects of a relation.
func (r *Resource) RelationSecrets(of Relation) Secrets {
	return Secrets{Read: r.OfSecrets() || of.Resource.isSecret(), From: r.secretSources()}
}

// secretSources are the things around an object that may have values of Secrets.
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
		if c.Kind.Empty() || c.Kind.GroupKind() == secretKind {
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

// secretIndexes are the operator's indexes that are made of Secrets.
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

// OfSecrets reports whether the index is made of Secrets.
func (x *IndexSpec) OfSecrets() bool { return x.Resource.isSecret() }

// Secrets say what code that runs for the operator as a whole may read of Secrets.
func (op *Operator) Secrets() Secrets {
	from := op.secretIndexes()
	return Secrets{Read: len(from) > 0, From: from}
}

// ofSecrets reports whether it is the need to read Secrets. A right that is given away is not used.
func (n Need) ofSecrets() bool {
	reads := slices.ContainsFunc(n.Verbs, func(verb string) bool { return slices.Contains([]string{"get", "list", "watch", "*"}, verb) })
	return reads && n.For.Empty() && (n.Resource.isSecret() || n.Kind.GroupKind() == secretKind)
}

// discreet is the key of contexts in which answers of the API server may quote Secrets.
type discreet struct{}

// Discreetly returns a context for requests whose answers may quote values of Secrets: of these answers, errors say the kind and
// the place alone. See [Withhold].
func Discreetly(ctx context.Context) context.Context { return context.WithValue(ctx, discreet{}, true) }

// Discreet reports whether a context is one of [Discreetly].
func Discreet(ctx context.Context) bool { return ctx.Value(discreet{}) != nil }
