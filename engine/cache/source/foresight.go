// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// foresight is a check of the rights for a resource that begins before discovery has ended. Discovery and rights take
// one round trip then, and not two.
type foresight struct {
	of        schema.GroupVersionResource
	namespace string
	asked     time.Time
	// done is closed when the answer is there.
	done   chan struct{}
	answer answer
}

// foresee begins to check the rights for the declared resource, in the only namespace of the scope, or in all at once. A
// declaration by kind, or without a version, is not enough for that. The caller must call end.
func (a *access) foresee(ctx context.Context, scope extent) (end func()) {
	name := a.at.name
	if a.at.ByKind() || name.Version == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &foresight{
		of:    schema.GroupVersionResource{Group: name.Group, Version: name.Version, Resource: name.Resource},
		asked: time.Now(), done: make(chan struct{}),
	}
	if names, known := scope.Names(true); known && len(names) == 1 {
		f.namespace = names[0]
	}
	verbs := a.verbs
	go func() {
		defer close(f.done)
		f.answer.missing, f.answer.err = a.catalog.Access(ctx, f.of, a.objects(f.namespace), verbs...)
	}()
	a.foreseen = f
	return func() {
		cancel()
		<-f.done
	}
}

// about reports whether the check is for a namespace.
func (f *foresight) about(namespace string) bool { return f != nil && f.namespace == namespace }

// missing returns the missing verbs in a namespace. It sends a request, unless foresee has done so.
func (a *access) missing(ctx context.Context, namespace string) ([]string, error) {
	gvr, verbs := a.at.Resource().GVR, a.verbs
	if f := a.foreseen; f.about(namespace) && f.of == gvr && time.Since(f.asked) < askMost {
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if f.answer.err == nil {
			return slices.DeleteFunc(slices.Clone(f.answer.missing), func(verb string) bool { return !slices.Contains(verbs, verb) }), nil
		}
	}
	return a.catalog.Access(ctx, gvr, a.objects(namespace), verbs...)
}
