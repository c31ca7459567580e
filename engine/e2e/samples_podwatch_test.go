// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// watchStage is where podwatch or itemwatch is at work.
type watchStage struct {
	ns, kind string
	objects  *cluster.Objects
	// make returns an object of the kind.
	make   func(name string) *unstructured.Unstructured
	launch cluster.Launch
}

// TestPodWatchSample is client-go's workqueue example, shown by the log of the program.
func TestPodWatchSample(t *testing.T) {
	t.Parallel()
	ns, user := plane.Namespace(t), plane.User("podwatch")
	user.AllowIn(t, ns, cluster.Rule("", "pods", "get", "list", "watch", "patch"), eventRule())
	nodes := plane.Objects("nodes.v1", "").List(t)
	s := &watchStage{
		ns: ns, kind: "Pod", objects: plane.Objects("pods.v1", ns), make: podOn(nodes[0].GetName()),
		launch: cluster.Launch{Main: "samples/podwatch", Config: user.Config(), Args: []string{"run", "--config", hasty(t, "podwatch"), "-n", ns, "--zap-log-level=debug"}},
	}
	s.lives(t, "pods.v1", false)
}

// TestItemWatchSample is the same for a resource of the sample's own, which has a finalizer.
func TestItemWatchSample(t *testing.T) {
	t.Parallel()
	ns, user := plane.Namespace(t), plane.User("itemwatch")
	user.AllowIn(t, ns, cluster.Rule("podwatch.handwerk.dev", "items", "get", "list", "watch", "patch"), eventRule())
	s := &watchStage{
		ns: ns, kind: "Item", objects: plane.Objects("items.v1.podwatch.handwerk.dev", ns), make: item,
		launch: cluster.Launch{Main: "samples/itemwatch", Config: user.Config(), Args: []string{"run", "--config", hasty(t, "itemwatch"), "-n", ns, "--zap-log-level=debug"}},
	}
	s.lives(t, "items.v1.podwatch.handwerk.dev", true)
}

// hasty is a sample whose retries come soon. With the pauses that it has by default, five of them take
// half a minute.
func hasty(t *testing.T, sample string) string {
	t.Helper()
	text, err := os.ReadFile("../../samples/" + sample + "/operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const retries = "        retries: 5\n"
	quick := strings.ReplaceAll(string(text), retries, retries+"        backoff: {initial: 50ms}\n")
	if quick == string(text) {
		t.Fatalf("sample %s has no %q", sample, retries)
	}
	return write(t, quick)
}

// lives lets things happen to objects, and holds that each is reported once. Held says whether a deletion
// waits for the operator.
func (s *watchStage) lives(t *testing.T, resource string, held bool) {
	t.Helper()
	program := plane.Operator(t, s.launch)
	awaitReadyz(t, program, "[+]resource/"+resource+" ok")
	s.create(t, "failing", map[string]string{"podwatch.handwerk.dev/fail": "yes"})

	s.create(t, "watched", nil)
	program.Await(t, s.line("Add", "watched"))
	s.objects.Patch(t, "watched", `{"metadata":{"labels":{"a":"b"}}}`)
	program.Await(t, s.line("Update", "watched"))
	s.objects.Delete(t, "watched")
	program.Await(t, s.line("Delete", "watched"))
	s.objects.AwaitGone(t, "watched")

	s.create(t, "staying", nil)
	s.create(t, "leaving", nil)
	program.Await(t, s.line("Add", "staying"))
	program.Await(t, s.line("Add", "leaving"))
	s.drops(t, program)
	if exit := program.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	s.restarts(t, held)
	for _, once := range []string{s.line("Add", "watched"), s.line("Delete", "watched"), s.line("Add", "staying")} {
		if n := len(program.With(once)); n != 1 {
			t.Errorf("there are %d lines with %s", n, once)
		}
	}
}

// drops waits for the end of an object that cannot be handled: one attempt, five retries, and a word
// about it. Of those that fail as before, only the debug level has a line.
func (s *watchStage) drops(t *testing.T, program *cluster.Operator) {
	t.Helper()
	event := awaitEvent(t, s.ns, "failing", "HandlerFailed", 1)
	want := "Handler print failed for good after 6 attempts: this " + s.kind + " is labelled to fail"
	if event.Type != corev1.EventTypeWarning || event.Message != want {
		t.Errorf("Event is %s %q, want Warning %q", event.Type, event.Message, want)
	}
	final := program.Await(t, "handler failed for good")
	if !strings.Contains(final, `"attempt":6`) || !strings.Contains(final, `"name":"failing"`) {
		t.Errorf("the last attempt's line is %s", final)
	}
	retries := program.With("handler will be tried again")
	if len(retries) != 5 {
		t.Fatalf("there were %d retries, want 5:\n%s", len(retries), strings.Join(retries, "\n"))
	}
	for i, line := range retries {
		if !strings.Contains(line, fmt.Sprintf(`"attempt":%d`, i+1)) || !strings.Contains(line, `"name":"failing"`) {
			t.Errorf("line of attempt %d is %s", i+1, line)
		}
		if quiet := strings.Contains(line, `"level":"debug"`); quiet != (i > 0) {
			t.Errorf("of attempt %d, debug alone: %t: %s", i+1, quiet, line)
		}
	}
	if errors := program.Errors(); len(errors) != 1 {
		t.Errorf("errors were logged, want one:\n%s", strings.Join(errors, "\n"))
	}
}

// restarts restarts the program after an object was deleted in its absence, which it reports only of one
// that was held for it.
func (s *watchStage) restarts(t *testing.T, held bool) {
	t.Helper()
	none := []string{s.line("Add", "staying"), s.line("Update", "staying"), s.line("Sync", "leaving")}
	s.objects.Delete(t, "leaving")
	if held {
		left := s.objects.Await(t, "leaving", "deletion", func(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() != nil })
		if len(left.GetFinalizers()) != 1 {
			t.Errorf("finalizers are %v", left.GetFinalizers())
		}
	} else {
		s.objects.AwaitGone(t, "leaving")
		none = append(none, s.line("Delete", "leaving"))
	}
	restarted := plane.Operator(t, s.launch)
	if held {
		restarted.Await(t, s.line("Delete", "leaving"))
		s.objects.AwaitGone(t, "leaving")
	}
	restarted.Await(t, s.line("Sync", "staying"))
	for _, o := range s.objects.List(t) {
		if (len(o.GetFinalizers()) > 0) != held {
			t.Errorf("finalizers of %s are %v", o.GetName(), o.GetFinalizers())
		}
	}
	if exit := restarted.Stop(t); exit.Code != 0 {
		t.Errorf("exit code after the restart is %d", exit.Code)
	}
	for _, line := range none {
		if lines := restarted.With(line); len(lines) != 0 {
			t.Errorf("after the restart: %s", strings.Join(lines, "\n"))
		}
	}
	mustLogNoError(t, restarted.Lines)
}

// create makes an object.
func (s *watchStage) create(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	o := s.make(name)
	o.SetLabels(labels)
	s.objects.Create(t, o)
}

// podOn makes Pods that have their node from the start: they are not edited later.
func podOn(node string) func(name string) *unstructured.Unstructured {
	return func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"nodeName": node, "containers": []any{map[string]any{"name": "main", "image": "pause"}},
			},
		}}
	}
}

func item(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "podwatch.handwerk.dev/v1", "kind": "Item", "metadata": map[string]any{"name": name},
	}}
}

// line is what the log says of an object.
func (s *watchStage) line(what, name string) string {
	return fmt.Sprintf(`"%s for %s %s"`, what, s.kind, name)
}
