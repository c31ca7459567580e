// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

// route is a way to run an operator: in one namespace, as a user, until the test ends.
type route func(t *testing.T, ns string, user *cluster.User) *cluster.Lines

// routes are the ways to run a sample: its YAML by the program, and the same written in Go. Both
// have to behave the same.
func routes(sample string, inGo func() *dsl.Operator) map[string]route {
	return map[string]route{
		"YAML": byProgram(sample),
		"Go": func(t *testing.T, ns string, user *cluster.User) *cluster.Lines {
			op := inGo()
			op.Scope.Namespaces = []string{ns}
			return cluster.Run(t, op, engine.Settings{Config: user.Config()}).Lines
		},
	}
}

// byProgram runs a sample by its program. Its log has each attempt, as that of [cluster.Run].
func byProgram(sample string) route {
	return func(t *testing.T, ns string, user *cluster.User) *cluster.Lines {
		program := plane.Operator(t, cluster.Launch{
			Main: sampleMain(sample), Config: user.Config(),
			Args: []string{"run", "--config", "samples/" + sample + "/operator.yaml", "-n", ns, "--zap-log-level=debug"},
		})
		t.Cleanup(func() {
			if exit := program.Stop(t); exit.Code != 0 {
				t.Errorf("the program ended with exit code %d", exit.Code)
			}
		})
		program.Await(t, "operator starts")
		return program.Lines
	}
}

// eventRule lets an operator send Events.
func eventRule() rbacv1.PolicyRule {
	return cluster.Rule("events.k8s.io", "events", "create", "patch")
}

// fooRules are the rights that samples/foo needs, and no more.
func fooRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		cluster.Rule("samplecontroller.k8s.io", "foos", "get", "list", "watch"),
		cluster.Rule("samplecontroller.k8s.io", "foos/status", "patch"),
		cluster.Rule("apps", "deployments", "get", "list", "watch", "create", "patch"),
		cluster.Rule("", "configmaps", "get", "create", "update"), // the register
		eventRule(),
	}
}

// fooRoutes are the three ways in which kubernetes/sample-controller is written here.
func fooRoutes() map[string]route {
	ways := routes("foo", handlers.FooOperator)
	ways["YAML alone"] = func(t *testing.T, ns string, user *cluster.User) *cluster.Lines {
		user.AllowIn(t, ns, cluster.Rule("apps", "deployments", "delete")) // apply takes away what is wanted no more
		return byProgram("foo-yaml")(t, ns, user)
	}
	return ways
}

// awaitEvent waits for an Event about an object that was seen at least so many times.
func awaitEvent(t *testing.T, ns, name, reason string, times int32) *corev1.Event {
	t.Helper()
	w, err := plane.Kubernetes().CoreV1().Events(ns).Watch(t.Context(), metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.name": name, "reason": reason}.String(),
	})
	if err != nil {
		t.Fatalf("watching Events: %v", err)
	}
	defer w.Stop()
	late := time.After(cluster.Patience)
	for {
		select {
		case change, open := <-w.ResultChan():
			if !open {
				t.Fatalf("the watch of Events ended before there was %s of %s", reason, name)
			}
			if event, is := change.Object.(*corev1.Event); is && seen(event) >= times {
				return event
			}
		case <-late:
			t.Fatalf("no Event %s of %s came %d times", reason, name, times)
		}
	}
}

func seen(event *corev1.Event) int32 {
	if event.Series == nil {
		return 1
	}
	return event.Series.Count
}

// mustLogNoError fails the test when a log has lines of errors, but for those with these texts.
func mustLogNoError(t *testing.T, lines *cluster.Lines, but ...string) {
	t.Helper()
	errors := append(lines.Errors(), lines.With("unable to decode an event from the watch stream")...)
	errors = slices.DeleteFunc(errors, func(line string) bool {
		return slices.ContainsFunc(but, func(text string) bool { return strings.Contains(line, text) })
	})
	if len(errors) > 0 {
		t.Errorf("errors were logged:\n%s", strings.Join(errors, "\n"))
	}
}

// decode reads an object into a struct.
func decode(t *testing.T, o *unstructured.Unstructured, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		t.Fatalf("decoding %s: %v", o.GetName(), err)
	}
}

// eventually asks until met, for what only a read shows. The text is what there was instead. It rests four times as long as
// asking took, so that tests which run kubectl do not take a core while they wait.
func eventually(t *testing.T, what string, met func() (bool, string)) {
	t.Helper()
	late := time.After(cluster.Patience)
	for {
		begun := time.Now()
		is, instead := met()
		if is {
			return
		}
		select {
		case <-time.After(max(20*time.Millisecond, 4*time.Since(begun))):
		case <-late:
			t.Fatalf("waiting for %s: not in time: %s", what, instead)
		}
	}
}
