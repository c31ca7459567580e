// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
)

// undecided has the children that a handler does not want any more, and that stay until another handler, which may want them, has
// succeeded.
type undecided struct {
	handlers []*dsl.Handler

	mu sync.Mutex
	// all are those of this reconcile, and memory has the handlers that are waited for, as the log has them.
	all    []undecidedChild
	memory *map[ownership.Place]string
}

// undecidedChild is a child that stays for now.
type undecidedChild struct {
	place ownership.Place
	// by is the handler that does not want it, empty where no handler made it.
	by string
}

// stays reports whether a child stays for now, because some handler that may want the child has not said so yet. Handler is the one
// that does not want it. It runs again for the child, or it waits: then the error says what for.
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

// follows reports whether a handler comes after another one, which then must not wait for it.
func (u *undecided) follows(handler, other string) bool {
	at := slices.IndexFunc(u.handlers, func(h *dsl.Handler) bool { return h.ID == handler })
	return at >= 0 && slices.ContainsFunc(u.handlers[at].After, func(before string) bool { return before == other || u.follows(before, other) })
}

// leaving names the handlers that do not want some of the children.
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

// remain reports whether some of the children may still be wanted, and logs that once for each handler that is waited for.
func (u *undecided) remain(log Logger, undecided func(but string, kind schema.GroupKind) string) bool {
	u.mu.Lock()
	all := slices.Clone(u.all)
	u.mu.Unlock()
	logged := map[ownership.Place]string{}
	for _, one := range all {
		wanted := undecided(one.by, one.place.Kind)
		if wanted == "" {
			continue
		}
		logged[one.place] = wanted
		if (*u.memory)[one.place] != wanted {
			log.Log().Info("child that is not wanted any more stays until another handler, which may want it, has succeeded",
				"child", one.place.People(), "handler", one.by, "waitsFor", wanted)
		}
	}
	if *u.memory = logged; len(logged) == 0 {
		*u.memory = nil
	}
	return len(logged) > 0
}

// Leaving names the handlers that have given up a child which stays for now. They are to run again, for only they take
// the child away.
func (s *Session) Leaving() (handlers []string) { return s.undecided.leaving() }

// Undecided reports whether some of the children that stay for now may still be wanted, and says so in the log, once for each
// handler that is waited for. Undecided is that of [Others], when all handlers have run.
func (s *Session) Undecided(undecided func(but string, kind schema.GroupKind) string) bool {
	return s.undecided.remain(s.pass.Logger, undecided)
}
