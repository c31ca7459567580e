// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// leftOut reports the fields of its object that the expression reads and that the cache does not hold.
func (in *inspector) leftOut() {
	kept := in.schemas.Self.Kept
	if kept == nil {
		return
	}
	for _, variable := range []string{expr.Self, expr.Old, expr.Diff} {
		if variable != expr.Self && in.schemas.Alone {
			continue
		}
		if _, without := in.schemas.Without[variable]; without {
			continue // it is reported already
		}
		for _, lead := range in.program.Leads(variable) {
			if why := in.lack(variable, lead, kept); why != "" {
				in.issue(lead.At, "%s", why)
			}
		}
	}
}

// lack says which part of a variable's path is missing in the cache; empty if none is.
func (in *inspector) lack(variable string, lead expr.Lead, kept *shape.Kept) string {
	lacks, part := kept.Lacks(lead.Path)
	switch {
	case variable == expr.Diff:
		return fmt.Sprintf("diff is of the whole object, and %s leaves a part of it out of the cache: name with field what the handler looks at", kept)
	case len(lead.Path) == 0 && in.schemas.Named:
		return ""
	case len(lead.Path) == 0:
		return fmt.Sprintf("%s is read as a whole, and %s leaves a part of it out of the cache: read fields of it, or take %s away", variable, kept, kept.Word())
	case !lacks, part && lead.Asked: // its existence is known
		return ""
	case part:
		return fmt.Sprintf("%s leaves a part of %s out of the cache: add %[2]s to it", kept, lead.Path)
	}
	return kept.Leaves(lead.Path.String())
}

// keptFields are the fields of an object that a cache holds in part.
type keptFields struct {
	kept *shape.Kept
	at   []string
	// of are all fields; nil if they are not known.
	of fieldSet
}

func (f *keptFields) field(name string) (valueType, bool) {
	path := append(slices.Clip(f.at), name)
	out, found := unknown(), true
	if f.of != nil {
		out, found = f.of.field(name)
	}
	switch lacks, part := f.kept.Lacks(path); {
	case lacks && !part:
		return unknown(), false
	case lacks && found:
		return valueType{kinds: isMap, fields: &keptFields{f.kept, path, out.fields}}, true
	}
	return out, found
}

func (f *keptFields) any() valueType { return unknown() }
func (f *keptFields) what() string   { return "field" }

func (f *keptFields) names() []string {
	if f.of == nil {
		return nil
	}
	return f.of.names()
}

// lack says why a field is missing.
func (f *keptFields) lack(name string) string {
	path := dsl.Path(append(slices.Clip(f.at), name))
	if lacks, _ := f.kept.Lacks(path); lacks {
		return f.kept.Leaves(path.String())
	}
	return expr.Unknown("field", name, "", f.names())
}
