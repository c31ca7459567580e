// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

// attempt is one handler with what it is given and what it has done.
type attempt struct {
	request *dsl.Request
	handler *dsl.Handler
	events  []string
	lines   []string
	deleted []string
	refuse  map[string]error
}

func (a *attempt) Event(kind dsl.EventType, reason, note string, args ...any) {
	a.events = append(a.events, fmt.Sprintf("%s %s: "+note, append([]any{kind, reason}, args...)...))
}

func (a *attempt) EventAbout(any, dsl.EventType, string, string, ...any) error {
	return errors.ErrUnsupported
}

// deleting is a client that can do nothing but delete.
type deleting struct {
	dsl.Client
	*attempt
}

func (d deleting) Delete(_ context.Context, resource, namespace, name, uid string) error {
	d.deleted = append(d.deleted, resource+" "+namespace+"/"+name+" "+uid)
	return d.refuse[name]
}

func (d deleting) DeleteObject(_ context.Context, o *unstructured.Unstructured) error {
	d.deleted = append(d.deleted, o.GroupVersionKind().GroupKind().String()+" "+o.GetNamespace()+"/"+o.GetName()+" "+string(o.GetUID()))
	return d.refuse[o.GetName()]
}

// prepared loads an operator with one handler, which is given as YAML, for an object.
func prepared(t *testing.T, handler, object string) *attempt {
	t.Helper()
	return preparedIn(t, "handlers", handler, object)
}

func preparedIn(t *testing.T, list, handler, object string) *attempt {
	t.Helper()
	text := "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: demo}\nresources:\n- resource: foos.v1.example.com\n  " +
		list + ":\n  - id: one\n" + indented(handler, "    ")
	registry := handlers.Standard()
	registry.Function(dsl.Function{Name: "test.Keep", Params: keepParams{}, Func: func(_ context.Context, r *dsl.Request) error {
		r.Patch.SetStatus("kept", map[string]any(r.Params))
		return nil
	}})
	op, err := config.Parse("test.yaml", []byte(text), registry)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	a := &attempt{handler: op.Resources()[0].Handlers()[0], refuse: map[string]error{}}
	o := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(object))
	if err == nil {
		err = utiljson.Unmarshal(data, &o.Object)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.SetAPIVersion("example.com/v1")
	o.SetKind("Foo")
	a.request = &dsl.Request{
		Subject: dsl.Subject{
			Object: o, Cause: dsl.Create, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Log: funcr.New(func(_, line string) { a.lines = append(a.lines, line) }, funcr.Options{Verbosity: 1}),
		},
		Patch: dsl.NewPatch(), Events: a, Client: deleting{attempt: a},
	}
	return a
}

type keepParams struct {
	Text  string `json:"text"`
	Count int    `json:"count"`
}

func indented(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by) + "\n"
}

func (a *attempt) run(t *testing.T) error {
	t.Helper()
	return a.handler.Func(t.Context(), a.request)
}

const foo = `
metadata: {name: f, namespace: ns, uid: u-1, labels: {old: "1"}}
spec: {replicas: 3, name: web, list: [a, b]}
`

func TestSetWorksOutWhatItWrites(t *testing.T) {
	type wanted struct {
		Object, Status map[string]any
		Conditions     []metav1.Condition
	}
	tests := map[string]struct {
		set  string
		want wanted
		err  string
	}{
		"an expression keeps its type, in a longer text it is text": {
			set:  `status: {replicas: "${self.spec.replicas}", text: "n=${self.spec.replicas}", literal: 7, at: "${now}"}`,
			want: wanted{Status: map[string]any{"replicas": int64(3), "text": "n=3", "literal": int64(7), "at": "2026-01-02T03:04:05Z"}},
		},
		"a field that needs what is not there is removed, the others are set": {
			set:  `status: {ip: "${self.status.ip}", deep: {none: "${self.?status.?x}", all: "${self.spec.list}"}}`,
			want: wanted{Status: map[string]any{"ip": nil, "deep": map[string]any{"none": nil, "all": []any{"a", "b"}}}},
		},
		"labels and annotations are text, and null removes": {
			set: `{labels: {replicas: "${self.spec.replicas}", old: null, "a.b/c": x}, annotations: {note: "${self.spec.name}!"}}`,
			want: wanted{Object: map[string]any{"metadata": map[string]any{
				"labels": map[string]any{"replicas": "3", "old": nil, "a.b/c": "x"}, "annotations": map[string]any{"note": "web!"},
			}}},
		},
		"fields of spec are set one by one": {
			set:  `spec: {size: "${self.spec.list.size()}", inner: {x: 1}, empty: {}}`,
			want: wanted{Object: map[string]any{"spec": map[string]any{"size": int64(2), "inner": map[string]any{"x": int64(1)}, "empty": map[string]any{}}}},
		},
		"a condition has a reason where none is given": {
			set: `conditions: [{type: Ready, status: "${self.spec.replicas > 5}", message: "${self.spec.replicas} there"}, {type: Known, status: true}]`,
			want: wanted{Conditions: []metav1.Condition{
				{Type: "Ready", Status: "False", Reason: "NotReady", Message: "3 there"}, {Type: "Known", Status: "True", Reason: "Known"},
			}},
		},
		"a condition whose expression comes upon nothing is unknown": {
			set: `conditions: [{type: Ready, status: "${self.status.ready}", reason: Asked, message: Hello.}, {type: Other, status: "${'Unknown'}"}]`,
			want: wanted{Conditions: []metav1.Condition{
				{Type: "Ready", Status: "Unknown", Reason: "Unresolved", Message: "Cannot be worked out: self.status is not set"},
				{Type: "Other", Status: "Unknown", Reason: "NotOther"},
			}},
		},
		"so is one that gives no value, and one whose when comes upon nothing": {
			set: `conditions: [{type: Ready, status: "${self.?status.?ready}"}, {type: Other, status: true, when: self.spec.none > 3}]`,
			want: wanted{Conditions: []metav1.Condition{
				{Type: "Ready", Status: "Unknown", Reason: "Unresolved", Message: "Cannot be worked out: its status has no value"},
				{Type: "Other", Status: "Unknown", Reason: "Unresolved", Message: "Cannot be worked out: self.spec.none is not set"},
			}},
		},
		"a reason and a message that come upon nothing leave the status as it is": {
			set: `conditions: [{type: Ready, status: false, reason: "${self.spec.none}", message: "${self.spec.none} there"}]`,
			want: wanted{Conditions: []metav1.Condition{
				{Type: "Ready", Status: "False", Reason: "Unresolved", Message: "Cannot be worked out: self.spec.none is not set"},
			}},
		},
		"a condition whose when is false is left as it is": {
			set:  `conditions: [{type: Ready, status: true, when: self.spec.replicas > 3}, {type: Other, status: true, when: self.spec.replicas > 2}]`,
			want: wanted{Conditions: []metav1.Condition{{Type: "Other", Status: "True", Reason: "Other"}}},
		},
		"an entry whose when is false is left as it is, with all below it": {
			set: `{status: {a: 1, b: {c: 2, d: "${self.spec.name}"}, e: 3}, labels: {x.y/z: a, w: b}, annotations: {n: c}, spec: {size: 4, name: n},
  when: {status.a: "false", status.b: self.spec.replicas > 3, status.e: self.spec.replicas > 2, 'labels["x.y/z"]': "false", annotations: "false", spec.size: "false", spec: "true"}}`,
			want: wanted{
				Status: map[string]any{"e": int64(3)},
				Object: map[string]any{"metadata": map[string]any{"labels": map[string]any{"w": "b"}}, "spec": map[string]any{"name": "n"}},
			},
		},
		"one whose when cannot be worked out is left, and the handler fails after the others are set": {
			set:  `{status: {a: 1, b: 2}, when: {status.a: self.spec.none > 3}}`,
			want: wanted{Status: map[string]any{"b": int64(2)}},
			err:  "evaluating set.when.status.a: self.spec.none is not set",
		},
		"one that cannot be worked out fails, after the others are set": {
			set:  `status: {bad: "${int(self.spec.name)}", good: 1}`,
			want: wanted{Status: map[string]any{"good": int64(1)}},
			err:  "evaluating set.status.bad",
		},
		"a condition's status is no text": {
			set: `conditions: [{type: Ready, status: "${self.spec.name}"}]`, err: "its status is \"web\"",
		},
		"a condition's reason is one word": {
			set: `conditions: [{type: Ready, status: true, reason: "${self.spec.name + ' is'}"}]`, err: `its reason is "web is"`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := prepared(t, "set:\n"+indented(tt.set, "  "), foo)
			err := a.run(t)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if err := a.request.Patch.Err(); err != nil {
				t.Error(err)
			}
			got := wanted{Object: a.request.Patch.Object, Status: a.request.Patch.Status, Conditions: a.request.Patch.Conditions}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetTakesAwayWhatAMapHasNoMore(t *testing.T) {
	a := prepared(t, "set: {status: {zones: '${self.spec.zones}', other: {kept: '${1}'}}}", `
metadata: {name: f, namespace: ns, uid: u-1}
spec: {zones: {a: {x: 1}, c: {x: 3}}}
status: {zones: {a: {x: 1, old: o}, b: {x: 2}}, other: {theirs: y}}
`)
	if err := a.run(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"zones": map[string]any{"a": map[string]any{"x": int64(1), "old": nil}, "b": nil, "c": map[string]any{"x": int64(3)}},
		"other": map[string]any{"kept": int64(1)},
	}
	if diff := cmp.Diff(want, a.request.Patch.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestSetSendsNoLabelThatIsNone(t *testing.T) {
	a := prepared(t, `set: {status: {kept: 1}, labels: {good: "${self.spec.name}", bad: "${self.spec.name + ' & co'}", map: "${self.spec}"}, annotations: {any: "a b", list: "${[1]}"}}`, foo)
	err := a.run(t)
	for _, want := range []string{
		`setting labels.bad: "web & co" is no value of a label: `, "setting labels.map: want text, found a list or a map",
		"setting annotations.list: want text, found a list or a map",
	} {
		if err == nil || !dsl.IsPermanent(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	want := map[string]any{"metadata": map[string]any{"labels": map[string]any{"good": "web"}, "annotations": map[string]any{"any": "a b"}}}
	if diff := cmp.Diff(want, a.request.Patch.Object); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

func TestActionsReportWhetherTheyReadOld(t *testing.T) {
	for handler, want := range map[string]bool{
		"causes: [update]\nlog: {message: hello}":                                               true,
		"causes: [update]\nlog: {message: 'was ${old.spec.replicas}'}":                          false,
		"causes: [update]\nwhen: size(diff) > 1\nlog: {message: hello}":                         false,
		"causes: [update]\ncall: foo.Status":                                                    false,
		"causes: [update]\nsteps: [{log: {message: a}}, {log: {message: b}}]":                   true,
		"causes: [update]\nsteps: [{log: {message: '${old.spec.name}'}}, {log: {message: b}}]":  false,
		"causes: [update]\nsteps: [{log: {message: b}}, {call: foo.Status}]":                    false,
		"causes: [update]\nsteps: [{when: size(diff) > 1, log: {message: b}}]":                  false,
		"causes: [update]\nsteps: [{when: cause == 'update', log: {message: b}}]":               true,
		"causes: [update]\nevent: {reason: Changed, message: 'from ${diff[0].old}'}":            false,
		"causes: [update]\nset: {status: {a: '${old.spec.name}'}}":                              false,
		"causes: [update]\nset: {status: {a: '${self.spec.name}'}}":                             true,
		"causes: [update]\ndelete: ${self}":                                                     true,
		"causes: [update]\nold: false\ncall: foo.Status":                                        true,
		"causes: [update]\ncall: test.Keep\nwith: {text: '${self.spec.name}', count: 1}":        false,
		"causes: [update]\nset: {conditions: [{type: Ready, status: '${old == null}'}]}":        false,
		"causes: [update]\nset: {labels: {a: '${self.spec.name}'}, annotations: {b: '${1+1}'}}": true,
	} {
		if got := prepared(t, handler, foo).handler.NoOld; got != want {
			t.Errorf("%s: NoOld is %v", handler, got)
		}
	}
}

func TestEventAndLogSayWhatTheExpressionsGive(t *testing.T) {
	a := prepared(t, `event: {type: Warning, reason: Scaled, message: "100% of ${self.spec.replicas} for ${self.metadata.name}"}`, foo)
	if err := a.run(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Warning Scaled: 100% of 3 for f"}, a.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	a = prepared(t, `log: {message: "${cause} of ${self.spec.name}", level: debug, values: {replicas: "${self.spec.replicas}", b: [1]}}`, foo)
	if err := a.run(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`"level"=1 "msg"="create of web" "b"=[1] "replicas"=3 "handwerk.quoted"=true`}, a.lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestDeleteTakesObjectsAndNothingElse(t *testing.T) {
	tests := map[string]struct {
		what string
		want []string
		err  string
	}{
		"the object itself, if it still is the same": {what: "${self}", want: []string{"foos.v1.example.com ns/f u-1"}},
		"nothing":                       {what: "${null}"},
		"a child that is not there":     {what: "${{}}"},
		"an optional that is not there": {what: "${self.?status.?x}"},
		"a list, of other kinds too": {
			what: `${[dyn(self), dyn({"apiVersion": dyn("networking.k8s.io/v1"), "kind": dyn("Ingress"), "metadata": dyn({"name": "i", "uid": "u-2"})})]}`,
			want: []string{"foos.v1.example.com ns/f u-1", "Ingress.networking.k8s.io /i u-2"},
		},
		"one that is on its way already": {
			what: `${{"apiVersion": dyn("v1"), "kind": dyn("Pod"), "metadata": dyn({"name": "p", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"})}}`,
		},
		"text is no object":       {what: "${self.metadata.name}", err: "want objects"},
		"an object without a uid": {what: `${{"apiVersion": dyn("v1"), "kind": dyn("Pod"), "metadata": dyn({"name": "p"})}}`, err: "whole objects"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := prepared(t, "delete: '"+tt.what+"'", foo)
			err := a.run(t)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || !dsl.IsPermanent(err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, a.deleted); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScheduleDeletesWhatTheListHas(t *testing.T) {
	a := preparedIn(t, "schedule", "cron: 0 3 * * *\ndelete: ${objects.filter(o, timestamp(o.metadata.creationTimestamp) < now - duration('24h'))}", foo)
	a.request.Objects = []*unstructured.Unstructured{}
	for name, at := range map[string]string{"young": "2026-01-02T00:00:00Z", "old": "2026-01-01T00:00:00Z"} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"name": name, "uid": name, "creationTimestamp": at}}}
		a.request.Objects = append(a.request.Objects, o)
	}
	a.refuse["old"] = errors.New("no")
	if err := a.run(t); err == nil || !strings.Contains(err.Error(), "deleting Foo /old: no") {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"foos.v1.example.com /old old"}, a.deleted); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	if !a.handler.ResourceWide || !a.handler.On(dsl.Timer) {
		t.Errorf("handler %+v", a.handler)
	}
}

func TestAStepOfAScheduleSeesTheObjectsInWhen(t *testing.T) {
	a := preparedIn(t, "schedule", "every: 1h\nsteps:\n- {when: size(objects) > 1, log: {message: many}}\n- {when: size(objects) > 0, log: {message: some}}", foo)
	a.request.Objects = []*unstructured.Unstructured{a.request.Object}
	if err := a.run(t); err != nil {
		t.Fatal(err)
	}
	if len(a.lines) != 1 || !strings.Contains(a.lines[0], "some") {
		t.Errorf("lines %v", a.lines)
	}
}

func TestStepsGoOnWhereTheyStopped(t *testing.T) {
	a := prepared(t, `
steps:
- event: {reason: First, message: first}
- {name: second, when: has(self.status), log: {message: left out}}
- delete: ${self}
- event: {reason: Last, message: last}`, foo)
	a.refuse["f"] = errors.New("not now")
	if err := a.run(t); err == nil || err.Error() != "step 3 of 4: deleting Foo ns/f: not now" {
		t.Errorf("error %v", err)
	}
	delete(a.refuse, "f")
	if err := a.run(t); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"Normal First: first", "Normal Last: last"}, a.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if a.request.Step != 4 || len(a.deleted) != 2 || len(a.lines) != 0 {
		t.Errorf("step %d, deleted %v, lines %v", a.request.Step, a.deleted, a.lines)
	}
	if want := "steps: event, log, delete, event"; a.handler.Known.Action != want {
		t.Errorf("described as %q", a.handler.Known.Action)
	}
}
