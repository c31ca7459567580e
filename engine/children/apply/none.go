// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// NoChildren returns children that can be neither read nor written, because there is no owner. The errors wrap why, and are
// permanent.
func NoChildren(why error) dsl.Children {
	return none{dsl.Permanent(fmt.Errorf("asking for children: %w", why))}
}

// none implements [dsl.Children] without an owner.
type none struct{ err error }

func (n none) Missed() (bool, error) { return false, n.err }

func (n none) Stale(context.Context, any, dsl.ChildSpec) (bool, *unstructured.Unstructured, error) {
	return false, nil, n.err
}

func (n none) All() ([]dsl.ChildObject, error) { return nil, n.err }

func (n none) Get(string, string) (*unstructured.Unstructured, error) { return nil, n.err }

func (n none) List(string) ([]*unstructured.Unstructured, error) { return nil, n.err }

func (n none) Apply(context.Context, any, ...dsl.ChildSpec) (*unstructured.Unstructured, error) {
	return nil, n.err
}

func (n none) Enter(context.Context, ...dsl.DesiredChild) error { return n.err }

func (n none) Remove(context.Context, dsl.ChildObject) error { return n.err }

func (n none) Delete(context.Context, string, string) error { return n.err }

// NoTargets returns targets that can be neither patched nor released, because there is no owner. The errors wrap why,
// and are permanent.
func NoTargets(why error) dsl.Targets {
	return noTargets{dsl.Permanent(fmt.Errorf("patching objects: %w", why))}
}

// noTargets implements [dsl.Targets] without an owner.
type noTargets struct{ err error }

func (n noTargets) Patch(context.Context, any, dsl.TargetSpec) (*unstructured.Unstructured, error) {
	return nil, n.err
}

func (n noTargets) GiveBack(context.Context, string, string) error { return n.err }

func (n noTargets) Keys(string) []string { return nil }
