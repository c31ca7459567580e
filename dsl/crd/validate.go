// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// validate checks a schema that was linted with the API server's own code. It uses those parts that can be imported
// without the rest of the server, which would take more memory than the whole operator.
func (b *builder) validate(root *apiextensionsv1.JSONSchemaProps) {
	faulty := b.strayed || len(b.faults) > 0
	s, err := internalForm(root)
	if err != nil {
		if !faulty { // otherwise the lint has reported the fault with its place
			b.faultAt(nil, err.Error())
		}
		return
	}
	at := field.NewPath("openAPIV3Schema")
	errs := structural.ValidateStructural(at, s)
	for _, e := range errs {
		b.refused(e)
	}
	if len(errs) > 0 {
		return
	}
	b.rules(s, faulty)
	// The context has no values and does not end: this is pure computation.
	errs, err = defaulting.ValidateDefaults(wait.ContextForChannel(nil), at, s, true, true)
	if err != nil {
		b.faultAt(nil, err.Error())
	}
	slices.SortFunc(errs, func(x, y *field.Error) int {
		return cmp.Or(cmp.Compare(x.Field, y.Field), cmp.Compare(x.Detail, y.Detail))
	})
	for _, e := range errs {
		if !strings.HasPrefix(e.Detail, "rule compile error") { // the fault of the rule is reported already
			b.refused(e)
		}
	}
}

// internalForm is a schema in the form that the API server works with.
func internalForm(root *apiextensionsv1.JSONSchemaProps) (*structural.Structural, error) {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(root.DeepCopy(), internal, nil); err != nil {
		return nil, fmt.Errorf("reading schema: %w", err)
	}
	s, err := structural.NewStructural(internal)
	if err != nil {
		return nil, fmt.Errorf("reading schema: %w", err)
	}
	return s, nil
}

// refused notes a fault that the API server finds.
func (b *builder) refused(e *field.Error) {
	at := parsePath(e.Field)[1:]
	b.faultAt(at, reason(e, at))
}

// body matches the beginning of the API server's messages on values.
var body = regexp.MustCompile(`^\S* in body `)

// reason rewrites a fault for authors.
func reason(e *field.Error, at steps) string {
	detail := body.ReplaceAllString(e.Detail, "")
	value := ""
	if e.Type == field.ErrorTypeTypeInvalid {
		detail, _, _ = strings.Cut(detail, ": ") // the rest repeats the type
	} else if data, err := json.Marshal(e.BadValue); err == nil && e.Type != field.ErrorTypeTooLong {
		value = " " + string(data)
	}
	switch {
	case !slices.Contains(at, "default"), e.Type == field.ErrorTypeRequired && detail != "":
		return detail
	case e.Type == field.ErrorTypeRequired:
		return "the default lacks the required field " + at[len(at)-1]
	case e.Type == field.ErrorTypeNotSupported:
		return fmt.Sprintf("the default%s is no value of the enum (%s)", value, detail)
	default:
		return fmt.Sprintf("the default%s does not fit: %s", value, detail)
	}
}

// faultAt notes a fault of a part of the schema at its place, unless there is one already.
func (b *builder) faultAt(at steps, message string) {
	b.faultAtLine(at, 0, 0, message)
	end := len(b.faults) - 1
	last := b.faults[end]
	if slices.ContainsFunc(b.faults[:end], func(f *shape.Misfit) bool {
		return slices.Equal(f.Path, last.Path) && f.Line == last.Line && f.Column == last.Column
	}) {
		b.faults = b.faults[:end]
	}
}

// faultAtLine notes a fault at a line and a column of an expression, both from 1, or of a whole part.
func (b *builder) faultAtLine(at steps, line, column int, message string) {
	path, t, places := b.find(at)
	if t == nil {
		b.note(path, line, column, message)
		return
	}
	offset := 0 // an expression in a marker may have several lines, too
	for _, i := range places[:len(places)-1] {
		if line <= 1 {
			break
		}
		if offset++; t[i] == '\n' {
			line--
		}
	}
	b.faultIn(path, t, places[min(offset+max(column, 1)-1, len(places)-1)], message)
}

// find returns the place of a part of the schema, or the nearest known place.
func (b *builder) find(at steps) (path []string, t text, places []int) {
	if b.form.OpenAPIV3Schema != nil {
		return slices.Concat(steps{"openAPIV3Schema"}, at), nil, nil
	}
	for ; len(at) > 0; at = at[:len(at)-1] {
		if p, known := b.places[at.key()]; known {
			return p.path, p.text, p.at
		}
	}
	return nil, nil, nil
}

// step matches a name, or the text in brackets.
var step = regexp.MustCompile(`\[([^\]]*)\]|([^.\[]+)`)

// parsePath reads a path of the API server: names with dots between them, keys and indexes in brackets.
func parsePath(text string) (out steps) {
	for _, found := range step.FindAllStringSubmatch(text, -1) {
		out = append(out, found[1]+found[2])
	}
	return out
}
