// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package pause says which objects an operator leaves alone for a while, and why. It is pure.
package pause

import (
	"cmp"
	"time"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// By says where a pause is declared.
type By string

// The places.
const (
	// Operator: the operator's ConfigMap.
	Operator By = "operator"
	// Namespace: an annotation of the object's namespace.
	Namespace By = "namespace"
	// Object: an annotation of the object itself.
	Object By = "object"
)

// The choices for objects that are being deleted during a pause. Deletions are held unless the choice is Proceed.
const (
	Hold    = "hold"
	Proceed = "proceed"
)

// Pause is one pause.
type Pause struct {
	By By `json:"by"`
	// Namespace is the namespace that is paused; empty for other pauses.
	Namespace string `json:"namespace,omitempty"`
	// Was is the earlier name of the operator under which it is paused; empty for the current one.
	Was string `json:"was,omitempty"`
	// Reason is the text of the person who paused. Who is that person, and Since the time, if known.
	Reason string    `json:"reason,omitempty"`
	Who    string    `json:"who,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// Until is when the pause ends by itself; zero if only a person ends it.
	Until time.Time `json:"until,omitzero"`
	// Deletions: objects that are being deleted are handled nevertheless.
	Deletions bool `json:"deletionsGoOn,omitempty"`
}

// String describes the pause. For a paused object it is only the reason.
func (p Pause) String() string {
	reason := cmp.Or(p.Reason, "no reason is given")
	switch p.By {
	case Object:
		return reason
	case Namespace:
		return "namespace " + p.Namespace + " is paused: " + reason
	}
	text := "the operator is paused"
	if p.Was != "" {
		text += " under its earlier name " + p.Was
	}
	if p.Who != "" {
		text += " by " + p.Who
	}
	if !p.Until.IsZero() {
		text += " until " + p.Until.Format(time.RFC3339)
	}
	return text + ": " + reason
}

// mostReason bounds a reason, in bytes, so that a condition and a log line have room for it.
const mostReason = 16 << 10

// stops reports whether the pause stops handlers of an object.
func (p *Pause) stops(deleting bool) bool { return p != nil && (!deleting || !p.Deletions) }

// over reports whether the pause has ended by itself.
func (p *Pause) over(now time.Time) bool {
	return p != nil && !p.Until.IsZero() && !now.Before(p.Until)
}

// Data returns the pause of an operator as the data of its ConfigMap. It has all keys, so that it replaces each key of
// another pause.
func (p Pause) Data() map[string]string {
	out := map[string]string{"reason": p.Reason, "by": p.Who, "since": p.Since.UTC().Format(time.RFC3339), "until": "", "deletions": Hold}
	if !p.Until.IsZero() {
		out["until"] = p.Until.UTC().Format(time.RFC3339)
	}
	if p.Deletions {
		out["deletions"] = Proceed
	}
	return out
}

// FromData reads the pause of an operator from the data of its ConfigMap, which a person may have written. It ignores an
// invalid end.
func FromData(data map[string]string) Pause {
	since, _ := time.Parse(time.RFC3339, data["since"])
	until, _ := time.Parse(time.RFC3339, data["until"])
	return Pause{
		By: Operator, Reason: plain.Short(data["reason"], mostReason), Who: plain.Short(data["by"], mostReason), Deletions: data["deletions"] == Proceed,
		Since: since.UTC(), Until: until.UTC(), // so that equal pauses are equal values
	}
}
