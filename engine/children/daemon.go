// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/children/prune"
)

// Children reads the children of an owner for those who run beside passes: each call begins again, from the owner as it is then and
// what caches show.
type Children struct {
	Family *Family
	Key    inbox.Key
	Owner  Owner
	Log    logr.Logger
}

// Owner is the owner of children.
type Owner interface {
	// Newest returns the owner as it is known.
	Newest() *unstructured.Unstructured
}

var _ dsl.ChildReader = Children{}

// now is a reader for one call. What it remembers is dropped with it, and it reports no change of the owner.
func (c Children) now() *Reader {
	p := Pass{
		Key: c.Key, Object: c.Owner.Newest(), Gone: true, Now: time.Now(), Logger: aside{c.Log},
		Memory: &Memory{}, Sweep: &prune.SweepMemory{}, Awaits: &inbox.Writes{},
	}
	return c.Family.Begin(p).Reader()
}

// aside is the Logger where there is no reconcile.
type aside struct{ log logr.Logger }

func (a aside) Log() logr.Logger { return a.log }

// Missed is that of a reconcile.
func (c Children) Missed() (bool, error) { return c.now().Missed() }

// Stale is that of a reconcile.
func (c Children) Stale(ctx context.Context, desired any, spec dsl.ChildSpec) (bool, *unstructured.Unstructured, error) {
	return c.now().Stale(ctx, desired, spec)
}

// All is that of a reconcile.
func (c Children) All() ([]dsl.ChildObject, error) { return c.now().All() }

// Get is that of a reconcile.
func (c Children) Get(resource, name string) (*unstructured.Unstructured, error) {
	return c.now().Get(resource, name)
}

// List is that of a reconcile.
func (c Children) List(resource string) ([]*unstructured.Unstructured, error) {
	return c.now().List(resource)
}
