// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// expressions are the compiled expressions of a process.
type expressions struct {
	mu  sync.Mutex
	all map[string]*expr.Program
}

// compile compiles an expression about objects.
func (r *runner) compile(text string) (*expr.Program, error) {
	variables := r.variables()
	key := strings.Join(variables, " ") + "\n" + text
	r.suite.programs.mu.Lock()
	defer r.suite.programs.mu.Unlock()
	if p := r.suite.programs.all[key]; p != nil {
		return p, nil
	}
	compiler, err := r.suite.cel()
	if err == nil {
		compiler, err = compiler.With(variables...)
	}
	if err != nil {
		return nil, err
	}
	p, err := compiler.Predicate(text)
	if err != nil {
		return nil, err
	}
	r.suite.programs.all[key] = p
	return p, nil
}

// reserved are the variables that expressions have anyway.
var reserved = []string{expr.Self, expr.Old, expr.Diff, expr.Cause, expr.Event, expr.Params, expr.Now, expr.Children, expr.Related, expr.Indexes, expr.Handlers}

// variables are the resources of the cluster.
func (r *runner) variables() (out []string) {
	for _, served := range r.server.All() {
		if name := served.GVR.Resource; !slices.Contains(out, name) && !slices.Contains(reserved, name) {
			out = append(out, name)
		}
	}
	return slices.Sorted(slices.Values(out))
}

// holds evaluates an expression. Self is an object that it is about, or nil.
func (r *runner) holds(p *expr.Program, self *unstructured.Unstructured) (bool, error) {
	scope, err := r.scope(p, self)
	if err != nil {
		return false, err
	}
	return p.Bool(scope)
}

// deciding has a line for each part of an expression that decided its answer.
func (r *runner) deciding(p *expr.Program, self *unstructured.Unstructured) (out []string) {
	scope, err := r.scope(p, self)
	if err != nil {
		return nil
	}
	for _, v := range p.Explain(scope, false).Values {
		out = append(out, v.Text+" is "+v.Value)
	}
	return out
}

// scope is what an expression sees.
func (r *runner) scope(p *expr.Program, self *unstructured.Unstructured) (expr.Scope, error) {
	vars := map[string]any{}
	for _, name := range r.variables() {
		if !p.Uses(name) {
			continue
		}
		all, err := r.all(name)
		if err != nil {
			return expr.Scope{}, err
		}
		vars[name] = all
	}
	if self == nil {
		self = &unstructured.Unstructured{Object: map[string]any{}}
	}
	return expr.Scope{Subject: &dsl.Subject{Object: self}, Vars: vars}, nil
}

// all returns the objects of a resource by their names; those in other namespaces than default have it before a slash.
func (r *runner) all(name string) (map[string]any, error) {
	served, err := r.resource(name)
	if err != nil {
		return nil, err
	}
	list, err := r.list(served)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, o := range list {
		_, key, _ := strings.Cut(nameOf(name, o.GetNamespace(), o.GetName()), "/")
		out[key] = o.Object
	}
	return out, nil
}

var mention = regexp.MustCompile(`\b([a-z]+)\["([^"]+)"\]`)

// mentioned shows the deciding parts of an expression, the objects that it names, and the names of all objects of the
// resources that it names.
func (r *runner) mentioned(p *expr.Program, text string) string {
	out := r.deciding(p, nil)
	for _, m := range mention.FindAllStringSubmatch(text, -1) {
		name := m[1] + "/" + m[2]
		if p, err := r.place(name); err == nil {
			o, err := r.get(p)
			switch {
			case err == nil && o == nil:
				out = append(out, name+" does not exist"+r.near(p))
			case err == nil:
				out = append(out, name+":\n  "+strings.ReplaceAll(shownObject(o), "\n", "\n  "))
			}
		}
	}
	for _, name := range r.variables() {
		if regexp.MustCompile(`\b`+name+`\b[^\["]`).MatchString(text+" ") && !strings.Contains(text, name+`["`) {
			if all, err := r.all(name); err == nil {
				out = append(out, fmt.Sprintf("%s: %s", name, listed(sortedKeys(all))))
			}
		}
	}
	return strings.Join(slices.Compact(out), "\n")
}

// namedMost is how many names a failure lists.
const namedMost = 20

// listed lists names for people, the first of many.
func listed(names []string) string {
	if len(names) <= namedMost {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(names[:namedMost], ", "), len(names)-namedMost)
}
