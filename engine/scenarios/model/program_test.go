// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// craft is one handler of a random program, as data: what it does follows from what it sees alone, so that
// the reference can say what it must have done.
type craft struct {
	id, kind string // create, update, both, level, delete
	// view is the field that it looks at, empty for the essence.
	view string
	// filter is which objects it sees: gold by label, red by color, empty for all; shaky is red, and fails at one question of
	// three.
	filter string
	// was are ids that it had in earlier versions.
	was []string
	// polls is after what time it asks to run again when it has succeeded, zero for never. A run that was asked for does not
	// ask.
	polls time.Duration
	after []string
	// fails is how many attempts fail before one succeeds, wait what lies between them, and retries how
	// many there are, or dsl.Unlimited.
	fails, retries int
	wait           time.Duration
	// picky: it fails for good while the size is 2.
	picky bool
	// wants is what it writes: "status", its view under its id where there is any, "copy", the color in spec.copy, or
	// "note", its view in a ConfigMap, with the client.
	wants string
}

// String writes it on a line.
func (c craft) String() string {
	out := []string{c.id, c.kind}
	add := func(holds bool, format string, args ...any) {
		if holds {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(c.view != "", "field %s", c.view)
	add(c.filter != "", "if %s", c.filter)
	add(len(c.was) > 0, "was %s", strings.Join(c.was, ","))
	add(c.polls > 0, "runs again after %s", c.polls)
	add(len(c.after) > 0, "after %s", strings.Join(c.after, ","))
	add(c.fails > 0, "fails %d times, each %s", c.fails, c.wait)
	add(c.retries != dsl.Unlimited, "has %d retries", c.retries)
	add(c.picky, "fails for good at size 2")
	add(c.wants != "", "writes %s", c.wants)
	return strings.Join(out, " ")
}

// edge: what it has handled is stored.
func (c craft) edge() bool { return c.kind != "level" && c.kind != "delete" }

func (c craft) creates() bool { return c.kind == "create" || c.kind == "both" }

func (c craft) causes() []dsl.Cause {
	return map[string][]dsl.Cause{
		"create": {dsl.Create}, "update": {dsl.Update}, "both": {dsl.Create, dsl.Update}, "level": {dsl.Reconcile}, "delete": {dsl.Delete},
	}[c.kind]
}

// when: it stores what it has handled, and has a when. A change that makes that true is one to try again for, also after a failure.
func (c craft) when() bool { return (c.filter == "red" || c.filter == "shaky") && c.edge() }

// asks: it has a when, and runs for updates.
func (c craft) asks() bool { return c.when() && c.kind != "create" }

// sees reports whether its filter holds.
func (c craft) sees(o map[string]any) bool {
	switch c.filter {
	case "gold":
		return at(o, "metadata.labels.tier") == "gold"
	case "red", "shaky":
		return at(o, "spec.color") == "red"
	}
	return true
}

// note is the name of the ConfigMap that it writes for an object.
func (c craft) note(object string) string { return "note-" + object + "-" + c.id }

// look is its view of an object, "null" where there is nothing of it.
func (c craft) look(o map[string]any) string {
	var seen any
	if c.view == "" {
		seen = []any{o["spec"], at(o, "metadata.labels")}
	} else {
		seen = at(o, c.view)
	}
	text, err := json.Marshal(seen)
	if err != nil {
		panic(err) // objects are JSON
	}
	return string(text)
}

// try is how an attempt comes out, by what it sees.
func (c craft) try(o map[string]any, attempt int) (err error, final bool) {
	switch {
	case c.picky && at(o, "spec.size") == int64(2):
		return dsl.Permanent(scene.ErrAgain), true
	case attempt <= c.fails:
		return dsl.Temporary(scene.ErrAgain, c.wait), c.retries != dsl.Unlimited && attempt > c.retries
	}
	return nil, true
}

// leaves is an object as the handler leaves it when it succeeds.
func (c craft) leaves(o map[string]any) map[string]any {
	out := &unstructured.Unstructured{Object: o}
	out = out.DeepCopy()
	switch {
	case c.wants == "status" && c.look(o) != "null":
		_ = unstructured.SetNestedField(out.Object, c.look(o), "status", c.id) // there is a map, or nothing
	case c.wants == "copy":
		_ = unstructured.SetNestedField(out.Object, at(o, "spec.color"), "spec", "copy")
	}
	return out.Object
}

// patch asks for what leaves says.
func (c craft) patch(r *dsl.Request) {
	switch {
	case c.wants == "status" && c.look(r.Object.Object) != "null":
		r.Patch.SetStatus(c.id, c.look(r.Object.Object))
	case c.wants == "copy":
		r.Patch.Set("spec.copy", at(r.Object.Object, "spec.color"))
	}
}

// at is what a path of an object leads to, nil where there is nothing.
func at(o map[string]any, path string) any {
	found, _ := dsl.MustParsePath(path).In(o)
	return found
}

// program is a version of an operator.
type program []craft

// String writes it with a handler on each line.
func (p program) String() string {
	var lines []string
	for _, c := range p {
		lines = append(lines, "\t"+c.String())
	}
	return strings.Join(lines, "\n")
}

// before returns the handler of an earlier or later version that this one is: it has its id, or one of them was renamed.
func (p program) before(c craft) (out craft, found bool) {
	if out, found = p.find(c.id); found {
		return out, true
	}
	i := slices.IndexFunc(p, func(o craft) bool { return slices.Contains(c.was, o.id) || slices.Contains(o.was, c.id) })
	if i < 0 {
		return craft{}, false
	}
	return p[i], true
}

func (p program) find(id string) (c craft, found bool) {
	i := slices.IndexFunc(p, func(c craft) bool { return c.id == id })
	if i < 0 {
		return craft{}, false
	}
	return p[i], true
}

// stores: what handlers have handled is kept on objects.
func (p program) stores() bool { return slices.ContainsFunc(p, craft.edge) }

// holds: some handler wants to see the object off.
func (p program) holds(o map[string]any) bool {
	return slices.ContainsFunc(p, func(c craft) bool { return c.kind == "delete" && c.sees(o) })
}

// secures: some handler that can always say so wants to see the object off.
func (p program) secures(o map[string]any) bool {
	return slices.ContainsFunc(p, func(c craft) bool { return c.kind == "delete" && c.filter != "shaky" && c.sees(o) })
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func newProgram(r *rand.Rand, d mode) program {
	var p program
	for range 2 + r.IntN(4) {
		p = append(p, p.newCraft(r, fmt.Sprint("h", len(p))))
	}
	return p
}

// newCraft is a handler that may join a program.
func (p program) newCraft(r *rand.Rand, id string) craft {
	c := craft{id: id, retries: dsl.Unlimited}
	c.kind = pick(r, "create", "update", "update", "both", "both", "level", "level", "delete")
	c.filter = pick(r, "", "", "", "gold", "red", "shaky")
	if r.IntN(3) == 0 {
		c.fails, c.wait, c.retries = 1+r.IntN(2), pick(r, time.Second, 30*time.Second), pick(r, dsl.Unlimited, dsl.Unlimited, 0, 1)
	}
	if c.kind == "delete" {
		c.retries = dsl.Unlimited
	} else {
		c.view = p.newView(r)
		c.picky = r.IntN(5) == 0
		c.wants = p.newWish(r, c)
		if r.IntN(5) == 0 {
			c.polls = pick(r, time.Second, 2*time.Minute)
		}
	}
	for _, other := range p {
		if (other.kind == "delete") == (c.kind == "delete") && r.IntN(4) == 0 {
			c.after = append(c.after, other.id)
		}
	}
	return c
}

// newView is the essence, a field of people or one that a handler writes.
func (p program) newView(r *rand.Rand) string {
	views := []string{"", "", "spec", "spec.size", "spec.size", "spec.color", "spec.copy", "metadata.labels"}
	for _, c := range p {
		if c.wants == "status" && !strings.HasPrefix(c.view, "status") {
			views = append(views, "status."+c.id, "status."+c.id)
		}
	}
	return pick(r, views...)
}

func (p program) newWish(r *rand.Rand, c craft) string {
	copies := slices.ContainsFunc(p, func(c craft) bool { return c.wants == "copy" })
	switch wish := pick(r, "", "status", "status", "copy", "note"); {
	case wish != "copy", !copies && (c.view == "" || c.view == "spec" || c.view == "spec.color"):
		return wish
	}
	return ""
}

// next is another version of the program: a handler looks elsewhere, is new, is renamed, or comes at another
// place.
func (p program) next(r *rand.Rand, d mode, version int) program {
	out := slices.Clone(p)
	i := r.IntN(len(out))
	switch r.IntN(5) {
	case 0:
		if out[i].kind != "delete" && out[i].wants != "copy" {
			out[i].view = pick(r, "", "spec", "spec.size", "spec.color", "metadata.labels")
		}
	case 1:
		out = append(out, p.newCraft(r, fmt.Sprint("n", version)))
	case 2:
		out[i].id = fmt.Sprint("r", version)
		for j := range out {
			out[j].after = slices.DeleteFunc(slices.Clone(out[j].after), func(id string) bool { return id == p[i].id })
		}
	case 3: // with a word about it
		was, now := out[i].id, fmt.Sprint("w", version)
		out[i].was, out[i].id = append(slices.Clone(out[i].was), was), now
		for j := range out {
			out[j].after = slices.Clone(out[j].after)
			if k := slices.Index(out[j].after, was); k >= 0 {
				out[j].after[k] = now
			}
		}
	case 4:
		if i > 0 && !slices.Contains(out[i].after, out[i-1].id) {
			out[i], out[i-1] = out[i-1], out[i]
		}
	}
	return out
}

// operator is the program as the engine runs it. Ask answers for filters that may fail.
func (p program) operator(d mode, do func(c craft, r *dsl.Request) error, ask func(c craft, o *unstructured.Unstructured) (bool, error)) *dsl.Operator {
	op := dsl.New("op")
	if d.scoped {
		op.Scope.Namespaces = []string{"default"}
	}
	op.Resource(scene.Foos, func(foo *dsl.Resource) {
		foo.Workers = 1
		if d.turns {
			foo.Lifecycle = dsl.OneByOne
		}
		if d.live {
			foo.Cache = dsl.CacheLive
		}
		for _, c := range p {
			options := []dsl.Option{dsl.After(c.after...), dsl.Retries(c.retries)}
			if len(c.was) > 0 {
				options = append(options, dsl.Was(c.was...))
			}
			if c.view != "" {
				options = append(options, dsl.Field(c.view))
			}
			switch c.filter {
			case "gold":
				options = append(options, dsl.Label("tier", "gold"))
			case "red", "shaky":
				options = append(options, dsl.When(func(r *dsl.Subject) (bool, error) { return ask(c, r.Object) }))
			}
			foo.On(c.causes(), c.id, func(_ context.Context, r *dsl.Request) error { return do(c, r) }, options...)
		}
	})
	return op
}
