// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

// anyKey stands for a key of a map that has free keys.
const anyKey = "<name>"

// stepsOfPath finds the keys of a path that a person has written.
var stepsOfPath = regexp.MustCompile(`\["([^"]*)"\]|[^.\[\]]+`)

// index matches what stands for an element of a list.
var index = regexp.MustCompile(`^([0-9]+|\*)$`)

// Find returns the field at a path. Brackets, indexes and <name> may be left out: resources.handlers.retries,
// resources[].handlers[].retries, and resources[0].handlers[1].retries as in a fault are the same field. The error says
// which field is unknown, and what was probably meant.
func (o *Outline) Find(path string) (Field, error) {
	at, steps := o.Whole(), []string{}
	for _, found := range stepsOfPath.FindAllStringSubmatch(path, -1) {
		if step := cmp.Or(found[1], found[0]); !index.MatchString(step) {
			steps = append(steps, step)
		}
	}
	for i, step := range steps {
		next, found := o.child(at, step)
		if !found {
			return Field{}, o.unknown(at, steps[i:])
		}
		at = next
	}
	return at, nil
}

// Path returns the place as people write it, without [] and <name>.
func (f Field) Path() string {
	return strings.NewReplacer("[]", "", "."+anyKey, "").Replace(f.Place)
}

// child returns the field of that name within a field, or the value under a free key.
func (o *Outline) child(f Field, name string) (Field, bool) {
	f.within = nil // a path ends, so a form that contains itself may be gone through
	fields := o.fields(f)
	if i := slices.IndexFunc(fields, func(one Field) bool { return one.Name == name }); i >= 0 {
		return fields[i], true
	}
	value := o.free(f.schema)
	if _, near := words.Nearest(name, names(fields)); value == nil || near && name != anyKey {
		return Field{}, false
	}
	return Field{Place: underKey(f.Place), Type: typeOf(value), Doc: f.Doc, schema: value, within: f.within}, true
}

// fields returns all fields of the maps within a field.
func (o *Outline) fields(f Field) (out []Field) {
	for _, b := range o.Blocks(f) {
		out = append(out, b.Fields...)
	}
	return out
}

func names(fields []Field) (out []string) {
	for _, f := range fields {
		out = append(out, f.Name)
	}
	return out
}

// free returns the form of values under free keys, of a map or of maps in a list; nil if there are no free keys.
func (o *Outline) free(s *Schema) *Schema {
	if name, is := s.definition(); is {
		return o.free(o.root.Defs[name])
	}
	entries, is := s.AdditionalProperties.(*Schema)
	switch {
	case is:
		return entries
	case s.AdditionalProperties != nil: // false: there are no other keys
		return nil
	case s.Type == "object" || s.Type == "" && len(s.OneOf) == 0: // anything
		return &Schema{}
	case s.Items != nil:
		return o.free(s.Items)
	}
	for _, one := range s.OneOf {
		if value := o.free(one); value != nil {
			return value
		}
	}
	return nil
}

// unknown returns the error for a path whose first step is no field here.
func (o *Outline) unknown(at Field, steps []string) error {
	at.within = nil
	fields := o.fields(at)
	if len(fields) == 0 {
		return fmt.Errorf("%s is %s, and has no field %s", at.Place, article(at.Type), Quoted(steps[0]))
	}
	where := ""
	if place := o.Blocks(at)[0].Place; place != "" {
		where = " in " + place
	}
	return fmt.Errorf("unknown field %s%s (%s)", Quoted(steps[0]), where, o.meant(fields, steps))
}

// article puts an article before a type that needs one.
func article(of string) string {
	switch {
	case of == "text" || of == "anything" || of == "true or false":
		return of
	case strings.Contains(of, ", "):
		return "one of " + of
	}
	return "a " + of
}

// meant says which field was probably meant by a path below some fields.
func (o *Outline) meant(fields []Field, steps []string) string {
	name, known := steps[0], names(fields)
	if _, near := words.Nearest(name, known); near {
		return words.Hint(name, known)
	}
	for _, f := range fields {
		if slices.Contains(f.schema.Mistaken, name) {
			return fmt.Sprintf("did you mean %q?", f.Name)
		}
	}
	if elsewhere := o.elsewhere(steps); len(elsewhere) > 0 {
		return "did you mean " + strings.Join(elsewhere, " or ") + "?"
	}
	const begins = 4 // letters that a name must share with the one that was meant
	for _, f := range fields {
		if len(name) >= begins && strings.HasPrefix(f.Name, name[:begins]) {
			return fmt.Sprintf("did you mean %q?", f.Name)
		}
	}
	return words.Hint(name, known)
}

// elsewhere returns a few paths that end with some steps, those in the largest maps first.
func (o *Outline) elsewhere(steps []string) []string {
	const most = 3
	end := "." + strings.Join(steps, ".")
	sizes := map[string]int{}
	var visit func(f Field)
	visit = func(f Field) {
		fields := o.fields(f)
		for _, one := range fields {
			if path := one.Path(); one.Doc != "" && strings.HasSuffix(path, end) {
				sizes[path] = len(fields)
			}
			visit(one)
		}
	}
	visit(o.Whole())
	out := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(sizes[b]-sizes[a], strings.Compare(a, b))
	})
	return out[:min(len(out), most)]
}
