// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
	"github.com/handwerk-dev/handwerk/engine/decide/filter"
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
)

// refusedLook is the interval of attempts to remove children without the right to do so, because the right is not checked.
const refusedLook = time.Minute

// Pruner selects the children of a resource's objects that no handler makes.
type Pruner struct {
	resource *dsl.Resource
	handlers []*dsl.Handler
	// free is true when handlers may make children under undeclared names.
	free bool

	mu sync.Mutex
	// makers has the names that handlers have used in this process, logged the unknown names that the log has.
	makers, logged map[string]bool
}

// NewPruner returns the pruner of a resource with these handlers.
func NewPruner(resource *dsl.Resource, handlers []*dsl.Handler) *Pruner {
	return &Pruner{resource: resource, handlers: handlers, free: slices.ContainsFunc(handlers, collision.Free), makers: map[string]bool{}, logged: map[string]bool{}}
}

// Memory holds facts about an owner from one reconcile to the next.
type Memory struct {
	// done is true if each child had a handler. Logged is true if objects that look like children, and are none, have
	// been logged. Refused is the logged reason why children cannot be removed.
	done, Logged bool
	refused      string
}

// Done reports whether there is nothing to search for. News is true if something may have changed.
func (m *Memory) Done(news bool) bool { return m.done && !news }

// Missed records that a reconcile could not search. News is true if something may have changed; the next reconcile
// searches then.
func (m *Memory) Missed(news bool) { m.done = m.done && !news }

// Withdrawing reports whether labels or annotations of an owner exclude it from a handler that then removes its
// children.
func (s *Pruner) Withdrawing(owner metav1.Object) bool {
	return slices.ContainsFunc(s.handlers, func(h *dsl.Handler) bool { return withdraws(h, owner) })
}

// withdraws reports whether labels or annotations of an owner exclude it from a handler, and the handler then removes
// its children.
func withdraws(h *dsl.Handler, owner metav1.Object) bool {
	return h.Known.Withdraws && !filter.Matches(h, owner)
}

// unsure reports whether the filter of a handler fails that may take over children without a handler.
func (s *Pruner) unsure(fails func(handler int) bool) bool {
	for at, h := range s.handlers {
		if len(h.Makers) > 0 && !collision.IsForDeletionsOnly(h) && fails(at) {
			return true
		}
	}
	return false
}

// Input is the input of a search: the owner and its children in a reconcile.
type Input struct {
	// Owner is the owner itself.
	Owner metav1.Object
	// All are the children that have names.
	All []dsl.ChildObject
	// Manager is the operator's field manager.
	Manager string
	Run     Run
}

// Run is the reconcile over the owner.
type Run interface {
	// Owns reports whether a kind is declared.
	Owns(schema.GroupKind) bool
	// Read reads a child from the server; nil if it is gone. Controllers copy annotations onto their own objects, so the
	// managedFields have to show who set them. The cache does not have those.
	Read(context.Context, dsl.ChildObject) (*unstructured.Unstructured, error)
	// Remove deletes or releases a child, as its policy says. Why is for the log, and cause for the limits. If a limit
	// holds the deletion, Remove returns the time after which it may be tried again.
	Remove(ctx context.Context, gone dsl.ChildObject, why string, cause limits.Cause) (wait time.Duration, err error)
	Log() logr.Logger
}

// made reports whether the operator has created or adopted a child.
func (p Input) made(ctx context.Context, found dsl.ChildObject) (bool, error) {
	live, err := p.Run.Read(ctx, found)
	if err != nil {
		return false, fmt.Errorf("reading %s %s: %w", found.Object.GetKind(), cache.MetaObjectToName(found.Object), err)
	}
	ours := func(e metav1.ManagedFieldsEntry) bool { return e.Manager == p.Manager }
	return live != nil && live.GetUID() == found.Object.GetUID() && slices.ContainsFunc(live.GetManagedFields(), ours), nil
}

// Note records that a handler makes children under a name. Go code may use another name than its own.
func (s *Pruner) Note(maker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makers[maker] = true
}

// Prune removes children as their policy says. Again is the time until the next call, zero for none. The error names the children
// that stay. A missing right is logged, and is no error. Fails reports whether the filter of a handler, by its index, fails.
func (s *Pruner) Prune(ctx context.Context, m *Memory, p Input, fails func(handler int) bool) (again time.Duration, err error) {
	var faults []error
	m.done = true
	for _, found := range p.All {
		why, cause := s.left(p, found)
		if why == "" || stays(found) {
			continue
		}
		if s.unsure(fails) {
			m.done = false
			return 0, nil
		}
		made, err := p.made(ctx, found)
		if made {
			var wait time.Duration
			if wait, err = p.Run.Remove(ctx, found, why, cause); wait > 0 && (again == 0 || wait < again) {
				again = wait
			}
		}
		m.done = m.done && !made && err == nil
		faults = append(faults, err)
	}
	switch err = errors.Join(faults...); {
	case err == nil:
		return again, nil
	case !apierrors.IsForbidden(err):
		return 0, fmt.Errorf("removing children without a handler: %w", err)
	case m.refused != err.Error():
		m.refused = err.Error()
		p.Run.Log().Info("removing children without a handler is forbidden", logmark.Warning, true, "error", m.refused)
	}
	return refusedLook, nil
}

// stays reports whether a child needs no action, or is being deleted already.
func stays(found dsl.ChildObject) bool {
	going := found.OnDelete != dsl.OrphanChild && deleted(found.Object)
	return found.Ownership == dsl.Unowned || found.OnDelete == dsl.RetainChild || going
}

func deleted(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() != nil }

// left returns the reason and the cause why no handler wants a child; empty if one does, or may.
func (s *Pruner) left(p Input, found dsl.ChildObject) (why string, cause limits.Cause) {
	maker := found.Handler
	at := collision.HandlerOf(s.handlers, maker)
	there := at >= 0 && (s.handlers[at].Makers == nil || slices.Contains(s.handlers[at].Makers, maker))
	switch {
	case maker == "", !there && s.named(maker):
		return "", "" // Go code may make children under any name
	case there:
		return s.leftBy(p, s.handlers[at], found)
	case s.free:
		s.spare(p, maker)
		return "", ""
	}
	return fmt.Sprintf("there is no handler %s any more", maker), limits.Configuration
}

// leftBy is left for a child whose handler exists. A handler that does not run for its children may never run again, so
// it cannot remove its former children itself.
func (s *Pruner) leftBy(p Input, h *dsl.Handler, found dsl.ChildObject) (why string, cause limits.Cause) {
	kind := found.Object.GroupVersionKind().GroupKind()
	switch {
	case withdraws(h, p.Owner):
		return fmt.Sprintf("handler %s does not see the object any more", found.Handler), limits.Selector
	case h.Makers == nil || h.On(dsl.Child) || collision.IsForDeletionsOnly(h):
		return "", ""
	case !p.Run.Owns(kind):
		return "children of its kind are not declared any more", limits.Configuration
	case !collision.MayMake(s.resource, h, kind):
		return fmt.Sprintf("handler %s makes no %s any more", h.ID, kind.Kind), limits.Configuration
	}
	return "", ""
}

// named reports whether a handler has made children under a name in this process.
func (s *Pruner) named(maker string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.makers[maker]
}

// spare logs an unknown maker once. Its children stay, because Go code may have made them.
func (s *Pruner) spare(p Input, maker string) {
	s.mu.Lock()
	logged := s.logged[maker]
	s.logged[maker] = true
	s.mu.Unlock()
	if !logged {
		p.Run.Log().Info("child names an unknown handler; it is left alone, because Go code may make children under any name (dsl.Makes and Makes of dsl.Function declare the names)",
			logmark.Warning, true, "maker", maker)
	}
}
