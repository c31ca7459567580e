// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// errReadOnly is the error of a filter that writes.
var errReadOnly = dsl.Permanent(errors.New("changing children: a filter only reads"))

// readOnly is dsl.Children for filters.
type readOnly struct{ dsl.Children }

// Apply fails: nothing is written.
func (readOnly) Apply(context.Context, any, ...dsl.ChildSpec) (*unstructured.Unstructured, error) {
	return nil, errReadOnly
}

// Remove fails: nothing is written.
func (readOnly) Remove(context.Context, dsl.ChildObject) error { return errReadOnly }

// Delete fails: nothing is written.
func (readOnly) Delete(context.Context, string, string) error { return errReadOnly }
