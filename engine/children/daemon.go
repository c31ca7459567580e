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

// Children reads the children of an owner for code that runs beside reconciles. Each call starts from the owner as it is
// then, and from the caches.
type Children struct {
	Family *Family
	Key    inbox.Key
	Owner  Owner
	Log    logr.Logger
}

// Owner gives access to the owner of children.
type Owner interface {
	// Newest returns the owner in its newest known state.
	Newest() *unstructured.Unstructured
}

var _ dsl.ChildReader = Children{}

// now returns a reader for one call. Its memory is dropped with it, and it records no change of the owner.
func (c Children) now() *Reader {
	p := Input{
		Key: c.Key, Object: c.Owner.Newest(), Gone: true, Now: time.Now(), Logger: aside{c.Log},
		Memory: &Memory{}, Prune: &prune.Memory{}, Awaits: &inbox.Writes{},
	}
	return c.Family.Begin(p).Reader()
}

// aside is the Logger outside of reconciles.
type aside struct{ log logr.Logger }

func (a aside) Log() logr.Logger { return a.log }

// Missed is [Reader.Missed].
func (c Children) Missed() (bool, error) { return c.now().Missed() }

// Stale is [Reader.Stale].
func (c Children) Stale(ctx context.Context, desired any, spec dsl.ChildSpec) (bool, *unstructured.Unstructured, error) {
	return c.now().Stale(ctx, desired, spec)
}

// All is [Reader.All].
func (c Children) All() ([]dsl.ChildObject, error) { return c.now().All() }

// Get is [Reader.Get].
func (c Children) Get(resource, name string) (*unstructured.Unstructured, error) {
	return c.now().Get(resource, name)
}

// List is [Reader.List].
func (c Children) List(resource string) ([]*unstructured.Unstructured, error) {
	return c.now().List(resource)
}
