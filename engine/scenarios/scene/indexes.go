// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// ValuesByOwner is the function of an index of ConfigMaps: the value v under each of the names in the value for.
func ValuesByOwner(o *unstructured.Unstructured) ([]dsl.Entry, error) {
	data, _, _ := unstructured.NestedStringMap(o.Object, "data")
	switch data["v"] {
	case "broken":
		return nil, ErrAgain
	case "panic":
		panic("no")
	}
	var out []dsl.Entry
	for owner := range strings.FieldsSeq(data["for"]) {
		out = append(out, dsl.Entry{Key: owner, Value: map[string]any{"v": data["v"]}})
	}
	o.Object["data"] = "spoilt"
	return out, nil
}

// IndexedValue is a value of the index.
type IndexedValue struct {
	V string `json:"v"`
}

// LooksUp declares a handler, see, that notes what the index has under the key spec.ref of its object.
func LooksUp(causes ...dsl.Cause) func(foo *dsl.Resource, j *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		foo.On(causes, "see", func(_ context.Context, r *dsl.Request) error {
			line, err := LookUp(r)
			j.Add(line)
			return err
		}, dsl.WithBackoff(24*time.Hour, 24*time.Hour))
	}
}

// LookUp returns what the index has under the key spec.ref, as a line for a journal.
func LookUp(r *dsl.Request) (line string, err error) {
	line = r.Object.GetName() + " " + string(r.Cause) + ":"
	owners, err := dsl.Index[string, IndexedValue](r, "owners")
	if err != nil {
		return line + " error", err
	}
	ref, _, _ := unstructured.NestedString(r.Object.Object, "spec", "ref")
	found, err := owners.Get(ref)
	for _, one := range found {
		line += " " + one.V
	}
	return line, err
}

// LaunchWithIndex declares the index, owners, and starts the operator.
func (s *Stage) LaunchWithIndex(options ...dsl.Option) {
	s.T.Helper()
	s.Operator.Index("owners", ConfigMaps, ValuesByOwner, options...)
	s.Launch()
}
