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

// way matches a path in an object, as in expressions.
const way = `(?:\.\w+|\['[^']*'\]|\["[^"]*"\])+`

// The forms of expressions in other languages, or with a forgotten sign. Each has a group that is the path in an
// object.
var (
	bare        = regexp.MustCompile(`^((?:self|children|related|indexes|old)` + way + `)$`)
	dollar      = regexp.MustCompile(`\$((?:self|params|children|related|indexes|old|item)` + way + `)`)
	parentheses = regexp.MustCompile(`\$\(\s*((?:self|params|children|related|indexes|old|item)` + way + `)\s*\)`)
	doubled     = regexp.MustCompile(`\{\{-?\s*((?:self|params|children|related|indexes|old|item)?\.\w[^{}]*?)\s*-?\}\}`)
	braces      = regexp.MustCompile(`\{\s*(self` + way + `)\s*\}`)
)

// lookalike returns the part of a text that looks like an expression and is not, and the expression that was
// probably meant. Both are empty for other texts. In a command line it looks only for $(…) with the names of
// variables, which neither shells nor containers use.
func (f *fitter) lookalike(path []string, text string) (found, meant string) {
	forms := []*regexp.Regexp{parentheses}
	if !slices.ContainsFunc(path, isCommand) {
		forms = []*regexp.Regexp{bare, dollar, parentheses, doubled, braces}
	}
	for _, form := range forms {
		for _, at := range form.FindAllStringSubmatchIndex(text, -1) {
			found, meant := text[at[0]:at[1]], text[at[2]:at[3]]
			if at[0] > 0 && text[at[0]-1] == '$' {
				continue // $${…} and $$(…) are intended as text
			}
			if meant = f.meant(meant); meant != "" {
				return found, meant
			}
		}
	}
	return "", ""
}

// doubtful describes a part of a text that looks like an expression, with the one that was probably meant; empty
// for others.
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

// braced returns the part of a text that looks like another program's template, as {{ .Values.image }}, in a field
// that no other program fills in: the name and the labels of any object, and metadata and spec of built-in kinds,
// which the API server reads itself. Annotations, the environment of a container and the like may be for another
// program, so only Helm's words count there. Command lines, data and fields of other kinds may contain whole
// templates, so they are not checked.
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

// The braces of templates, and those of Helm alone.
var (
	anyBraces = regexp.MustCompile(`\{\{[^{}]*\}\}`)
	helms     = regexp.MustCompile(`\{\{[^{}]*\.(?:Values|Release|Chart)\.[^{}]*\}\}`)
)

// isFree reports whether a key of a built-in kind may have any text, for any program.
func isFree(key string) bool {
	return slices.Contains([]string{"annotations", "env", "description", "openAPIV3Schema", "httpHeaders", "volumeAttributes", "options", "parameters"}, key)
}

// doubt warns of a text that looks like an expression.
func (f *fitter) doubt(path []string, found string) {
	f.doubts = append(f.doubts, &shape.Misfit{Path: path, Message: found + " (or, if it is meant so, ${'…'} around it)", Warning: true})
}

// isCommand reports whether a key has a command line.
func isCommand(key string) bool {
	return slices.Contains([]string{"command", "args", "script", "entrypoint"}, key)
}

// foreign reports whether a text is in another program's language with similar signs. Texts of several lines, such
// as scripts and templates, are never checked.
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

// meant returns the expression for a path in another form; empty if the text probably means something else.
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
		expr.Current: f.schemas.Current,
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

// inJSON returns the usual JSON name of a Go field, as tls for TLS and secretName for SecretName.
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

// kindOf returns the kind of an object's template; empty if it is computed.
func kindOf(t *expr.Template) schema.GroupVersionKind {
	tree, _ := t.Plain.(map[string]any)
	version, _ := tree["apiVersion"].(string)
	kind, _ := tree["kind"].(string)
	return schema.FromAPIVersionAndKind(version, kind)
}

// isOwn reports whether the object is of a built-in kind, as far as that is known.
func (f *fitter) isOwn() bool {
	if f.schemas.Kinds == nil || f.kind.Empty() {
		return false
	}
	kind, _ := f.schemas.Kinds.Kind(f.kind) // others report the error
	return kind.Own
}
