// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package family

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

var errBusy = errors.New("not now")

// readable are children of which reads have one outcome.
type readable struct {
	dsl.ChildReader
	err error
}

func (r readable) All() ([]dsl.ChildObject, error) { return nil, r.err }

func (r readable) Get(string, string) (*unstructured.Unstructured, error) { return nil, r.err }

func (r readable) List(string) ([]*unstructured.Unstructured, error) { return nil, r.err }

// TestFiltersOnlyRead holds that filters cannot write children, nor handlers that have no object.
func TestFiltersOnlyRead(t *testing.T) {
	for name, test := range map[string]struct {
		children dsl.Children
		why      error
	}{
		"a filter":                    {(&Session{}).Filtered(), errReadOnly},
		"a handler without an object": {None(errBusy), errBusy},
	} {
		t.Run(name, func(t *testing.T) {
			_, applied := test.children.Apply(t.Context(), nil)
			for call, err := range map[string]error{
				"apply": applied, "enter": test.children.Enter(t.Context()),
				"delete": test.children.Delete(t.Context(), "configmaps.v1", "c"), "remove": test.children.Remove(t.Context(), dsl.ChildObject{}),
			} {
				if !errors.Is(err, test.why) || !dsl.IsPermanent(err) {
					t.Errorf("%s: the error is %v", call, err)
				}
			}
		})
	}
}

// TestFiltersNoteWhatTheyCouldNotRead holds that a filter which could not read children is told from one that fails
// for good.
func TestFiltersNoteWhatTheyCouldNotRead(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		failed bool
	}{
		"children can be read":                   {nil, false},
		"children cannot be read at this moment": {errBusy, true},
		"what is asked for is not declared":      {dsl.Permanent(errBusy), false},
	} {
		for call, read := range map[string]func(dsl.ChildReader) error{
			"all":  func(c dsl.ChildReader) error { _, err := c.All(); return err },
			"get":  func(c dsl.ChildReader) error { _, err := c.Get("configmaps.v1", "c"); return err },
			"list": func(c dsl.ChildReader) error { _, err := c.List("configmaps.v1"); return err },
		} {
			t.Run(name+": "+call, func(t *testing.T) {
				c := &Filtered{refusing: refusing{ChildReader: readable{err: test.err}}}
				if err := read(c); !errors.Is(err, test.err) || c.Failed() != test.failed {
					t.Errorf("the error is %v, and failed is %t", err, c.Failed())
				}
			})
		}
	}
}
