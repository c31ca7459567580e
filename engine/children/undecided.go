// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
)

// undecided has the children that a handler does not want, and that stay until another handler, which may want them, has
// succeeded.
type undecided struct {
	handlers []*dsl.Handler

	mu sync.Mutex
	// all are the children of this reconcile. Memory has the handlers that they wait for, as logged.
	all    []undecidedChild
	memory *map[ownership.Place]string
}

// undecidedChild is a child that stays for now.
type undecidedChild struct {
	place ownership.Place
	// by is the handler that does not want it; empty if no handler made it.
	by string
}

// stays reports whether a child stays for now, because another handler may want it and has not decided yet. Handler is
// the handler that does not want the child. If the child's events do not run it again, it has to wait: the error says
// for which handler.
func (u *undecided) stays(found *unstructured.Unstructured, handler string, others Others) (is bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	other := others.Undecided(handler, found.GroupVersionKind().GroupKind())
	if other == "" {
		return false, nil
	}
	u.all = append(u.all, undecidedChild{ownership.PlaceOf(found), handler})
	at := collision.HandlerOf(u.handlers, handler)
	if at >= 0 && !u.handlers[at].On(dsl.Child) && !u.follows(other, u.handlers[at].ID) {
		return true, dsl.Waiting(fmt.Sprintf("handler %s, which may want it, to succeed", other), 0)
	}
	return true, nil
}

// follows reports whether a handler runs after another one. The other one must not wait for it then.
func (u *undecided) follows(handler, other string) bool {
	at := slices.IndexFunc(u.handlers, func(h *dsl.Handler) bool { return h.ID == handler })
	return at >= 0 && slices.ContainsFunc(u.handlers[at].After, func(before string) bool { return before == other || u.follows(before, other) })
}

// leaving returns the handlers that do not want some of the children.
func (u *undecided) leaving() (handlers []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, one := range u.all {
		if one.by != "" && !slices.Contains(handlers, one.by) {
			handlers = append(handlers, one.by)
		}
	}
	return handlers
}

// remain reports whether some of the children may still be wanted. It logs each handler that they wait for once.
func (u *undecided) remain(log Logger, others Others) bool {
	u.mu.Lock()
	all := slices.Clone(u.all)
	u.mu.Unlock()
	logged := map[ownership.Place]string{}
	for _, one := range all {
		wanted := others.Undecided(one.by, one.place.Kind)
		if wanted == "" {
			continue
		}
		logged[one.place] = wanted
		if (*u.memory)[one.place] != wanted {
			log.Log().Info("child that is not wanted any more stays until another handler, which may want it, has succeeded",
				"child", one.place.Describe(), "handler", one.by, "waitsFor", wanted)
		}
	}
	if *u.memory = logged; len(logged) == 0 {
		*u.memory = nil
	}
	return len(logged) > 0
}

// HandlersToRunAgain returns the handlers that have given up a child that stays for now. They have to run again, because only they
// remove the child.
func (s *Session) HandlersToRunAgain() (handlers []string) { return s.undecided.leaving() }

// Undecided reports whether some of the children that stay for now may still be wanted. It logs each handler that they
// wait for once. Others describes the handlers after all have run.
func (s *Session) Undecided(others Others) bool {
	return s.undecided.remain(s.in.Logger, others)
}
