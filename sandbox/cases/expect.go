// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// expect checks an expectation, all of it.
func (r *runner) expect(e *expectation) {
	r.cluster.Settle()
	r.collect()
	for _, name := range sortedKeys(e.Objects) {
		r.expectObject(e.at.Key("objects").Key(name), name, e.Objects[name])
	}
	for _, name := range sortedKeys(e.Conditions) {
		r.expectConditions(e.at.Key("conditions").Key(name), name, e.Conditions[name])
	}
	for _, name := range sortedKeys(e.State) {
		r.expectState(e.at.Key("state").Key(name), name, e.State[name])
	}
	for i, text := range e.CEL {
		at := e.at.Key("cel")
		if len(e.CEL) > 1 {
			at = at.Index(i)
		}
		r.expectTrue(at, text)
	}
	r.expectFailing(e)
	if e == r.c.Expect {
		r.expected = e.Failing
	}
	r.expectEvents(e)
	r.expectLog(e)
	r.expectRequests(e)
	r.expectCalls(e)
}

// find returns an object that is expected, or nil after a failure. The changes are those for the case that it does not exist.
func (r *runner) find(at form.Path, name string, changes ...Edit) (*unstructured.Unstructured, place) {
	p, err := r.place(name)
	if err != nil {
		r.fail(at, err.Error(), "")
		return nil, p
	}
	o, err := r.get(p)
	switch {
	case err != nil:
		r.fail(at, fmt.Sprintf("reading %s: %v", name, err), "")
	case o == nil:
		r.fail(at, name+" does not exist"+r.near(p), r.errorLines(), changes...)
	}
	return o, p
}

// expectObject checks an object: that it is absent, what an expression says of it, or fields of it.
func (r *runner) expectObject(at form.Path, name string, want any) {
	text, isText := want.(string)
	if isText && text == absent {
		p, err := r.place(name)
		if err != nil {
			r.fail(at, err.Error(), "")
			return
		}
		if o, err := r.get(p); err != nil || o != nil {
			r.fail(at, name+" is there, and is expected to be absent", present(o), edit(at, map[string]any{})...)
		}
		return
	}
	o, _ := r.find(at, name, edit(at, absent)...)
	switch {
	case o == nil:
	case isText:
		e, err := r.compile(text)
		if err != nil {
			r.fail(at, err.Error(), "")
			return
		}
		if holds, err := r.holds(e, o); err != nil {
			r.fail(at, fmt.Sprintf("%s: %s has no answer", name, text), err.Error())
		} else if !holds {
			r.fail(at, fmt.Sprintf("%s: this is false: %s", name, text), strings.Join(append(r.deciding(e, o), shownObject(o)), "\n"))
		}
	case !has(o.Object, want):
		r.fail(at, name+" is not as expected (- expected, + found)", difference(o.Object, want), edits(at, o.Object, want)...)
	}
}

// present says why an object may still be there.
func present(o *unstructured.Unstructured) string {
	if o != nil && o.GetDeletionTimestamp() != nil {
		return "it is being deleted, held by finalizers " + strings.Join(o.GetFinalizers(), ", ")
	}
	return ""
}

// shownObject is an object without its metadata, as YAML.
func shownObject(o *unstructured.Unstructured) string {
	tree := maps.Clone(o.Object)
	for _, key := range []string{"metadata", "apiVersion", "kind"} {
		delete(tree, key)
	}
	if len(tree) == 0 {
		return "(nothing but metadata)"
	}
	data, err := yaml.Marshal(tree)
	if err != nil {
		return compact(tree)
	}
	const most = 30
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(lines) > most {
		lines = append(lines[:most], "…")
	}
	return strings.Join(lines, "\n")
}

// expectConditions checks conditions of an object.
func (r *runner) expectConditions(at form.Path, name string, want map[string]condition) {
	o, _ := r.find(at, name)
	if o == nil {
		return
	}
	found := map[string]map[string]any{}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		if c, is := item.(map[string]any); is {
			found[fmt.Sprint(c["type"])] = c
		}
	}
	for _, kind := range sortedKeys(want) {
		r.expectCondition(at.Key(kind), name, kind, want[kind], found)
	}
}

func (r *runner) expectCondition(at form.Path, name, kind string, want condition, all map[string]map[string]any) {
	found, there := all[kind]
	switch {
	case want.absent && there:
		r.fail(at, fmt.Sprintf("%s has the condition %s, which is expected to be absent", name, kind), compact(found), edit(at, statusValue(fmt.Sprint(found["status"])))...)
	case want.absent:
	case !there:
		r.fail(at, fmt.Sprintf("%s has no condition %s", name, kind), "there are: "+strings.Join(sortedKeys(all), ", "), edit(at, absent)...)
	default:
		text := func(key string) string { s, _ := found[key].(string); return s }
		var lines []string
		var changes []Edit
		differs := func(key, wanted string, as func(a, b string) bool) {
			if wanted == "" || as(text(key), wanted) {
				return
			}
			lines = append(lines, "- "+key+": "+wanted, "+ "+key+": "+text(key))
			switch {
			case want.only:
				changes = edit(at, statusValue(text(key)))
			case key == "status":
				changes = edit(at.Key(key), statusValue(text(key)))
			default:
				changes = append(changes, edit(at.Key(key), text(key))...)
			}
		}
		equal := func(a, b string) bool { return a == b }
		differs("status", want.Status, equal)
		differs("reason", want.Reason, equal)
		differs("message", want.Message, strings.Contains)
		if len(lines) == 0 {
			return
		}
		r.fail(at, fmt.Sprintf("%s: the condition %s is not as expected (- expected, + found)", name, kind),
			strings.Join(lines, "\n")+fmt.Sprintf("\n  %s: %s", text("reason"), text("message")), changes...)
	}
}

// expectState checks the states of an object's machines.
func (r *runner) expectState(at form.Path, name string, want any) {
	o, p := r.find(at, name)
	if o == nil {
		return
	}
	books := r.books(p)
	byMachine, several := want.(map[string]any)
	place := func(machine string) form.Path {
		if several {
			return at.Key(machine)
		}
		return at
	}
	if !several {
		if len(books) != 1 {
			r.fail(at, fmt.Sprintf("%s has %d machines; want a map of machines and their states", name, len(books)), "")
			return
		}
		for machine := range books {
			byMachine = map[string]any{machine: want}
		}
	}
	for _, machine := range sortedKeys(byMachine) {
		path, known := books[machine]
		if !known {
			r.fail(at, fmt.Sprintf("%s has no machine %s; it has %s", name, machine, strings.Join(sortedKeys(books), ", ")), "")
			continue
		}
		state, _, _ := unstructured.NestedString(o.Object, path...)
		if state != fmt.Sprint(byMachine[machine]) {
			r.fail(at, fmt.Sprintf("%s: the state of %s is not as expected (- expected, + found)", name, machine),
				fmt.Sprintf("- %v\n+ %s\n%s", byMachine[machine], state, past(o, path)), edit(place(machine), state)...)
		}
	}
}

// books returns the paths of the states of a resource's machines, by their ids.
func (r *runner) books(p place) map[string][]string {
	out := map[string][]string{}
	for res, h := range r.program.op.Handlers() {
		if h.Machine != nil && res.Name.Resource == p.served.GVR.Resource && res.Name.Group == p.served.GVR.Group {
			out[h.Machine.ID()] = h.Machine.Field("state")
		}
	}
	return out
}

// past says which ways an object has gone.
func past(o *unstructured.Unstructured, state []string) string {
	path := append(slices.Clone(state[:len(state)-1]), "history")
	list, _, _ := unstructured.NestedSlice(o.Object, path...)
	var out []string
	for _, item := range list {
		if way, is := item.(map[string]any); is {
			out = append(out, fmt.Sprintf("  %v → %v: %v", way["from"], way["to"], way["why"]))
		}
	}
	return strings.Join(out, "\n")
}

// expectTrue checks an expression.
func (r *runner) expectTrue(at form.Path, text string) {
	e, err := r.compile(text)
	if err != nil {
		r.fail(at, err.Error(), "")
		return
	}
	holds, err := r.holds(e, nil)
	if err != nil {
		r.fail(at, "this has no answer: "+text, err.Error()+"\n"+r.mentioned(e, text))
	} else if !holds {
		r.fail(at, "this is false: "+text, r.mentioned(e, text))
	}
}

// tally compares how often something has happened with how often it is expected.
func tally[T fmt.Stringer](r *runner, at form.Path, what string, want counted, all []T, matches func(T) bool) {
	n := 0
	for _, one := range all {
		if matches(one) {
			n++
		}
	}
	if want.allows(n) {
		return
	}
	found := "not at all"
	switch {
	case n == 1:
		found = "once"
	case n > 1:
		found = fmt.Sprintf("%d times", n)
	}
	r.fail(at, fmt.Sprintf("%s: expected %s, found %s", what, want, found), titled("there were", all), want.edit(at, n)...)
}

// expectLog checks lines of the log since the last expectation.
func (r *runner) expectLog(e *expectation) {
	r.journal.mu.Lock()
	lines := slices.Clone(r.journal.lines[r.seen.lines:])
	r.seen.lines = len(r.journal.lines)
	r.journal.mu.Unlock()
	shown := slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l.level == "debug" })
	for i, want := range e.Log {
		all := shown
		if want.Level == "debug" {
			all = lines
		}
		name, err := r.normal(want.Object)
		if err != nil {
			r.fail(e.at.Key("log").Index(i), err.Error(), "")
			continue
		}
		tally(r, e.at.Key("log").Index(i), "log line "+described("message", want.Message, "handler", want.Handler, "object", want.Object, "level", string(want.Level)), want.counted, all, func(l line) bool {
			return (strings.Contains(l.message, want.Message) || strings.Contains(l.text("error"), want.Message)) &&
				is(want.Handler, l.text("handler")) && is(name, l.object()) && is(string(want.Level), string(l.level))
		})
	}
}

// expectRequests checks write requests since the last expectation.
func (r *runner) expectRequests(e *expectation) {
	all := r.writes[r.seen.writes:]
	r.seen.writes = len(r.writes)
	for i, want := range e.Requests {
		resource := want.Resource
		if name, sub, _ := strings.Cut(resource, "/"); name != "" {
			served, err := r.resource(name)
			if err != nil {
				r.fail(e.at.Key("requests").Index(i), err.Error(), "")
				continue
			}
			resource = strings.TrimSuffix(served.GVR.Resource+"/"+sub, "/")
		}
		tally(r, e.at.Key("requests").Index(i), "request "+described("verb", string(want.Verb), "resource", want.Resource, "name", want.Name), want.counted, all, func(w kit.Write) bool {
			return is(string(want.Verb), w.Verb) && is(resource, w.Resource) && is(want.Name, w.Name)
		})
	}
}

// expectCalls checks calls of functions since the last expectation.
func (r *runner) expectCalls(e *expectation) {
	r.journal.mu.Lock()
	all := slices.Clone(r.journal.calls[r.seen.calls:])
	r.seen.calls = len(r.journal.calls)
	r.journal.mu.Unlock()
	for i, want := range e.Calls {
		at := e.at.Key("calls").Index(i)
		var p place
		if want.Object != "" {
			var err error
			if p, err = r.place(want.Object); err != nil {
				r.fail(at, err.Error(), "")
				continue
			}
		}
		what := "call of " + want.Function
		if want.Object != "" {
			what += " for " + want.Object
		}
		if want.With != nil {
			what += " with " + compact(want.With)
		}
		tally(r, at, what, want.counted, all, func(c call) bool {
			return c.function == want.Function && (want.Object == "" || c.kind == p.served.Kind && c.namespace == p.namespace && c.name == p.name) &&
				(want.With == nil || has(c.params, want.With))
		})
	}
}

// is reports whether a value is the wanted one; nothing wanted is any.
func is(want, got string) bool { return want == "" || want == got }

// described are the wanted fields, as pairs of names and values.
func described(pairs ...string) string {
	var out []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, pairs[i]+": "+pairs[i+1])
		}
	}
	return "{" + strings.Join(out, ", ") + "}"
}

// normal is the name of an object as records have it.
func (r *runner) normal(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	p, err := r.place(name)
	return p.String(), err
}
