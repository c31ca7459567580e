// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/crd"
	"github.com/handwerk-dev/handwerk/handlers"
)

// withMachine is a configuration whose one resource has a machine, and perhaps more.
func withMachine(machine string) string {
	return "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: demo}\nresources:\n  - resource: foos.v1.example.com\n    schema:\n" +
		"      kind: Foo\n      spec: {image: string, go: boolean}\n      status: {seen: integer}\n" + machine
}

// parsed is the resource of such a configuration.
func parsed(t *testing.T, text string, registry *actions.Registry) *dsl.Resource {
	t.Helper()
	op, err := config.Parse("demo.yaml", []byte(text), registry)
	if err != nil {
		t.Fatal(err)
	}
	return op.Resources()[0]
}

const everyFieldOfAMachine = `
    machine:
      name: rollout
      initial: Pending
      initialDeletion: Draining
      allowCycles: true
      history: 0
      migrate: {Old: Pending}
      when: self.spec.go
      labels: {tier: gold}
      annotations: {example.com/a: b}
      timeout: 1m
      backoff: {initial: 2s, max: 1m}
      onFailure: release
      was: machine
      needs: [{resource: secrets.v1, verbs: [get]}]
      states:
        - {name: Idle, transitions: [{to: Pending, when: true}]}
        - name: Pending
          doc: Waits.
          condition: Waiting
          ready: true
          enter: {log: {message: hello}}
          during: [{log: {message: one}}, {name: two, log: {message: two}}]
          stay: {atMost: 10m, then: Failed}
          retries: {atMost: 0, then: Failed}
          transitions:
            - {to: Idle, when: "${self.spec.go &&\n self.spec.image == 'a'}"}
            - {to: Idle, when: "!self.spec.go", why: It stops.}
            - {to: Failed, manual: true}
        - {name: Failed, terminal: true, failed: true}
      deletion:
        - {name: Draining, transitions: [{to: Gone}]}
        - {name: Gone, terminal: true}
`

func TestEveryFieldOfAMachineArrives(t *testing.T) {
	r := parsed(t, withMachine(everyFieldOfAMachine), handlers.Standard())
	ready := true
	want := dsl.Machine{
		Name: "rollout", Initial: "Pending", InitialDeletion: "Draining", AllowCycles: true, History: -1, Migrate: map[string]string{"Old": "Pending"},
		States: []dsl.State{
			{Name: "Idle", Transitions: []dsl.Transition{{To: "Pending"}}},
			{
				Name: "Pending", Doc: "Waits.", Condition: "Waiting", Ready: &ready, Enter: nothing, During: nothing, Action: "enter: log; during: log, log",
				Stay: &dsl.Stay{AtMost: 10 * time.Minute, Then: "Failed"}, Retries: &dsl.Budget{Then: "Failed"},
				Transitions: []dsl.Transition{
					{To: "Idle", When: always, Why: "self.spec.go && self.spec.image == 'a'"},
					{To: "Idle", When: always, Why: "It stops."},
					{To: "Failed", Manual: true},
				},
			},
			{Name: "Failed", Terminal: true, Failed: true},
		},
		Deletion: []dsl.State{{Name: "Draining", Transitions: []dsl.Transition{{To: "Gone"}}}, {Name: "Gone", Terminal: true}},
	}
	h := r.Handlers()[0]
	if diff := cmp.Diff(&want, h.Machine, operators); diff != "" {
		t.Errorf("machine (-want +got):\n%s", diff)
	}
	got := []any{h.ID, h.Was, h.Timeout, h.Backoff, h.Release, h.When != nil, h.Labels, h.Annotations, h.On(dsl.Delete), h.On(dsl.Update), h.Declared}
	options := []any{
		"rollout", []string{"machine"}, time.Minute, dsl.Backoff{Initial: 2 * time.Second, Max: time.Minute}, true, true,
		[]dsl.Match{{Key: "tier", Value: "gold"}}, []dsl.Match{{Key: "example.com/a", Value: "b"}}, true, true, true,
	}
	if diff := cmp.Diff(options, got); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if len(r.Handlers()) != 1 {
		t.Errorf("%d handlers, want the machine alone", len(r.Handlers()))
	}
}

func always(*dsl.Subject) (bool, error) { return true, nil }

const machineWithChildren = `
    machine:
      states:
        - name: One
          condition: Going
          enter:
            - apply: {config: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}"}, data: {image: "${self.spec.image}"}}}
            - {name: second, when: self.spec.go, apply: {job: {apiVersion: batch/v1, kind: Job, metadata: {name: job}}}}
          during: {set: {status: {seen: 1}}}
          transitions: [{to: Two, when: children.job.status.active > 0 && related.zones.size() > 0}]
        - name: Two
          enter: {apply: {config: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}"}}}}
          terminal: true
    related:
      - {name: zones, resource: configmaps.v1}
`

func TestWhatIsKnownOfTheStatesGoesToTheHandler(t *testing.T) {
	r := parsed(t, withMachine(machineWithChildren), handlers.Standard())
	h := r.Handlers()[0]
	if want := []string{"machine.One.enter", "machine.One.second", "machine.Two.enter"}; !slices.Equal(h.Makers, want) {
		t.Errorf("it makes children as %v, want %v", h.Makers, want)
	}
	var makes []string
	for _, c := range r.Makes {
		makes = append(makes, c.Name+" "+c.Kind.Kind)
	}
	if want := []string{"config ConfigMap", "job Job"}; !slices.Equal(makes, want) {
		t.Errorf("children %v, want %v, of two states each once", makes, want)
	}
	if h.Known.Withdraws {
		t.Error("what a state has made would be taken away with what it was made for")
	}
	if !h.On(dsl.Child) || !h.On(dsl.RelatedChange) || h.On(dsl.Delete) || h.On(dsl.IndexChange) {
		t.Errorf("causes %v", h.Causes)
	}
	view := h.View()
	for _, path := range []string{"spec.image", "spec.go", "status.state", "status.stateSince", "status.stateUID"} {
		if p, _ := dsl.ParsePath(path); !view.Only || !view.Holds([]dsl.Path{p}) {
			t.Errorf("it does not look at %s: %s", path, view)
		}
	}
	if view.Holds([]dsl.Path{{"spec", "other"}}) {
		t.Errorf("it looks at too much: %s", view)
	}
	for _, path := range []dsl.Path{{"status", "seen"}, {"status", "history"}} {
		if !slices.ContainsFunc(h.Known.Sets, func(set dsl.Path) bool { return slices.Equal(set, path) }) {
			t.Errorf("%s is not among the fields that it is known to set", path)
		}
	}
	if want := []string{"Going", "Ready"}; !slices.Equal(h.Known.Conditions, want) {
		t.Errorf("conditions %v, want %v and none of apply", h.Known.Conditions, want)
	}
	var needs []string
	for _, n := range h.Needs {
		needs = append(needs, strings.Join(n.Verbs, ",")+" "+n.Text())
	}
	slices.Sort(needs)
	if want := "get,create,patch,delete ConfigMap of v1; get,create,patch,delete Job of batch/v1"; !h.Declared || !strings.Contains(strings.Join(slices.Compact(needs), "; "), want) {
		t.Errorf("needs %q (declared: %v), want %q among them", needs, h.Declared, want)
	}
}

func TestWhatIsNotThereYetDoesNotHoldYet(t *testing.T) {
	machine := parsed(t, withMachine(`
    machine:
      states:
        - {name: One, transitions: [{to: Two, when: self.status.seen > 0}]}
        - {name: Two, transitions: [{to: Three, when: self.spec.image.matches(self.spec.image)}]}
        - {name: Three, terminal: true}
`), handlers.Standard()).Machines()[0].Machine
	of := func(spec, status map[string]any) *dsl.Subject {
		return &dsl.Subject{Object: &unstructured.Unstructured{Object: map[string]any{"spec": spec, "status": status}}}
	}
	first, second := machine.States[0].Transitions[0].When, machine.States[1].Transitions[0].When
	for name, test := range map[string]struct {
		when  dsl.Predicate
		of    *dsl.Subject
		holds bool
		err   string
	}{
		"it holds":                  {first, of(nil, map[string]any{"seen": int64(1)}), true, ""},
		"it does not hold":          {first, of(nil, map[string]any{"seen": int64(0)}), false, ""},
		"the field is not there":    {first, of(nil, map[string]any{}), false, ""},
		"the status is not there":   {first, &dsl.Subject{Object: &unstructured.Unstructured{Object: map[string]any{}}}, false, ""},
		"the spec lacks a field":    {second, of(map[string]any{}, nil), false, "evaluating when: self.spec.image is not set"},
		"it cannot be worked out":   {second, of(map[string]any{"image": "("}, nil), false, "evaluating when: "},
		"the value is of a no kind": {first, of(nil, map[string]any{"seen": "many"}), false, "evaluating when: "},
	} {
		t.Run(name, func(t *testing.T) {
			holds, err := test.when(test.of)
			if holds != test.holds || (err == nil) != (test.err == "") || err != nil && !strings.HasPrefix(err.Error(), test.err) {
				t.Errorf("when() = %v, %v, want %v, %q", holds, err, test.holds, test.err)
			}
		})
	}
}

// counting is a registry with functions that write down that they were called; the second one fails.
func counting(t *testing.T, called *[]string) *actions.Registry {
	t.Helper()
	r := handlers.Standard()
	for _, name := range []string{"demo.One", "demo.Two"} {
		r.Function(dsl.Function{Name: name, Needs: []dsl.Need{}, Func: func(context.Context, *dsl.Request) error {
			if *called = append(*called, name); name == "demo.Two" && len(*called) < 3 {
				return errors.New("not yet")
			}
			return nil
		}})
	}
	return r
}

func TestStepsOfEnterAreNotRepeatedAndThoseOfDuringAre(t *testing.T) {
	var called []string
	machine := parsed(t, withMachine(`
    machine:
      states:
        - name: One
          enter: [{call: demo.One}, {call: demo.Two}]
          during: [{call: demo.One}, {call: demo.Two}]
          terminal: true
`), counting(t, &called)).Machines()[0].Machine
	for name, test := range map[string]struct {
		code dsl.Func
		want []string
	}{
		"enter":  {machine.States[0].Enter, []string{"demo.One", "demo.Two", "demo.Two"}},
		"during": {machine.States[0].During, []string{"demo.One", "demo.Two", "demo.One", "demo.Two"}},
	} {
		t.Run(name, func(t *testing.T) {
			called = nil
			r := &dsl.Request{}
			if err := test.code(t.Context(), r); err == nil || err.Error() != "step 2 of 2: not yet" {
				t.Errorf("the first attempt: %v, want the error of the second step", err)
			}
			if err := test.code(t.Context(), r); err != nil {
				t.Errorf("the second attempt: %v", err)
			}
			if diff := cmp.Diff(test.want, called); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChildrenWithoutOwnerReferenceAreDeletedByAHandlerOfTheMachine(t *testing.T) {
	const states = `
    machine:
      states:
        - name: One
          enter: {apply: {far: {ownership: labelled, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: far, namespace: other}}}}}
          terminal: true
`
	const deletion = "      deletion: [{name: Gone, terminal: true}]\n"
	for name, test := range map[string]struct {
		text    string
		deletes bool
		after   []string
		release bool
	}{
		"without states of deletion":   {states, false, nil, false},
		"after the states of deletion": {states + deletion, true, []string{"machine"}, false},
		"beside one that is let go":    {states + deletion + "      onFailure: release\n", true, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			list := parsed(t, withMachine(test.text), handlers.Standard()).Handlers()
			if len(list) != 2 || list[1].ID != "machine.leave" || !slices.Equal(list[1].Causes, []dsl.Cause{dsl.Delete}) {
				t.Fatalf("handlers %+v, want machine.leave for cause delete as the second", list)
			}
			if list[0].On(dsl.Delete) != test.deletes || !slices.Equal(list[1].After, test.after) || list[1].Release != test.release {
				t.Errorf("the machine runs for deletions: %v; the other after %v, released: %v", list[0].On(dsl.Delete), list[1].After, list[1].Release)
			}
		})
	}
}

func TestTheCRDHasWhatMachinesKeep(t *testing.T) {
	r := parsed(t, withMachine(`
    machine:
      - {states: [{name: One, terminal: true}]}
      - {name: rollout, states: [{name: One, terminal: true}]}
`), handlers.Standard())
	_, schema, err := crd.Objects(r.CRD)
	if err != nil {
		t.Fatal(err)
	}
	status := schema.Properties["status"]
	rollout := status.Properties["rollout"]
	for _, name := range []string{"state", "stateSince", "stateEntered", "stateFailures", "stateUID", "history"} {
		if _, has := status.Properties[name]; !has {
			t.Errorf("status has no %s", name)
		}
		if _, has := rollout.Properties[name]; !has {
			t.Errorf("status.rollout has no %s", name)
		}
	}
	if _, has := status.Properties["seen"]; !has {
		t.Error("the author's own field is gone")
	}
	versions, _, _ := unstructured.NestedSlice(r.CRD, "spec", "versions")
	columns, _, _ := unstructured.NestedSlice(versions[0].(map[string]any), "additionalPrinterColumns")
	var got []string
	for _, c := range columns {
		column := c.(map[string]any)
		got = append(got, column["name"].(string)+" "+column["jsonPath"].(string)+" "+column["type"].(string))
	}
	want := []string{
		"State .status.state string", "Since .status.stateSince date",
		"Rollout .status.rollout.state string", "Rollout Since .status.rollout.stateSince date", "Age .metadata.creationTimestamp date",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

func TestColumnsOfTheAuthorAreAllColumns(t *testing.T) {
	text := strings.Replace(withMachine("    machine: {states: [{name: One, terminal: true}]}\n"), "kind: Foo", "kind: Foo\n      columns: [{name: Image, path: .spec.image}]", 1)
	versions, _, _ := unstructured.NestedSlice(parsed(t, text, handlers.Standard()).CRD, "spec", "versions")
	columns, _, _ := unstructured.NestedSlice(versions[0].(map[string]any), "additionalPrinterColumns")
	if len(columns) != 2 {
		t.Errorf("columns %v, want the author's and the age", columns)
	}
}

// TestAStanzaOfAFaultMendsIt pastes what a fault says where it says.
func TestAStanzaOfAFaultMendsIt(t *testing.T) {
	text := func(properties string) string {
		return "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: demo}\nresources:\n  - resource: foos.v1.example.com\n    schema:\n" +
			"      kind: Foo\n      openAPIV3Schema: {type: object, properties: " + properties + "}\n    machine: {name: rollout, states: [{name: One, terminal: true}]}\n"
	}
	for name, of := range map[string]struct{ given, around, below string }{
		"without a status":          {"{}", "the object", "%s"},
		"without a map of its name": {"{status: {type: object, properties: {}}}", "status", "{status: {type: object, properties: %s}}"},
		"with nothing in that":      {"{status: {type: object, properties: {rollout: {type: object, properties: {}}}}}", "status.rollout", "{status: {type: object, properties: {rollout: {type: object, properties: %s}}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("", []byte(text(of.given)), handlers.Standard())
			if err == nil {
				t.Fatal("no fault is reported")
			}
			_, stanza, found := strings.Cut(err.Error(), "(add to the properties of "+of.around+": ")
			stanza, _, closed := strings.Cut(stanza, "})")
			if !found || !closed {
				t.Fatalf("%v does not say what to add to %s", err, of.around)
			}
			mended := strings.Replace(of.below, "%s", stanza+"}", 1)
			if _, err := config.Parse("", []byte(text(mended)), handlers.Standard()); err != nil {
				t.Errorf("%s does not mend it: %v", mended, err)
			}
		})
	}
}
