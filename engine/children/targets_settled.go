// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/decide/drift"
)

// settledTargets remembers targets in which the server writes a value in another way than it is sent. The zero value is
// empty.
type settledTargets struct {
	of map[ownership.Target]settledTarget
	// refused is the logged reason why targets without a handler could not be released.
	refused string
}

// settledTarget has digests of the fields that were sent, and of the fields that the server made of them.
type settledTarget struct{ sent, made string }

func settledAs(a *aim, live *unstructured.Unstructured) (out settledTarget, ok bool) {
	var faults [2]error
	out.sent, faults[0] = plain.Digest(a.fields.Object)
	out.made, faults[1] = plain.Digest(drift.Applied(live, a.Manager))
	return out, errors.Join(faults[:]...) == nil
}

// isSettled reports whether this process has applied the same fields before, and the server's fields are as they were then.
func (s *Session) isSettled(a *aim, live *unstructured.Unstructured) bool {
	s.settling.Lock()
	defer s.settling.Unlock()
	before, found := s.in.Memory.targets.of[a.Target]
	now, ok := settledAs(a, live)
	return found && ok && now == before
}

// settle remembers the server's fields of a target, if they differ from the fields that were sent.
func (s *Session) settle(a *aim, result *unstructured.Unstructured) {
	s.settling.Lock()
	defer s.settling.Unlock()
	m := &s.in.Memory.targets
	delete(m.of, a.Target)
	now, ok := settledAs(a, result)
	if !ok || drift.Holds(a.fields, result, a.Manager) {
		return
	}
	if m.of == nil {
		m.of = map[ownership.Target]settledTarget{}
	}
	m.of[a.Target] = now
}
