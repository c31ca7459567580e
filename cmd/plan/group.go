// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Group is a set of objects of one kind with the same change.
type Group struct {
	// Change is the change of the first object. If there are several objects, [anyName] replaces their names in its fields.
	// Created objects are the exception: they have the fields of the first one.
	Change
	// Names are the objects, as in shop/web.
	Names []string
}

// anyName stands for the name of each object of a group.
const anyName = "NAME"

// Groups returns the changes of a plan in their order, with equal changes in one group.
func (r *Report) Groups() (out []Group) {
	at := map[string]int{}
	for _, c := range r.Changes {
		name := strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")
		fields := fieldsOf(c)
		key := fmt.Sprint(c.Action, c.APIVersion, c.Kind, c.Effect, fields)
		i, found := at[key]
		if !found {
			i, at[key] = len(out), len(out)
			out = append(out, Group{Change: c})
		}
		if out[i].Names = append(out[i].Names, name); len(out[i].Names) == 2 && fields != "" {
			out[i].Fields = nil                                // do not overwrite the fields in the report
			_ = json.Unmarshal([]byte(fields), &out[i].Fields) // it was made from fields
		}
	}
	return out
}

// fieldsOf returns the fields of a change as JSON, with [anyName] for the name of the object, so that the same change of
// two objects has the same text. It is empty for a created object: new objects differ in more than their names, and are
// grouped by their kind alone.
func fieldsOf(c Change) string {
	if c.Action == Created {
		return ""
	}
	data, _ := json.Marshal(c.Fields) // they came from JSON
	return replaceWord(string(data), c.Name, anyName)
}

// replaceWord replaces a word where no letter or digit stands before or after it.
func replaceWord(text, word, by string) string {
	var out strings.Builder
	done := 0
	for at := 0; word != ""; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			break
		}
		begin, end := at+i, at+i+len(word)
		if at = end; begin > 0 && isAlphanumeric(text[begin-1]) || end < len(text) && isAlphanumeric(text[end]) {
			continue
		}
		out.WriteString(text[done:begin] + by)
		done = end
	}
	out.WriteString(text[done:])
	return out.String()
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// mostNames is the number of objects that a text names in a group.
const mostNames = 5

// names lists the objects of a group.
func (g Group) names() string {
	if len(g.Names) <= mostNames {
		return strings.Join(g.Names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(g.Names[:mostNames-1], ", "), len(g.Names)-mostNames+1)
}

// title says in a line what happens to the objects.
func (g Group) title() string {
	out := fmt.Sprintf("%s %s %s", signOf(g.Action), g.Action, g.Kind+" "+g.Names[0])
	if len(g.Names) > 1 {
		out = fmt.Sprintf("%s %s %d %s: %s", signOf(g.Action), g.Action, len(g.Names), pluralOf(g.Kind), g.names())
	}
	if effect := g.Effect; effect != "" {
		if len(g.Names) > 1 {
			effect = strings.Replace(effect, "its ", "their ", 1)
		}
		out += " (" + effect + ")"
	}
	return out
}

// pluralOf returns the plural of a kind for people.
func pluralOf(kind string) string {
	switch {
	case strings.HasSuffix(kind, "s") || strings.HasSuffix(kind, "x") || strings.HasSuffix(kind, "ch"):
		return kind + "es"
	case strings.HasSuffix(kind, "cy"):
		return strings.TrimSuffix(kind, "y") + "ies"
	}
	return kind + "s"
}
