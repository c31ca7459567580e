// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package collision decides which handler has a child that two handlers of an object apply in different ways,
// because they would undo each other's changes. It is pure.
//
// The child names the handler that made it. That handler may have given the child up. So it runs once more before
// another handler may change the child.
package collision

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Memory has an object's contested children between reconciles. Its zero value is empty.
type Memory[ID comparable] struct{ known map[ID]*rivalry }

// Empty reports whether nothing is remembered.
func (m *Memory[ID]) Empty() bool { return len(m.known) == 0 }

// rivalry is a child that two handlers want differently. Both are named by the maker in the child: a handler, or a
// step of one.
type rivalry struct {
	// holder made the child, and by wants it, too. Try identifies the work of the latter.
	holder, by, try string
	// asked is when the holder was asked to run once more; zero if it was not, or has run.
	asked time.Time
	// reached: the holder's last run has applied the child. Left: it has succeeded without the child, or was asked
	// and did not run.
	reached, left bool
}

// Claims are the claims of an object's handlers to children in one reconcile. Its methods are safe for use by several
// goroutines.
type Claims[ID comparable] struct {
	handlers []*dsl.Handler
	now      time.Time
	done     map[string]bool // nil while the object lives

	mu     sync.Mutex
	memory *Memory[ID]
	// wanted has for each child the makers that have applied it in this reconcile, or were about to.
	wanted map[ID][]string
}

// Begin begins a reconcile. Handlers are all handlers of the object, in declared order. Done are the handlers that are done
// with the object's deletion; nil if it is not being deleted. After that, the Claims of an earlier reconcile with this
// memory must not be used.
func Begin[ID comparable](m *Memory[ID], handlers []*dsl.Handler, now time.Time, done map[string]bool) *Claims[ID] {
	return &Claims[ID]{handlers: handlers, now: now, done: done, memory: m}
}

// HandlerState is the state of a due handler in a reconcile.
type HandlerState struct {
	Handler string
	// Step is how many of its steps and sub-handlers are done, and skipped.
	Step int
	// Ran: it has run in this reconcile. Succeeded: it has succeeded. Waiting: it waits for other objects.
	Ran, Succeeded, Waiting bool
}

// Attempt is an attempt of a handler to apply children.
type Attempt struct {
	Handler string
	// Try identifies the handler's work.
	Try string
	// Why is the purpose, for an attempt that is not a handler's.
	Why string
	// Number is the position of the attempt in the reconcile, from 1; 0 for removals that no handler asks for. Others
	// are the states of the other handlers.
	Number int
	Others []HandlerState
}

// HandlerOf returns the index of the handler that is the maker, or has it as a step; negative if there is none.
func HandlerOf(handlers []*dsl.Handler, maker string) int {
	best := -1
	for i, h := range handlers {
		if h.ID == maker {
			return i
		}
		if strings.HasPrefix(maker, h.ID+".") && (best < 0 || len(h.ID) > len(handlers[best].ID)) {
			best = i
		}
	}
	return best
}

// Renamed returns a maker's current name: the handler that had the maker's id before, or the maker itself.
func Renamed(handlers []*dsl.Handler, maker string) string {
	if HandlerOf(handlers, maker) >= 0 {
		return maker
	}
	for _, h := range handlers {
		for _, was := range h.Was {
			if rest, is := strings.CutPrefix(maker, was); is && (rest == "" || rest[0] == '.') {
				return h.ID + rest
			}
		}
	}
	return maker
}

// IsForDeletionsOnly reports whether a handler runs for deletions alone.
func IsForDeletionsOnly(h *dsl.Handler) bool { return slices.Equal(h.Causes, []dsl.Cause{dsl.Delete}) }

// Free reports whether a handler may make children under any name.
func Free(h *dsl.Handler) bool {
	creates := func(n dsl.Need) bool { return slices.Contains(n.Verbs, "create") || slices.Contains(n.Verbs, "*") }
	return h.Makers == nil && (!h.Declared || slices.ContainsFunc(h.Needs, creates))
}

// MayMake reports whether a handler of a resource may make a child of a kind.
func MayMake(r *dsl.Resource, h *dsl.Handler, kind schema.GroupKind) bool {
	if h.Makers == nil {
		return Free(h)
	}
	known := false
	for _, c := range r.Makes {
		if !slices.Contains(h.Makers, c.Maker) {
			continue
		}
		if known = true; c.Kind.Empty() || c.Kind.GroupKind() == kind {
			return true
		}
	}
	return len(h.Makers) > 0 && !known
}

// Maker returns the maker of a child in an attempt: the handler, or the step of it that the child names.
func (c *Claims[ID]) Maker(handler, named string) string {
	if c.isOf(named, handler) {
		return named
	}
	return handler
}

// isOf reports whether a maker of children is a handler, or a step of it.
func (c *Claims[ID]) isOf(maker, handler string) bool {
	at := HandlerOf(c.handlers, maker)
	return at >= 0 && c.handlers[at].ID == handler
}

// BeginApply notes that a maker is about to apply a child, or compares it with the existing one.
func (c *Claims[ID]) BeginApply(id ID, maker string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted == nil {
		c.wanted = map[ID][]string{}
	}
	if list := c.wanted[id]; !slices.Contains(list, maker) {
		c.wanted[id] = append(list, maker)
	}
	if r := c.memory.known[id]; r != nil && r.holder == maker {
		r.reached, r.left, r.asked = true, false, time.Time{}
	}
}

// answerSoon is how long a handler waits for another to run and claim a child.
const answerSoon = time.Second

// ErrorOf returns the error for a child that a handler may not change, from the result of Contest; nil if it may.
// The collision has all fields but the holder; people is the child's name for people.
func ErrorOf(holder string, asked bool, collision dsl.CollisionError, people string) error {
	switch {
	case holder == "":
		return nil
	case asked:
		return dsl.Waiting(fmt.Sprintf("%s: handler %s made it, and is to say whether it keeps it", people, holder), answerSoon)
	}
	collision.Handler = holder
	return &collision
}

// Contest returns the holder of an existing child that a maker wants to change; empty if there is none. Made is the
// child's recorded maker. Asked: it is not known whether the holder still wants the child, so the holder runs
// again.
func (c *Claims[ID]) Contest(id ID, maker string, a Attempt, made string) (holder string, asked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.memory.known[id]
	holder = c.holder(id, known, maker, made)
	if known != nil && (known.holder != holder || known.by != maker) {
		known = nil
	}
	says := c.judge(id, holder, maker, a, known)
	switch {
	case says == silent:
		known.left, known.asked = true, time.Time{} // an attempt may contest the child more than once
		return "", false
	case says == nothing:
		if known == nil || !known.left {
			delete(c.memory.known, id)
		}
		return "", false
	case known == nil:
		known = &rivalry{holder: holder, by: maker, try: a.Try, reached: says == keeps}
		if says == unsure {
			known.asked = c.now
		}
		if c.memory.known == nil {
			c.memory.known = map[ID]*rivalry{}
		}
		c.memory.known[id] = known
	case says == keeps:
		known.asked = time.Time{}
	}
	return holder, !known.asked.IsZero()
}

// holder returns the holder of a child; empty if it is the maker itself. The child's recorded maker counts if that
// handler exists; otherwise the holder found before, or the first to apply it in this reconcile.
func (c *Claims[ID]) holder(id ID, known *rivalry, maker, made string) string {
	switch {
	case made == maker:
		return ""
	case HandlerOf(c.handlers, made) >= 0:
		return made
	case known != nil && known.by == maker:
		return known.holder
	}
	if all := c.wanted[id]; len(all) > 0 && all[0] != maker {
		return all[0]
	}
	return ""
}

// answer is a holder's answer to another handler's claim.
type answer int

const (
	nothing answer = iota
	// unsure: the holder must be asked.
	unsure
	keeps
	// silent: the holder was asked, and its filters do not match.
	silent
)

// judge decides whether the holder of a child still wants it. Known is the earlier finding; nil for none.
func (c *Claims[ID]) judge(id ID, holder, maker string, a Attempt, known *rivalry) answer {
	at := HandlerOf(c.handlers, holder)
	switch {
	case at < 0:
		return nothing
	case slices.Contains(c.wanted[id], holder):
		return keeps
	case c.done != nil:
		return c.judgeLast(c.handlers[at], a)
	case c.handlers[at].ID == a.Handler: // another step, which has run earlier or has yet to run
		return keepsIf(known != nil && known.reached)
	case at > HandlerOf(c.handlers, maker), known != nil && known.left:
		return nothing
	}
	return c.judgeAbsent(c.handlers[at], a, known)
}

// judgeLast is judge for the children of a deletion. A handler that has made one and is done does not run again for
// it, so it cannot be asked. But only a handler that runs for deletions alone has made it then.
func (c *Claims[ID]) judgeLast(h *dsl.Handler, a Attempt) answer {
	_, due := stateOf(a.Others, h)
	return keepsIf(IsForDeletionsOnly(h) && (due || h.ID == a.Handler || c.done[h.ID]))
}

// judgeAbsent is judge if the holder has not applied the child in this reconcile.
func (c *Claims[ID]) judgeAbsent(h *dsl.Handler, a Attempt, known *rivalry) answer {
	t, due := stateOf(a.Others, h)
	switch {
	case known != nil && known.asked.IsZero():
		return keepsIf(returns(h) || makesOnce(h) || known.try == a.Try)
	case due:
		return t.judge(known)
	case known != nil && known.asked.Before(c.now):
		return silent
	case h.On(dsl.Child) || h.On(dsl.Resync):
		return unsure
	}
	return keepsIf(makesOnce(h))
}

// judge is judgeAbsent for a holder that is due in this reconcile. A holder that waits, and has not applied the child,
// may wait for the other handler's change of it.
func (t HandlerState) judge(known *rivalry) answer {
	switch {
	case t.Step > 0:
		return keeps // it keeps what it made in an earlier step
	case t.Waiting && t.Ran:
		return nothing
	case t.Waiting && known == nil:
		return unsure
	}
	return keepsIf(!t.Ran || !t.Succeeded)
}

func keepsIf(yes bool) answer {
	if yes {
		return keeps
	}
	return nothing
}

func stateOf(states []HandlerState, h *dsl.Handler) (t HandlerState, found bool) {
	for _, t := range states {
		if t.Handler == h.ID {
			return t, true
		}
	}
	return HandlerState{}, false
}

// returns reports whether a handler runs again for an object whose view does not change.
func returns(h *dsl.Handler) bool {
	return slices.ContainsFunc(h.Causes, func(c dsl.Cause) bool { return c.FromOthers() || c.FromClock() })
}

// makesOnce reports whether a handler, which is known to make children, makes them for create alone. It cannot be asked, and has no
// run in which it could give one up.
func makesOnce(h *dsl.Handler) bool {
	return len(h.Makers) > 0 && h.On(dsl.Create) && !slices.ContainsFunc(h.Causes, func(c dsl.Cause) bool { return c != dsl.Create && c != dsl.Delete })
}

// Begin notes that a handler runs from this step on. If it is the first step, its claims start over.
func (c *Claims[ID]) Begin(handler string, step int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.memory.known {
		if step == 0 && c.isOf(r.holder, handler) {
			r.reached = false
		}
	}
}

// Finish notes that a handler has run. If it has succeeded without a child that it held, it has given that child up.
// Its own claims are settled, too.
func (c *Claims[ID]) Finish(handler string, succeeded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.memory.known, func(_ ID, r *rivalry) bool { return succeeded && c.isOf(r.by, handler) })
	for _, r := range c.memory.known {
		if c.isOf(r.holder, handler) {
			r.asked = time.Time{}
			r.left = succeeded && !r.reached
		}
	}
}

// Holders returns the indices of the handlers that hold a child and are not asked whether they still want it.
func (c *Claims[ID]) Holders() (handlers []int) {
	for _, r := range c.memory.known {
		if at := HandlerOf(c.handlers, r.holder); r.asked.IsZero() && at >= 0 && !slices.Contains(handlers, at) {
			handlers = append(handlers, at)
		}
	}
	return handlers
}

// Ask makes a handler run that may not run by itself, to say whether it still wants the children that it holds.
func (c *Claims[ID]) Ask(handler int) {
	for _, r := range c.memory.known {
		if r.asked.IsZero() && HandlerOf(c.handlers, r.holder) == handler {
			r.asked = c.now
		}
	}
}

// Asked returns the handlers that must run to say whether they still want a child.
func (c *Claims[ID]) Asked() (handlers []string) {
	for _, r := range c.memory.known {
		if at := HandlerOf(c.handlers, r.holder); at >= 0 && !r.asked.IsZero() {
			handlers = append(handlers, c.handlers[at].ID)
		}
	}
	return handlers
}
