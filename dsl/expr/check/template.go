// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Template checks the expressions of a template against schemas and names. If target is not nil, it also checks the
// tree against this schema of the result: its fields, its plain values, and the results of expressions as far as
// they are known. The target may be the schema of a part of an object. The errors are *shape.Misfit.
func Template(t *expr.Template, s shape.Schemas, target *spec.Schema) []error {
	f := &fitter{schemas: s, depth: len(t.Path), kind: kindOf(t)}
	f.own = f.isOwn()
	f.node(t, typeOf(target, true))
	f.certain(t, target)
	return append(f.faults, f.doubts...)
}

// fitter checks a template against the schema of its result.
type fitter struct {
	schemas shape.Schemas
	// depth is the length of the template's path.
	depth int
	// kind is the kind of the object; empty if it is not known. own: it is a built-in kind.
	kind schema.GroupVersionKind
	own  bool
	// doubts are warnings for uncertain faults.
	faults, doubts []error
	// doubted are the paths in the object that have a doubt.
	doubted []string
}

func (f *fitter) fault(path []string, format string, args ...any) {
	f.faults = append(f.faults, &shape.Misfit{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (f *fitter) node(t *expr.Template, want valueType) {
	if len(t.Pieces) > 0 {
		f.text(t, want)
		return
	}
	text, _ := t.Plain.(string)
	switch meant := f.doubtful(t, text); {
	case want.kinds&^isNull == isBool && slices.Contains([]string{"yes", "no", "on", "off"}, strings.ToLower(text)):
		f.fault(t.Path, "want true or false, found text (yes, no, on and off are text here)")
	case meant == "":
		f.wanted(t.Path, want, kindsOf(t.Plain))
		f.bytes(t.Path, want, text)
		f.quantity(t.Path, want, t.Plain)
	case fits(isText, want):
		f.doubt(t.Path, meant)
	default:
		f.fault(t.Path, "want %s: %s", want.kinds&^isNull, meant)
	}
	f.entries(t, want)
	element := unknown()
	if want.kinds&^isNull == isList {
		element = want.inner()
	}
	for i := range t.List {
		f.node(&t.List[i], element)
	}
}

// entries checks the entries of a map against its fields.
func (f *fitter) entries(t *expr.Template, want valueType) {
	fields := want.fields
	if want.kinds&^isNull != isMap {
		fields = nil
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		f.dataKey(e)
		of := unknown()
		switch {
		case len(e.Key.Pieces) > 0:
			f.text(&e.Key, only(isText))
			if fields != nil {
				of = fields.any()
			}
		case fields != nil:
			name, _ := e.Key.Plain.(string)
			field, found := fields.field(name)
			if !found {
				f.faults = append(f.faults, &shape.Misfit{Path: e.Key.Path, Key: true, Message: expr.Unknown("field", name, "", fields.names())})
			}
			of = field
		}
		f.node(&e.Value, of)
	}
}

// text checks the expressions of a text. An expression that is the whole text becomes its value.
func (f *fitter) text(t *expr.Template, want valueType) {
	before := len(f.faults)
	var result valueType
	for _, p := range t.Pieces {
		if p.Program == nil {
			if meant := f.doubtful(t, p.Text); meant != "" {
				f.doubt(t.Path, meant)
			}
			if want.base64 && strings.Trim(p.Text, base64Letters) != "" {
				f.noBase64(t.Path)
			}
			continue
		}
		if len(f.faults)-before >= expr.MostIssues {
			f.faults = append(f.faults, expr.Unread(t.Path, p))
			return
		}
		of, doubted, err := infer(p.Program, f.schemas, f.doubted)
		f.doubted = doubted
		for _, found := range expr.Faults(t.Path, err) {
			if shape.IsWarning(found) {
				f.doubts = append(f.doubts, found)
			} else {
				f.faults = append(f.faults, found)
			}
		}
		result = of
	}
	if len(f.faults) > before {
		return // a fault in an expression explains more than its result
	}
	if len(t.Pieces) > 1 {
		f.wanted(t.Path, want, isText)
		return
	}
	if message := misfit(result, want); message != "" {
		at := t.Pieces[0].At
		f.faults = append(f.faults, &shape.Misfit{Path: t.Path, Line: at.Line, Column: at.Column, Message: message})
	}
}

// misfit says why the value of an expression does not fit the wanted type; empty if it does.
func misfit(result, want valueType) string {
	if result.kinds == isOptional {
		result = result.inner()
	}
	switch given := written(result.kinds); {
	case !fits(given, want):
		return fmt.Sprintf("want %s, found %s%s", want.kinds&^isNull, result.kinds, remedy(given, want.kinds))
	case result.kinds == isList && want.kinds&^isNull == isList && result.element != nil && want.element != nil:
		if message := misfit(*result.element, *want.element); message != "" {
			return "in its elements: " + message
		}
	}
	return ""
}

// wanted reports a plain value of a wrong kind.
func (f *fitter) wanted(path []string, want valueType, given kinds) {
	if !fits(given, want) {
		f.fault(path, "want %s, found %s%s", want.kinds&^isNull, given, quoting(given, want.kinds))
	}
}

// bytes reports a text that is not base64 for a field of bytes. The API server cannot decode such an object.
func (f *fitter) bytes(path []string, want valueType, text string) {
	if _, err := base64.StdEncoding.DecodeString(text); want.base64 && err != nil {
		f.noBase64(path)
	}
}

// base64Letters are the characters of base64.
const base64Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n"

func (f *fitter) noBase64(path []string) {
	hint := map[string]string{"Secret": " (stringData takes it as it stands)", "ConfigMap": " (data takes it as it stands)"}
	f.fault(path, "want base64, found other text%s", hint[f.kind.GroupKind().String()])
}

// dataKey reports a key that the data of a Secret or ConfigMap cannot have. It checks a computed key as far as its text is plain.
func (f *fitter) dataKey(e *expr.Entry) {
	at := e.Key.Path[min(f.depth, len(e.Key.Path)):]
	kind := f.kind.GroupKind().String()
	if len(at) != 2 || kind != "Secret" && kind != "ConfigMap" || !slices.Contains([]string{"data", "stringData", "binaryData"}, at[0]) {
		return
	}
	key, known := e.Key.Plain.(string)
	for i, p := range e.Key.Pieces {
		if i == 0 {
			key = ""
		}
		if p.Program != nil {
			p.Text = "x"
		}
		key, known = key+p.Text, len(e.Key.Pieces) > 1
	}
	if problem := dsl.DataKeyProblem(key); known && problem != "" {
		f.faults = append(f.faults, &shape.Misfit{Path: e.Key.Path, Key: true, Message: problem})
	}
}

// fits reports whether one of the given kinds fits the wanted type. Null fits everywhere: the field is not set.
// Whole and fractional numbers are not distinguished.
func fits(given kinds, want valueType) bool {
	want.kinds = want.kinds.withNumbers()
	return given == 0 || given&isNull != 0 || want.may(given)
}

// written returns the kinds of values in JSON.
func written(k kinds) kinds {
	if k&(isBytes|isTime|isDuration|isOther) != 0 {
		k |= isText
	}
	if k&isOptional != 0 {
		return anyKind
	}
	return k
}

// remedy says how to convert an expression to the wanted kind.
func remedy(given, want kinds) string {
	switch {
	case want == isText && given&(isNumeric|isBool) != 0:
		return ": string(…) makes it text"
	case want&isNumeric != 0 && given == isText:
		return ": int(…) makes it a number"
	}
	return ""
}

// quoting says whether to add or to remove quotes around a plain value.
func quoting(given, want kinds) string {
	if want&isText != 0 && given&(isNumeric|isBool) != 0 {
		return " (put it in quotes)"
	}
	return ""
}

// kindsOf returns the kind of a plain value.
func kindsOf(value any) kinds {
	t, _ := types.DefaultTypeAdapter.NativeToValue(value).Type().(*types.Type)
	return ofCEL(t).kinds
}
