// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// way is a way through an object, as expressions write it.
const way = `(?:\.\w+|\['[^']*'\]|\["[^"]*"\])+`

// The ways in which other languages, and those who forget a sign, write an expression. Each has a group that is the
// way through an object.
var (
	bare        = regexp.MustCompile(`^((?:self|children|related|indexes|old)` + way + `)$`)
	dollar      = regexp.MustCompile(`\$((?:self|params|children|related|indexes|old|item)` + way + `)`)
	parentheses = regexp.MustCompile(`\$\(\s*((?:self|params|children|related|indexes|old|item)` + way + `)\s*\)`)
	doubled     = regexp.MustCompile(`\{\{-?\s*((?:self|params|children|related|indexes|old|item)?\.\w[^{}]*?)\s*-?\}\}`)
	braces      = regexp.MustCompile(`\{\s*(self` + way + `)\s*\}`)
)

// lookalike returns what looks like an expression in a text and is none, and the expression that was probably meant.
// Both are empty when there is nothing. In a command line only $(…) is looked at, which no shell and no container means
// with these names.
func (f *fitter) lookalike(path []string, text string) (found, meant string) {
	forms := []*regexp.Regexp{parentheses}
	if !slices.ContainsFunc(path, isCommand) {
		forms = []*regexp.Regexp{bare, dollar, parentheses, doubled, braces}
	}
	for _, form := range forms {
		for _, at := range form.FindAllStringSubmatchIndex(text, -1) {
			found, meant := text[at[0]:at[1]], text[at[2]:at[3]]
			if at[0] > 0 && text[at[0]-1] == '$' {
				continue // $${…} is such a text on purpose, and so is $$(…)
			}
			if meant = f.meant(meant); meant != "" {
				return found, meant
			}
		}
	}
	return "", ""
}

// doubtful says what a part of a text that looks like an expression is, and what was probably meant; empty for others.
func (f *fitter) doubtful(t *expr.Template, part string) string {
	if whole, isText := t.Plain.(string); !isText || strings.Contains(whole, "\n") || f.foreign(t.Path) {
		return ""
	}
	found, meant := f.lookalike(t.Path, part)
	if found == "" {
		found, meant = f.braced(t.Path[f.depth:], part), "…"
	}
	if found == "" {
		return ""
	}
	return fmt.Sprintf("%s is text as it stands, and no expression: write ${%s}", found, meant)
}

// braced returns the part of a text that another program would replace, as {{ .Values.image }}, where none looks: the API
// server itself reads the name and the labels of any object, and what Kubernetes' own kinds have in metadata and spec.
// Annotations, the environment of a container and the like may be for another program, so there Helm's words alone count.
// Command lines, data and the fields of other kinds may hold whole templates, so nothing is said of them.
func (f *fitter) braced(path []string, text string) string {
	if f.kind.Empty() || len(path) < 2 || slices.ContainsFunc(path, isCommand) {
		return ""
	}
	named := path[0] == "metadata" && slices.Contains([]string{"name", "namespace", "labels"}, path[1])
	switch read := f.own && (path[0] == "metadata" || path[0] == "spec"); {
	case read && slices.ContainsFunc(path, isFree):
		return helms.FindString(text)
	case read || named:
		return anyBraces.FindString(text)
	}
	return ""
}

// The braces of templates, and those that Helm alone has.
var (
	anyBraces = regexp.MustCompile(`\{\{[^{}]*\}\}`)
	helms     = regexp.MustCompile(`\{\{[^{}]*\.(?:Values|Release|Chart)\.[^{}]*\}\}`)
)

// isFree reports whether any text may stand under a key of Kubernetes' own kinds, for whichever program.
func isFree(key string) bool {
	return slices.Contains([]string{"annotations", "env", "description", "openAPIV3Schema", "httpHeaders", "volumeAttributes", "options", "parameters"}, key)
}

// doubt warns of a text that looks like an expression.
func (f *fitter) doubt(path []string, found string) {
	f.doubts = append(f.doubts, &shape.Misfit{Path: path, Message: found + " (or, if it is meant so, ${'…'} around it)", Warning: true})
}

// isCommand reports whether what stands under a key is a command line.
func isCommand(key string) bool {
	return slices.Contains([]string{"command", "args", "script", "entrypoint"}, key)
}

// foreign reports whether a text is in a language of another program, that has such signs, too. Texts of several lines,
// as scripts and templates are, are never looked at.
func (f *fitter) foreign(path []string) bool {
	last := ""
	if len(path) > 0 {
		last = strings.ToLower(path[len(path)-1])
	}
	for _, word := range []string{"expression", "template", "jsonpath", "query"} {
		if strings.Contains(last, word) {
			return true
		}
	}
	return slices.Contains([]string{"rule", "cel", "jq"}, last) ||
		slices.Contains([]string{"tekton.dev", "argoproj.io"}, f.kind.Group)
}

// meant is the expression for a way that is written in another form, empty when it is probably something else.
func (f *fitter) meant(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, ".") { // as in a Go template
		parts := strings.Split(text[1:], ".")
		if !slices.ContainsFunc(parts, func(part string) bool { return !name.MatchString(part) }) && ofObjects(strings.ToLower(parts[0])) && len(parts) > 1 {
			for i := range parts {
				parts[i] = inJSON(parts[i])
			}
			return expr.Self + "." + strings.Join(parts, ".")
		}
		return ""
	}
	if !whole.MatchString(text) {
		return ""
	}
	root, rest, _ := strings.Cut(text, ".")
	next := firstName.FindString(rest)
	if root == expr.Self || root == expr.Old {
		if !ofObjects(next) && !f.has(next) {
			return ""
		}
		return text
	}
	named, has := map[string]map[string]shape.Shape{
		expr.Children: f.schemas.Children, expr.Related: f.schemas.Related, expr.Indexes: f.schemas.Indexes,
	}[root]
	if _, known := named[next]; has && !known {
		return ""
	}
	return text
}

var (
	whole     = regexp.MustCompile(`^\w+` + way + `$`)
	firstName = regexp.MustCompile(`^[A-Za-z_]\w*`)
	name      = regexp.MustCompile(`^[A-Za-z_]\w*$`)
)

// inJSON is how a field of Go is mostly called in JSON, as tls for TLS and secretName for SecretName.
func inJSON(field string) string {
	begin := strings.IndexFunc(field, func(r rune) bool { return !unicode.IsUpper(r) })
	switch {
	case begin < 0:
		return strings.ToLower(field)
	case begin > 1 && unicode.IsLetter(rune(field[begin])):
		begin--
	}
	return strings.ToLower(field[:begin]) + field[begin:]
}

// ofObjects reports whether a name is a field that most objects have.
func ofObjects(field string) bool {
	return slices.Contains([]string{"spec", "status", "metadata"}, field)
}

// has reports whether the object itself is known to have a field.
func (f *fitter) has(field string) bool {
	s := f.schemas.Self.Schema
	if s == nil {
		return false
	}
	_, found := s.Properties[field]
	return found
}

// kindOf returns the kind that an object's template has, empty when it is worked out.
func kindOf(t *expr.Template) schema.GroupVersionKind {
	tree, _ := t.Plain.(map[string]any)
	version, _ := tree["apiVersion"].(string)
	kind, _ := tree["kind"].(string)
	return schema.FromAPIVersionAndKind(version, kind)
}

// isOwn reports whether the object is of one of Kubernetes' own kinds, as far as that is known.
func (f *fitter) isOwn() bool {
	if f.schemas.Kinds == nil || f.kind.Empty() {
		return false
	}
	kind, _ := f.schemas.Kinds.Kind(f.kind) // what is wrong with it, others say
	return kind.Own
}
