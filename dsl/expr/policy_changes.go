// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	policycel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/handwerk-dev/handwerk/dsl"
)

// PolicyEntry is a field that a rule sets.
type PolicyEntry struct {
	Path dsl.Path
	// Value is the value of the field. A value of null removes the field.
	Value *Template
	// Text: the field is a text, as labels are, so numbers and the like are written as texts.
	Text bool
	// When is an expression of admission policies: while it is false, the field stays. Empty means that it is always set.
	When string
}

const (
	// changesVariable is the variable of a policy with a list of changes, each with op, path and value.
	changesVariable = "changes"
	// patchOfChanges makes a JSON patch of the changes. It cannot fail: the API server shows people the whole expression that does. The
	// patch is not made in the variable, which may not have its type.
	patchOfChanges = "variables." + changesVariable + ".map(c, JSONPatch{op: c.op, path: c.path, value: c.value})"
)

// PolicyChanges returns an expression of admission policies that gives a list of JSON patch operations, and the variables that it
// reads. The operations set the fields, and make missing parents. A parent that is no map is replaced by one, as in a merge patch.
// Variables are named after fields, so an error names the field. The error says why the API server cannot evaluate the changes.
func PolicyChanges(entries []PolicyEntry, variables map[string]string) ([]dsl.PolicyVariable, string, error) {
	c := &policyChanges{variables: variables}
	entries = slices.Clone(entries)
	var out []string
	for i := range entries {
		e := &entries[i]
		if e.When != "" {
			e.When = c.variable("when_"+e.name(), e.When)
		}
		text, err := c.change(*e)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", strings.Join(e.Path, "."), err)
		}
		out = append(out, listWhen(e.When, text))
	}
	text := strings.Join(append(parentsOf(entries), out...), " +\n")
	c.out = append(c.out, dsl.PolicyVariable{Name: changesVariable, Expression: text})
	return c.out, patchOfChanges, c.runs()
}

// policyChanges makes the variables of a policy that changes objects.
type policyChanges struct {
	variables map[string]string
	out       []dsl.PolicyVariable
}

// notInName matches the characters that the name of a variable cannot have.
var notInName = regexp.MustCompile(`[^A-Za-z0-9_]`)

// name returns a name for a variable about the field, as in spec_size.
func (e PolicyEntry) name() string {
	return notInName.ReplaceAllString(strings.TrimPrefix(strings.Join(e.Path, "_"), "metadata_"), "_")
}

// variable returns a reference to the variable with an expression. It has a name, or one with a number behind it.
func (c *policyChanges) variable(name, text string) string {
	unique := name
	for n := 2; ; n++ {
		at := slices.IndexFunc(c.out, func(v dsl.PolicyVariable) bool { return v.Name == unique || v.Expression == text })
		if at < 0 {
			c.out = append(c.out, dsl.PolicyVariable{Name: unique, Expression: text})
			return "variables." + unique
		}
		if c.out[at].Expression == text {
			return "variables." + c.out[at].Name
		}
		unique = fmt.Sprintf("%s_%d", name, n)
	}
}

// runs compiles the variables and the patch as the API server does.
func (c *policyChanges) runs() error {
	compiler, err := policycel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return err
	}
	options := policycel.OptionalVariableDeclarations{HasParams: true}
	for _, v := range c.out {
		if err := policyError(compiler.CompileAndStoreVariable(policyVariable{v}, options, environment.NewExpressions)); err != nil {
			return err
		}
	}
	options.HasPatchTypes = true
	return policyError(compiler.CompileCELExpression(policyText{patchOfChanges, cel.ListType(cel.ObjectType("JSONPatch"))}, options, environment.NewExpressions))
}

// policyVariable is a variable for the compiler of the API server.
type policyVariable struct{ dsl.PolicyVariable }

// GetName returns the name.
func (v policyVariable) GetName() string { return v.Name }

// GetExpression returns the text.
func (v policyVariable) GetExpression() string { return v.Expression }

// ReturnTypes returns the type: any.
func (policyVariable) ReturnTypes() []*cel.Type { return []*cel.Type{cel.AnyType} }

// change returns an expression of the changes that set the field, or remove it if its value is null.
func (c *policyChanges) change(e PolicyEntry) (string, error) {
	remove := listWhen(exists(e.Path), "["+operation("remove", e.Path, "null")+"]")
	if e.Value.Plain == nil {
		return remove, nil
	}
	value, err := e.Value.Policy(c.variables)
	if err != nil {
		return "", err
	}
	if len(e.Value.Programs()) > 0 {
		value = c.variable(e.name(), value)
	}
	written, null := value, ""
	if of := e.Value.whole(); of != nil {
		kind := of.ast.GetType(of.ast.Expr().ID())
		if e.Text && kind.Kind() != cel.StringKind {
			written = "string(" + value + ")"
		}
		if kind.Kind() == cel.DynKind || kind.Kind() == cel.AnyKind || kind.Kind() == cel.NullTypeKind {
			null = "dyn(" + value + ") == null"
		}
	}
	if null != "" && e.Text {
		written = "string(dyn(" + value + "))" // the type of null alone has no text
	}
	add := "[" + operation("add", e.Path, written) + "]"
	if null == "" {
		return add, nil
	}
	return fmt.Sprintf("(%s ? %s : %s)", null, remove, add), nil
}

// operation returns an expression of a change. Values of a map must have one type, so all are of any.
func operation(op string, path dsl.Path, value string) string {
	return fmt.Sprintf(`{"op": dyn(%q), "path": dyn(%s), "value": dyn(%s)}`, op, strconv.Quote(path.Pointer()), value)
}

// whole returns the program of a template that is one expression, whose value may be of any type; nil for others.
func (t *Template) whole() *Program {
	if _, isText := t.Plain.(string); isText && len(t.Pieces) == 1 && !t.Pieces[0].isPlain() {
		return t.Pieces[0].Program
	}
	return nil
}

// parentsOf returns expressions that make the missing parents of fields, the outer ones first, each once. All objects have metadata.
func parentsOf(entries []PolicyEntry) (out []string) {
	whens, paths := map[string][]string{}, []dsl.Path{}
	for _, e := range entries {
		for n := 1; n < len(e.Path) && e.Value.Plain != nil; n++ {
			at := e.Path[:n].Pointer()
			if whens[at] == nil && at != "/metadata" {
				paths = append(paths, e.Path[:n])
			}
			whens[at] = append(whens[at], e.When)
		}
	}
	for _, path := range paths {
		at := path.Pointer()
		text := fmt.Sprintf("(%s ? [] : [%s])", isMap(path), operation("add", path, "{}"))
		when := ""
		if !slices.Contains(whens[at], "") {
			slices.Sort(whens[at])
			when = "(" + strings.Join(slices.Compact(whens[at]), ") || (") + ")"
		}
		out = append(out, listWhen(when, text))
	}
	return out
}

// listWhen returns an expression that gives a list, and gives an empty one while a condition is false.
func listWhen(when, list string) string {
	if when == "" {
		return list
	}
	return fmt.Sprintf("(%s ? %s : [])", when, list)
}

// exists returns an expression that says whether the object has a field.
func exists(path dsl.Path) string {
	last := len(path) - 1
	has := fmt.Sprintf("%q in object%s", path[last], selected(path[:last]))
	if in := isMap(path[:last]); in != "" {
		return in + " && " + has
	}
	return has
}

// isMap returns an expression that says whether the object has a map in a field. It is empty for the object itself and for metadata.
func isMap(path dsl.Path) string {
	if len(path) == 0 || len(path) == 1 && path[0] == "metadata" {
		return ""
	}
	return fmt.Sprintf("%s && type(object%s) == map", exists(path), selected(path))
}

// selected returns the steps of a path as CEL selects them.
func selected(path dsl.Path) (out string) {
	for _, step := range path {
		out += "[" + strconv.Quote(step) + "]"
	}
	return out
}
