// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"errors"
	"reflect"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// checkParams checks parameters against the function's struct, so that mistakes are found when the configuration is
// loaded. Parameters with ${…} are checked when they have values. All faults are returned, joined.
func checkParams(f dsl.Function, params dsl.Params) error {
	if params == nil {
		return nil
	}
	if f.Params == nil {
		return &shape.Misfit{Path: []string{"with"}, Message: f.Name + " takes no parameters"}
	}
	t := reflect.TypeOf(f.Params)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	root := form.Node(map[string]any(params))
	d := form.NewDecoder(root)
	d.JSON, d.What = true, "parameter"
	d.Computed = func(text string) bool { return hasExpression(text) }
	d.Value("with", root, reflect.New(t).Interface())
	var faults []error
	for _, fault := range d.Faults {
		faults = append(faults, &shape.Misfit{Path: fault.At.Steps(), Message: fault.Message})
	}
	if len(faults) > 0 || hasExpression(map[string]any(params)) {
		return errors.Join(faults...)
	}
	if err := params.Into(reflect.New(t).Interface()); err != nil { // other demands of tags, such as numbers as text
		return &shape.Misfit{Path: []string{"with"}, Message: err.Error()}
	}
	return nil
}
