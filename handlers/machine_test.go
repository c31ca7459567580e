// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const machineFoos = "foos.v1.example.com"

// machineHead is what comes before the states of a machine.
const machineHead = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: demo}
resources:
  - resource: foos.v1.example.com
    owns: [configmaps.v1]
    machine:
      allowCycles: true
`

// machineIn is an operator whose Foos have a machine with these states, and perhaps more.
func machineIn(t *testing.T, states string) *dsl.Operator {
	t.Helper()
	op, err := config.Parse("operator.yaml", []byte(machineHead+states), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// startMachine starts an operator, with one Foo called me.
func startMachine(c *kit.Cluster, op *dsl.Operator) *kit.Process {
	c.Serve(kit.Resource{Name: machineFoos, Kind: "Foo"})
	p := c.Start(op)
	c.Create("{apiVersion: example.com/v1, kind: Foo, metadata: {name: me, namespace: default}, spec: {colour: green}}")
	c.Settle()
	return p
}

// text is the text that a path leads to in an object, nothing where there is no object.
func text(o *unstructured.Unstructured, path string) string {
	if o == nil {
		return ""
	}
	out, _, _ := unstructured.NestedString(o.Object, strings.Split(path, ".")...)
	return out
}

func spec(c *kit.Cluster, resource, name string, value any, path ...string) {
	c.Update(resource, "default", name, func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			panic(err)
		}
	})
	c.Settle()
}

func wish(c *kit.Cluster, resource, name, key, state string) {
	c.Update(resource, "default", name, func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{key: state}) })
	c.Settle()
}

const twoStatesOneChild = `
      states:
        - name: Green
          enter: {apply: {config: {apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {colour: green}}}}
          transitions: [{to: Red, when: self.spec.colour == 'red'}]
        - name: Red
          during:
            apply:
              config: {apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {colour: red}}
              more: {apiVersion: v1, kind: ConfigMap, metadata: {name: more}, data: {of: "${children.config.data.colour}"}}
          transitions: [{to: Green, when: self.spec.colour == 'green'}]
`

func TestAChildOfSeveralStatesIsAsTheStateSaysThatTheObjectIsIn(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		p := startMachine(c, machineIn(t, twoStatesOneChild))
		config := func() *unstructured.Unstructured { return c.Get("configmaps.v1", "default", "config") }
		see := func(when, want string) {
			t.Helper()
			if got := text(config(), "data.colour"); got != want {
				t.Errorf("%s the child is %q, want %q", when, got, want)
			}
		}
		see("at first", "green")
		uid := config().GetUID()
		spec(c, "configmaps.v1", "config", "blue", "data", "colour")
		see("made once, after an edit,", "blue")
		spec(c, machineFoos, "me", "red", "spec", "colour")
		see("in the other state", "red")
		if got := text(c.Get("configmaps.v1", "default", "more"), "data.of"); got != "red" {
			t.Errorf("the child beside it is of %q", got)
		}
		spec(c, "configmaps.v1", "config", "blue", "data", "colour")
		see("kept, after an edit,", "red")
		spec(c, machineFoos, "me", "green", "spec", "colour")
		see("in the first state once more", "green")
		if config().GetUID() != uid {
			t.Error("it was recreated on the way")
		}
		if c.Get("configmaps.v1", "default", "more") == nil {
			t.Error("what the other state has made is gone, though that is left and not dropped")
		}
		p.Writes()
		p.Restart()
		c.Advance(5 * time.Minute)
		if writes := p.Writes(); len(writes) > 0 {
			t.Errorf("a restart wrote %v", writes)
		}
	})
}

func TestWhatADroppedStateHasMadeIsTakenAway(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		p := startMachine(c, machineIn(t, twoStatesOneChild))
		spec(c, machineFoos, "me", "red", "spec", "colour")
		spec(c, machineFoos, "me", "green", "spec", "colour")
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		c.Start(machineIn(t, `
      states:
        - name: Green
          enter: {apply: {config: {apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {colour: green}}}}
          terminal: true
`))
		c.Advance(5 * time.Minute)
		if c.Get("configmaps.v1", "default", "config") == nil || c.Get("configmaps.v1", "default", "more") != nil {
			t.Error("want what the state makes that there is, and not what the dropped one has made")
		}
	})
}

func TestChildrenOfAMachineInOtherNamespacesGoWithTheirObject(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Create("{apiVersion: v1, kind: Namespace, metadata: {name: other}}")
		startMachine(c, machineIn(t, `
      states:
        - name: One
          enter: {apply: {far: {ownership: labelled, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: far, namespace: other}}}}}
          terminal: true
      deletion:
        - {name: Holding, transitions: [{to: Gone, when: "self.metadata.annotations['go'] == 'yes'"}]}
        - {name: Gone, terminal: true}
`))
		if c.Get("configmaps.v1", "other", "far") == nil {
			t.Fatal("there is no child")
		}
		c.Delete(machineFoos, "default", "me")
		c.Advance(time.Minute)
		if me := c.Get(machineFoos, "default", "me"); text(me, "status.state") != "Holding" || c.Get("configmaps.v1", "other", "far") == nil {
			t.Fatalf("want the object held, with its child, in the first state of deletion; found %v", me)
		}
		wish(c, machineFoos, "me", "go", "yes")
		c.Advance(time.Minute)
		if c.Get(machineFoos, "default", "me") != nil || c.Get("configmaps.v1", "other", "far") != nil {
			t.Error("the object, or its child, is there still")
		}
	})
}

func TestEnterOfANewObjectSeesItsState(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		startMachine(c, machineIn(t, `
      states:
        - name: One
          enter: {apply: {config: {apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {state: "${self.status.state}"}}}}
          terminal: true
`))
		if got := text(c.Get("configmaps.v1", "default", "config"), "data.state"); got != "One" {
			t.Errorf("it sees the state %q", got)
		}
	})
}

// sampleOf loads a sample, with its resource served and one object of it, called me.
func sampleOf(t *testing.T, c *kit.Cluster, name, resource, kind, spec string) {
	t.Helper()
	op, err := config.Load([]string{filepath.Join("..", "samples", name, "operator.yaml")}, handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	c.Serve(kit.Resource{Name: resource, Kind: kind})
	c.Start(op)
	c.Create("{apiVersion: samples.handwerk.dev/v1alpha1, kind: " + kind + ", metadata: {name: me, namespace: default}, spec: " + spec + "}")
	c.Settle()
}

func TestApprovalExpiresAfterADay(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		const changes = "changes.v1alpha1.samples.handwerk.dev"
		sampleOf(t, c, "approval", changes, "Change", "{settings: {a: b}}")
		c.Advance(24*time.Hour - time.Minute)
		if got := text(c.Get(changes, "default", "me"), "status.state"); got != "Proposed" {
			t.Errorf("a minute before its time it is %s", got)
		}
		c.Advance(2 * time.Minute)
		if got := text(c.Get(changes, "default", "me"), "status.state"); got != "Expired" {
			t.Errorf("after its time it is %s", got)
		}
		wish(c, changes, "me", "approval.handwerk.dev/goto", "Proposed")
		wish(c, changes, "me", "approval.handwerk.dev/goto", "Approved")
		me := c.Get(changes, "default", "me")
		if text(me, "status.state") != "Applied" || c.Get("configmaps.v1", "default", "me") == nil {
			t.Errorf("after it was approved: %v", me)
		}
	})
}

// TestAnApprovalIsForWhatWasProposed edits a change after it was approved, and before it is made.
func TestAnApprovalIsForWhatWasProposed(t *testing.T) {
	const changes, settings, goTo = "changes.v1alpha1.samples.handwerk.dev", "configmaps.v1", "approval.handwerk.dev/goto"
	edit := func(o *unstructured.Unstructured) {
		o.Object["spec"] = map[string]any{"settings": map[string]any{"colour": "red"}}
	}
	for name, between := range map[string]func(c *kit.Cluster){
		"at the same time": func(c *kit.Cluster) {
			c.Update(changes, "default", "me", func(o *unstructured.Unstructured) {
				edit(o)
				o.SetAnnotations(map[string]string{goTo: "Approved"})
			})
		},
		"while it cannot be made": func(c *kit.Cluster) {
			c.Create("{apiVersion: v1, kind: ConfigMap, metadata: {name: me, namespace: default}}")
			wish(c, changes, "me", goTo, "Approved")
			c.Update(changes, "default", "me", edit)
			c.Settle()
			c.Delete(settings, "default", "me")
		},
	} {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				sampleOf(t, c, "approval", changes, "Change", "{settings: {colour: green}}")
				between(c)
				c.Advance(time.Minute)
				if me := c.Get(changes, "default", "me"); text(me, "status.state") != "Proposed" || c.Get(settings, "default", "me") != nil {
					t.Errorf("it is %s, and made: %v", text(me, "status.state"), c.Get(settings, "default", "me"))
				}
				wish(c, changes, "me", goTo, "Approved")
				if got := text(c.Get(settings, "default", "me"), "data.colour"); got != "red" {
					t.Errorf("approved once more, the colour is %q", got)
				}
			})
		})
	}
}

func TestRolloutGoesOnAfterItsPauseAndBackWhenPodsAreNotReadyInTime(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		const releases = "releases.v1alpha1.samples.handwerk.dev"
		sampleOf(t, c, "rollout", releases, "Release", "{image: a, replicas: 4}")
		// become plays the controller of Deployments.
		become := func(name string) {
			c.Update("deployments.v1.apps", "default", name, func(o *unstructured.Unstructured) {
				n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
				o.Object["status"] = map[string]any{
					"observedGeneration": o.GetGeneration(), "replicas": n, "readyReplicas": n, "availableReplicas": n, "updatedReplicas": n,
					"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
				}
			})
			c.Settle()
		}
		see := func(when, state, stable string) {
			t.Helper()
			me := c.Get(releases, "default", "me")
			if text(me, "status.state") != state || text(me, "status.stable") != stable {
				t.Errorf("%s it is %s with %s, want %s with %s", when, text(me, "status.state"), text(me, "status.stable"), state, stable)
			}
		}
		become("me")
		see("at first", "Stable", "a")
		spec(c, releases, "me", "b", "spec", "image")
		see("with another image", "Canary", "a")
		become("me-canary")
		see("with a Pod", "Paused", "a")
		c.Advance(11 * time.Minute)
		see("after the pause", "Half", "a")
		become("me-canary")
		see("with half of the Pods", "Promoting", "b")
		become("me")
		see("with all Pods", "Stable", "b")
		if c.Get("deployments.v1.apps", "default", "me-canary") != nil {
			t.Error("the canary is there still")
		}
		spec(c, releases, "me", "c", "spec", "image")
		see("with an image that does not work", "Canary", "b")
		c.Advance(6 * time.Minute)
		see("after its time", "RolledBack", "b")
		spec(c, releases, "me", "d", "spec", "image")
		see("with a third image", "Canary", "b")
	})
}

func TestJobMachineRunsOnceMore(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		const tasks = "tasks.v1alpha1.samples.handwerk.dev"
		sampleOf(t, c, "job-machine", tasks, "Task", "{image: a}")
		var way []string
		see := func() {
			if state := text(c.Get(tasks, "default", "me"), "status.state"); len(way) == 0 || way[len(way)-1] != state {
				way = append(way, state)
			}
		}
		end := func(kind string) {
			spec(c, "jobs.v1.batch", "me", map[string]any{"startTime": "2026-01-01T00:00:00Z"}, "status")
			see()
			spec(c, "jobs.v1.batch", "me", []any{map[string]any{"type": kind, "status": "True"}}, "status", "conditions")
			see()
		}
		see()
		end("Failed")
		wish(c, tasks, "me", "job-machine.handwerk.dev/goto", "Retrying")
		c.Advance(time.Minute)
		see()
		c.Advance(time.Hour)
		see()
		wish(c, tasks, "me", "job-machine.handwerk.dev/goto", "Retrying")
		c.Advance(time.Second)
		see()
		end("Complete")
		want := []string{"Pending", "Running", "Failed", "Pending", "TimedOut", "Pending", "Running", "Finished"}
		if !slices.Equal(way, want) {
			t.Errorf("it went %v, want %v", way, want)
		}
	})
}

// TestActionsOfAStateAreForWhatTheyRead holds that a machine is not woken by what its expressions do not read, whatever its actions
// are: they would be done again for anybody's change. A function may read anything.
func TestActionsOfAStateAreForWhatTheyRead(t *testing.T) {
	const looks = "\n      states: [{name: Here, terminal: true, during: "
	for name, one := range map[string]struct {
		during      string
		read, other bool
	}{
		"event":                {"{event: {reason: Painted, message: 'It is ${self.spec.colour}.'}}", true, false},
		"log":                  {"{log: {message: 'It is ${self.spec.colour}.'}}", true, false},
		"delete":               {"[{apply: {config: {apiVersion: v1, kind: ConfigMap, metadata: {name: config}}}}, {name: off, when: self.spec.colour == 'red', delete: '${children.config}'}]", true, false},
		"an event of nothing":  {"{event: {reason: Painted, message: It is painted.}}", false, false},
		"steps":                {"[{set: {status: {colour: '${self.spec.colour}'}}}, {event: {reason: Painted, message: It is painted.}}]", true, false},
		"a call of a function": {"{call: counted}", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			registry := handlers.Standard()
			registry.Func("counted", func(context.Context, *dsl.Request) error { return nil })
			op, err := config.Parse("operator.yaml", []byte(machineHead+looks+one.during+"}]"), registry)
			if err != nil {
				t.Fatal(err)
			}
			view := op.View(op.Resources()[0].Machines()[0])
			if got := view.Holds([]dsl.Path{{"spec", "colour"}}); got != one.read {
				t.Errorf("the machine looks at spec.colour: %v (it looks at %s)", got, view)
			}
			if got := view.Holds([]dsl.Path{{"spec", "size"}}); got != one.other {
				t.Errorf("the machine looks at spec.size: %v (it looks at %s)", got, view)
			}
		})
	}
}

// TestAnEventOfAStateIsNotRepeatedForWhatItDoesNotSay is the same for somebody who reads Events.
func TestAnEventOfAStateIsNotRepeatedForWhatItDoesNotSay(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		startMachine(c, machineIn(t, `
      states: [{name: Here, terminal: true, during: {event: {reason: Painted, message: "It is ${self.spec.colour}."}}}]`))
		reported := func() (n int64) {
			for _, e := range c.Events() {
				n += e.Count
			}
			return n
		}
		spec(c, machineFoos, "me", int64(3), "spec", "size")
		spec(c, machineFoos, "me", "yes", "metadata", "labels", "paused")
		c.Advance(time.Minute)
		if n := reported(); n != 1 {
			t.Errorf("it was reported %d times", n)
		}
		spec(c, machineFoos, "me", "red", "spec", "colour")
		c.Advance(time.Minute)
		if n := reported(); n != 2 {
			t.Errorf("it was reported %d times after its colour has changed", n)
		}
	})
}
