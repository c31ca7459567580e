// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package family

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// errReadOnly is the error of a filter that writes.
var errReadOnly = dsl.Permanent(errors.New("changing children: a filter only reads"))

// Filtered are the children as filters have them: they can be read, and not written.
type Filtered struct {
	refusing
	failed bool
}

var _ dsl.Children = (*Filtered)(nil)

// Filtered returns the children for the filters of a handler.
func (s *Session) Filtered() *Filtered {
	return &Filtered{refusing: refusing{ChildReader: &children{session: s}, err: errReadOnly}}
}

// Failed reports whether something could not be read that may be readable a moment later.
func (c *Filtered) Failed() bool { return c.failed }

// All notes when it fails.
func (c *Filtered) All() ([]dsl.ChildObject, error) {
	out, err := c.ChildReader.All()
	c.note(err)
	return out, err
}

// Get notes when it fails.
func (c *Filtered) Get(resource, name string) (*unstructured.Unstructured, error) {
	out, err := c.ChildReader.Get(resource, name)
	c.note(err)
	return out, err
}

// List notes when it fails.
func (c *Filtered) List(resource string) ([]*unstructured.Unstructured, error) {
	out, err := c.ChildReader.List(resource)
	c.note(err)
	return out, err
}

func (c *Filtered) note(err error) { c.failed = c.failed || err != nil && !dsl.IsPermanent(err) }

// None returns children that can be neither read nor written, as there is no owner. Why says that; the errors wrap
// it and are permanent.
func None(why error) dsl.Children {
	err := dsl.Permanent(fmt.Errorf("asking for children: %w", why))
	return refusing{ChildReader: none{err}, err: err}
}

// refusing are children that can only be read.
type refusing struct {
	dsl.ChildReader
	err error
}

// Apply fails: nothing is written.
func (c refusing) Apply(context.Context, any, ...dsl.ChildSpec) (*unstructured.Unstructured, error) {
	return nil, c.err
}

// Enter fails: nothing is written.
func (c refusing) Enter(context.Context, ...dsl.DesiredChild) error { return c.err }

// Remove fails: nothing is written.
func (c refusing) Remove(context.Context, dsl.ChildObject) error { return c.err }

// Delete fails: nothing is written.
func (c refusing) Delete(context.Context, string, string) error { return c.err }

// none is dsl.ChildReader where there is no owner.
type none struct{ err error }

func (n none) Missed() (bool, error) { return false, n.err }

func (n none) Stale(context.Context, any, dsl.ChildSpec) (bool, *unstructured.Unstructured, error) {
	return false, nil, n.err
}

func (n none) All() ([]dsl.ChildObject, error) { return nil, n.err }

func (n none) Get(string, string) (*unstructured.Unstructured, error) { return nil, n.err }

func (n none) List(string) ([]*unstructured.Unstructured, error) { return nil, n.err }
