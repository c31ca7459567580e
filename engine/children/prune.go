// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/prune"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
)

// RegisterKinds enters the kinds of the owner's children into the register, if the register lacks them: somebody deleted it, or
// the right to write it was missing. After a failure, the next reconcile tries again.
func (s *Session) RegisterKinds(ctx context.Context) {
	with, owner := s.family.settings, s.owner()
	for _, kind := range s.family.kinds.feeds {
		if s.in.Gone || !with.Register.Kept() || !kind.Known() || with.Register.Has(with.Resource.Name, kind.Resource().GroupKind()) || len(s.lister.list(kind, owner, true, nil)) == 0 {
			continue
		}
		if err := with.Register.Add(ctx, with.Resource.Name, kind.Resource().GroupKind()); err != nil {
			s.in.Logger.Log().V(1).Info("kind of children is not registered yet", "error", err.Error())
		}
	}
}

// NeedsPrune reports whether there may be children that no handler wants. Owner is as its handlers have left it.
func (s *Session) NeedsPrune(news bool, owner *unstructured.Unstructured) bool {
	return !s.in.Prune.Done(s.family.sweeper.Withdrawing(owner) || news && len(s.family.Retired.Sources()) > 0)
}

// Prune deletes or releases children that no handler wants, of an owner that is not being deleted. News is true if
// children have changed. Owner is as its handlers have left it. Unsure reports whether the filter of a handler, by its
// index, fails. Again is the delay until the next look; zero if only an event makes one necessary. The span must not
// have begun.
func (s *Session) Prune(ctx context.Context, span *transport.Span, news bool, owner *unstructured.Unstructured, others Others, unsure func(handler int) bool) (again time.Duration, err error) {
	all, err := s.Reader().All()
	if err != nil {
		s.in.Prune.Missed(news)
		return 0, nil // it is unknown which children there are; handlers that read them get the error
	}
	span.Begin(ctx)
	defer span.End()
	p := prune.Input{Owner: owner, All: all, Manager: s.family.settings.Operator.Name, Run: pruning{s, span, others}}
	return s.family.sweeper.Prune(ctx, s.in.Prune, p, unsure)
}

// pruning implements [prune.Run] for a session.
type pruning struct {
	session *Session
	span    *transport.Span
	others  Others
}

func (s pruning) Owns(kind schema.GroupKind) bool { return s.session.family.Owns(kind) }

func (s pruning) Log() logr.Logger { return s.session.in.Logger.Log() }

func (s pruning) Remove(ctx context.Context, gone dsl.ChildObject, why string, cause limits.Cause) (wait time.Duration, err error) {
	err = s.session.deleting(s.span, collision.Attempt{Why: why}, s.others, cause).Remove(ctx, gone)
	if held, is := errors.AsType[*heldError](err); is {
		return held.answer.After, nil
	}
	return 0, err
}

func (s pruning) Read(ctx context.Context, found dsl.ChildObject) (*unstructured.Unstructured, error) {
	f, err := s.session.family.kinds.present(found.Object.GroupVersionKind(), found.Object.GetNamespace())
	if err != nil {
		return nil, err
	}
	return s.session.family.settings.Host.Read(ctx, f.Resource().GVR, cache.MetaObjectToName(found.Object))
}

// Claims reports whether the marks of an object name an object of the resource as its owner.
func (f *Family) Claims(o *cached.Object) bool {
	keys := f.names.of(o)
	name, _, _ := keys.OwnerOf(o, true)
	return keys.Made(o) && name.Name != "" && name.Kind == f.settings.Own.Resource().GroupKind()
}
