// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// step is one thing that happens, as data: a script can be read, and steps of it be left out.
type step struct {
	what, name string
	edit       edit
	n          int
	wait       time.Duration
	program    program
}

// String writes it on a line.
func (s step) String() string {
	out := fmt.Sprint("\t", s.what)
	for _, part := range []struct {
		holds bool
		text  string
	}{
		{s.name != "", s.name}, {s.edit.field != "", s.edit.String()}, {s.n > 0, fmt.Sprint(s.n)},
		{s.wait > 0, s.wait.String()}, {s.program != nil, "\n" + s.program.String()},
	} {
		if part.holds {
			out += " " + part.text
		}
	}
	return out
}

// edit is a person's change of a field; without a value the field is taken away.
type edit struct {
	field string
	value any
}

// String writes it as an assignment.
func (e edit) String() string { return fmt.Sprintf("%s=%v", e.field, e.value) }

func (e edit) make(o *unstructured.Unstructured) {
	path := strings.Split(e.field, ".")
	if e.value == nil {
		unstructured.RemoveNestedField(o.Object, path...)
		return
	}
	_ = unstructured.SetNestedField(o.Object, e.value, path...) // these are maps on every object
}

func newEdit(r *rand.Rand) edit {
	switch r.IntN(4) {
	case 0:
		return edit{"spec.color", pick[any](r, "red", "blue")}
	case 1:
		return edit{"metadata.labels.tier", pick[any](r, "gold", nil)}
	}
	return edit{"spec.size", int64(r.IntN(4))}
}

// objects are the objects of a script.
var objects = []string{"one", "two"}

// newScript is what happens to the program's objects. It ends at rest.
func newScript(r *rand.Rand, d mode, p program) []step {
	script := []step{{what: "create", name: "one", edit: newEdit(r)}}
	versions := []program{p}
	for i := range 6 + r.IntN(12) {
		s := step{
			what: pick(r, "edit", "edit", "edit", "edit", "there and back", "there and back unseen", "blue for a while", "edits unseen", "edit and crash", "edit, and the answer is lost",
				"edit, and writes fail", "edit while a handler runs", "edit while a handler runs, and a listing", "edits unseen until a listing", "edit, and replace by what was", "export", "replace", "replace", "copy", "delete", "restore", "create",
				"rest", "rest", "rest", "restart", "kill", "stop", "start", "start", "wait", "wait", "upgrade", "upgrade", "roll back"),
			name: pick(r, "one", "one", "two"), edit: newEdit(r),
		}
		switch s.what {
		case "edit and crash":
			s.n = 1 + r.IntN(3)
		case "wait":
			s.wait = pick(r, time.Second, 5*time.Second, 20*time.Second)
		case "upgrade":
			p = p.next(r, d, i)
			versions = append(versions, p)
			s.program = p
		case "roll back":
			if len(versions) > 1 {
				versions = versions[:len(versions)-1]
			}
			p = versions[len(versions)-1]
			s.program = p
		case "export", "replace", "copy", "delete", "restore":
			s.edit = edit{}
		}
		if slices.Contains([]string{"rest", "restart", "kill", "stop", "start", "wait", "upgrade", "roll back"}, s.what) {
			s.name, s.edit = "", edit{}
		}
		script = append(script, s)
	}
	return append(script, step{what: "start"}, step{what: "rest"}, step{what: "restart"}, step{what: "rest"})
}

// play lets one step happen.
func (m *model) play(s step) {
	m.say("%s", s)
	switch s.what {
	case "rest", "start", "restart", "upgrade", "roll back", "stop", "kill", "export":
	default:
		defer m.locked(func() { m.resting = false })
	}
	if s.name == "" {
		m.playProcess(s)
	} else {
		m.playObject(s)
	}
	m.Settle()
	m.wrote()
}

func (m *model) playProcess(s step) {
	switch s.what {
	case "wait":
		m.Advance(s.wait)
	case "rest":
		m.rest()
	case "restart":
		m.leave()
		m.begin(m.program)
	case "upgrade", "roll back":
		m.leave()
		m.begin(s.program)
	case "stop":
		m.leave()
	case "kill":
		m.kill()
	case "start":
		if !m.runs {
			m.begin(m.program)
		}
	}
}

// playObject is playProcess for steps that happen to an object. One that is not there, or is on its way out, is
// left alone.
func (m *model) playObject(s step) {
	o := m.Get(scene.Foos, "default", s.name)
	switch {
	case s.what == "create" && o == nil:
		m.create(s.name, s.edit)
	case s.what == "restore" && m.exports[s.name] != nil:
		m.remove(s.name, o)
		m.Settle()
		m.restore(s.name, m.exports[s.name])
	case o == nil || o.GetDeletionTimestamp() != nil:
	case s.what == "delete":
		m.remove(s.name, o)
	case s.what == "export":
		m.exports[s.name] = exported(o)
	case s.what == "copy":
		other := objects[1-slices.Index(objects, s.name)]
		m.restore(other, exported(o))
	case s.what == "replace" && m.exports[s.name] != nil:
		m.replace(s.name, m.exports[s.name])
	default:
		m.playEdit(s, o)
	}
}

func (m *model) playEdit(s step, o *unstructured.Unstructured) {
	if s.edit.field == "" {
		return // there is nothing to replace it by
	}
	back := edit{s.edit.field, at(o.Object, s.edit.field)}
	switch s.what {
	case "edit":
		m.edit(s.name, s.edit)
	case "there and back":
		m.edit(s.name, s.edit)
		m.Settle()
		m.edit(s.name, back)
	case "blue for a while":
		m.edit(s.name, edit{"spec.color", "blue"})
		m.Settle()
		m.rest()
		m.edit(s.name, edit{"spec.color", "red"})
	case "edit, and replace by what was":
		was := exported(o)
		m.edit(s.name, s.edit)
		m.Settle()
		m.replace(s.name, was)
	case "there and back unseen", "edits unseen", "edits unseen until a listing":
		m.locked(func() { m.soft = true })
		m.HoldWatches(scene.Foos)
		m.edit(s.name, s.edit)
		if s.what != "there and back unseen" {
			back = edit{"spec.size", int64(1)}
		}
		m.edit(s.name, back)
		m.show(s.what == "edits unseen until a listing")
	case "edit and crash":
		if m.runs {
			m.trouble()
			m.Process.CrashAfter(s.n)
			m.edit(s.name, s.edit)
			m.Settle()
			m.kill()
			m.begin(m.program)
		}
	case "edit, and the answer is lost", "edit, and writes fail":
		m.locked(func() { m.excused = true })
		fails := scene.ErrAgain
		if s.what == "edit, and writes fail" {
			fails = apierrors.NewInternalError(scene.ErrAgain)
		}
		m.troubled(fails, s)
	case "edit while a handler runs", "edit while a handler runs, and a listing":
		listing := s.what == "edit while a handler runs, and a listing"
		once := func(name string) {
			if name == s.name && m.Get(scene.Foos, "default", name) != nil {
				m.meanwhile = nil
				if listing {
					m.HoldWatches(scene.Foos)
				}
				m.Update(scene.Foos, "default", name, s.edit.make)
				m.averted(name)
			}
		}
		m.locked(func() { m.meanwhile, m.soft = once, true })
		m.edit(s.name, edit{"spec.size", int64(3)})
		m.Settle()
		m.locked(func() { m.meanwhile = nil })
		m.show(listing)
	}
}

// show lets operators see what was held back: by its events, or only by a listing.
func (m *model) show(listing bool) {
	if listing {
		m.ExpireWatches(scene.Foos) // what was held back is lost
	}
	m.ReleaseWatches(scene.Foos)
}

// troubled makes a change while writes do not get there, or their answers do not come back.
func (m *model) troubled(err error, s step) {
	if s.what == "edit, and the answer is lost" {
		m.LoseNext("patch", scene.Foos)
		m.edit(s.name, s.edit)
		m.locked(func() { m.lost++ })
		return
	}
	end := []func() int{m.FailWhile("patch", scene.Foos, err), m.FailWhile("patch", scene.Foos+"/status", err)}
	m.edit(s.name, s.edit)
	m.Advance(time.Second)
	for _, each := range end {
		each()
	}
}

func (m *model) edit(name string, e edit) {
	m.Update(scene.Foos, "default", name, e.make)
	m.locked(func() { m.averted(name) })
}

func (m *model) create(name string, e edit) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"name": name, "labels": map[string]any{"app": "x"}},
		"spec": map[string]any{"size": int64(1), "color": "red"},
	}}
	e.make(o)
	m.born(m.Create(o))
}

// exported is an object as kubectl get -o yaml shows it and an editor leaves it.
func exported(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "finalizers", "generation", "managedFields"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(o.Object, "status")
	return o
}

// restore makes an object from an export, where there is none.
func (m *model) restore(name string, export *unstructured.Unstructured) {
	if m.Get(scene.Foos, "default", name) != nil {
		return
	}
	o := export.DeepCopy()
	o.SetName(name)
	m.born(m.Create(o))
}

// replace is kubectl replace.
func (m *model) replace(name string, export *unstructured.Unstructured) {
	m.replaced(name, export.GetAnnotations()[scene.StateAnnotation])
	m.Update(scene.Foos, "default", name, func(o *unstructured.Unstructured) {
		o.Object["spec"] = maps.Clone(export.DeepCopy().Object["spec"].(map[string]any))
		o.SetLabels(export.GetLabels())
		o.SetAnnotations(export.GetAnnotations())
	})
	m.locked(func() { m.averted(name) })
}
