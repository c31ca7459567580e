// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/handwerk-dev/handwerk/dsl"
)

// validate asks the API server's own code whether it would take the CRD.
func (b *builder) validate(crd *apiextensionsv1.CustomResourceDefinition) {
	whole := crd.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(whole)
	internal := &apiextensions.CustomResourceDefinition{}
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(whole, internal, nil)
	if err != nil {
		b.fault(nil, "%v", err)
		return
	}
	// The context carries nothing: this is computation alone.
	faulty := len(b.faults) > 0
	errs := validation.ValidateCustomResourceDefinition(context.TODO(), internal)
	if faulty {
		// what is at fault already is not there for rules
		errs = slices.DeleteFunc(errs, func(e *field.Error) bool { return strings.Contains(e.Detail, "undefined field") })
	}
	slices.SortStableFunc(errs, func(x, y *field.Error) int { return cmp.Compare(rank(x), rank(y)) })
	for i, e := range errs {
		if i > 0 && rank(e) > 1 && rank(e) > rank(errs[i-1]) {
			return // it follows from the others
		}
		b.refused(e)
	}
}

// rank puts first what is wrong for sure, then single rules that cost too much, then those that do so
// together, and then the sum.
func rank(e *field.Error) int {
	switch {
	case strings.HasPrefix(e.Detail, "x-kubernetes-validations estimated rule cost total"):
		return 3
	case strings.HasPrefix(e.Detail, "contributed to estimated rule cost"):
		return 2
	case strings.HasPrefix(e.Detail, "estimated rule cost"):
		return 1
	default:
		return 0
	}
}

// refused notes what the API server would refuse.
func (b *builder) refused(e *field.Error) {
	at := parsePath(e.Field)
	switch {
	case at.begins("spec", "validation", "openAPIV3Schema"):
		at = at[3:]
	case at.begins("spec", "additionalPrinterColumns") && len(at) > 2:
		words := append([]string{"columns"}, at[2:]...)
		if words[len(words)-1] == "JSONPath" {
			words[len(words)-1] = "path"
		}
		b.fault(words, "%s", reason(e, at))
		b.once()
		return
	case at.begins("spec", "names"):
		b.fault(at[2:], "%s", reason(e, at))
		b.once()
		return
	case at.begins("spec", "scope"):
		b.fault(at[1:], "%s", reason(e, at))
		b.once()
		return
	default:
		b.fault(nil, "%s: %s", e.Field, reason(e, at))
		return
	}
	if issues := issue.FindAllStringSubmatch(e.Detail, -1); issues != nil {
		for _, m := range issues {
			line, _ := strconv.Atoi(m[1])
			column, _ := strconv.Atoi(m[2])
			b.faultAtLine(at, line, column, strings.ReplaceAll(m[3], " (in container '')", ""))
		}
		return
	}
	b.faultAt(at, reason(e, at))
}

// issue is a fault that CEL tells of.
var issue = regexp.MustCompile(`(?m)ERROR: <input>:(\d+):(\d+): (.*)$`)

// body is how the API server begins what it says of a value.
var body = regexp.MustCompile(`^\S* in body `)

// reason says for authors what is wrong.
func reason(e *field.Error, at steps) string {
	detail := body.ReplaceAllString(e.Detail, "")
	value := ""
	if e.Type == field.ErrorTypeTypeInvalid {
		detail, _, _ = strings.Cut(detail, ": ") // what follows is the type again
	} else if data, err := json.Marshal(e.BadValue); err == nil && e.Type != field.ErrorTypeTooLong {
		value = " " + string(data)
	}
	switch {
	case strings.HasPrefix(detail, "oldSelf cannot be used"):
		return "elements of a list cannot be compared with what they were (unless the list has listMapKey)"
	case e.Type == field.ErrorTypeRequired && detail != "":
		return detail
	case slices.Contains(at, "default"):
		return reasonOfDefault(e.Type, at, value, detail)
	case e.Type == field.ErrorTypeRequired:
		return at.last() + " is required"
	case e.Type == field.ErrorTypeNotSupported:
		return fmt.Sprintf("unknown value%s (%s)", value, detail)
	case detail == "":
		return strings.ToLower(e.Type.String())
	default:
		return detail
	}
}

// reasonOfDefault says why a default does not fit.
func reasonOfDefault(kind field.ErrorType, at steps, value, detail string) string {
	switch kind {
	case field.ErrorTypeRequired:
		return "the default lacks the required field " + at.last()
	case field.ErrorTypeNotSupported:
		return fmt.Sprintf("the default%s is no value of the enum (%s)", value, detail)
	default:
		return fmt.Sprintf("the default%s does not fit: %s", value, detail)
	}
}

// faultAt notes a fault of a part of the schema, where it was written, unless there is one already.
func (b *builder) faultAt(at steps, message string) {
	path, t, places := b.find(at)
	if t == nil {
		b.fault(path, "%s", message)
	} else {
		b.faultIn(path, t, places[0], message)
	}
	b.once()
}

// once drops the last fault when there is one in its place already.
func (b *builder) once() {
	end := len(b.faults) - 1
	last := b.faults[end]
	for _, f := range b.faults[:end] {
		if slices.Equal(f.Path, last.Path) && f.Line == last.Line && f.Column == last.Column {
			b.faults = b.faults[:end]
			return
		}
	}
}

// faultAtLine is faultAt for a line and a column of an expression, both from 1.
func (b *builder) faultAtLine(at steps, line, column int, message string) {
	path, t, places := b.find(at)
	if t == nil {
		b.faults = append(b.faults, &dsl.ConfigError{Path: slices.Clone(path), Line: line, Column: column, Message: message})
		return
	}
	offset := 0 // an expression in a marker may go over lines, too
	for _, i := range places[:len(places)-1] {
		if line <= 1 {
			break
		}
		if offset++; t[i] == '\n' {
			line--
		}
	}
	b.faultIn(path, t, places[min(offset+column-1, len(places)-1)], message)
}

// find returns where a part of the schema was written: what is known nearest to it.
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

func (s steps) begins(words ...string) bool {
	return len(s) >= len(words) && slices.Equal(s[:len(words)], words)
}

// last is the last step, empty when there is none.
func (s steps) last() string {
	if len(s) == 0 {
		return ""
	}
	return s[len(s)-1]
}

// parsePath reads a path of the API server: names with dots between them, keys and indexes in
// brackets.
func parsePath(text string) (out steps) {
	for text != "" {
		if text[0] == '.' {
			text = text[1:]
			continue
		}
		if text[0] == '[' {
			end := strings.IndexByte(text, ']')
			if end < 0 {
				return append(out, text)
			}
			out, text = append(out, text[1:end]), text[end+1:]
			continue
		}
		end := strings.IndexAny(text, ".[")
		if end < 0 {
			end = len(text)
		}
		out, text = append(out, text[:end]), text[end:]
	}
	return out
}
