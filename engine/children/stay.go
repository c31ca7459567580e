// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

// stay is a child that a handler does not want any more, and that stays until another one has said whether it wants the child.
type stay struct {
	place ownership.Place
	// by is the handler that does not want it, empty where no handler made it. Wanted is the one that may want it.
	by, wanted string
}

// asks reports whether a child stays for now: its owner lives, and some handler that may want the child has not said so yet.
func (c *children) asks(found *unstructured.Unstructured) bool {
	s := c.session
	if s.pass.Deleting {
		return false // the record says which children a deletion leaves behind
	}
	wanted := s.pass.Asker.Undecided(c.attempt.Handler, found.GroupVersionKind().GroupKind())
	if wanted == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stays = append(s.stays, stay{ownership.PlaceOf(found), c.attempt.Handler, wanted})
	return true
}

// Leaving names the handlers that have given up a child which stays for now. They are to run again, for only they take
// the child away.
func (s *Session) Leaving() (handlers []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.stays {
		if one.by != "" && !slices.Contains(handlers, one.by) {
			handlers = append(handlers, one.by)
		}
	}
	return handlers
}

// Undecided reports whether some of the children that stay for now may still be wanted, and says so in the log, once for each
// handler that is waited for.
func (s *Session) Undecided() (some bool) {
	s.mu.Lock()
	stays := slices.Clone(s.stays)
	s.mu.Unlock()
	said := map[ownership.Place]string{}
	for _, one := range stays {
		wanted := s.pass.Asker.Undecided(one.by, one.place.Kind)
		if wanted == "" {
			continue
		}
		said[one.place] = wanted
		if s.pass.Memory.asked[one.place] != wanted {
			s.pass.Asker.Log().Info("child that is not wanted any more stays until another handler, which may want it, has succeeded",
				"child", one.place.People(), "handler", one.by, "waitsFor", wanted)
		}
	}
	if s.pass.Memory.asked = said; len(said) == 0 {
		s.pass.Memory.asked = nil
	}
	return len(said) > 0
}
