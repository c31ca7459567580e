// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// podStage is where podwatch is at work.
type podStage struct {
	ns     string
	pods   *cluster.Objects
	node   string
	launch cluster.Launch
}

// TestPodWatchSample is client-go's workqueue example, told by the log of the program.
func TestPodWatchSample(t *testing.T) {
	t.Parallel()
	ns, user := plane.Namespace(t), plane.User("podwatch")
	user.AllowIn(t, ns, cluster.Rule("", "pods", "get", "list", "watch", "patch"), eventRule())
	nodes := plane.Objects("nodes.v1", "").List(t)
	s := &podStage{
		ns: ns, pods: plane.Objects("pods.v1", ns), node: nodes[0].GetName(),
		launch: cluster.Launch{Config: user.Config(), Args: []string{"run", "--config", "samples/podwatch/operator.yaml", "-n", ns}},
	}
	program := plane.Operator(t, s.launch)
	awaitReadyz(t, program, "[+]resource/pods.v1 ok")
	s.create(t, "failing", map[string]any{"podwatch.handwerk.dev/fail": "yes"})

	s.create(t, "watched", nil)
	program.Await(t, s.line("Add", "watched"))
	s.pods.Patch(t, "watched", `{"metadata":{"labels":{"a":"b"}}}`)
	program.Await(t, s.line("Update", "watched"))
	s.pods.Delete(t, "watched")
	program.Await(t, s.line("Delete", "watched"))
	s.pods.AwaitGone(t, "watched")

	s.create(t, "staying", nil)
	s.create(t, "leaving", nil)
	program.Await(t, s.line("Add", "staying"))
	program.Await(t, s.line("Add", "leaving"))
	s.drops(t, program)
	if exit := program.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	s.tellsWhatWasMissed(t)
	for _, once := range []string{s.line("Add", "watched"), s.line("Delete", "watched"), s.line("Add", "staying")} {
		if n := len(program.With(once)); n != 1 {
			t.Errorf("there are %d lines with %s", n, once)
		}
	}
}

// drops waits for the end of a Pod that cannot be handled: one attempt, five retries, and a word
// about it.
func (s *podStage) drops(t *testing.T, program *cluster.Operator) {
	t.Helper()
	event := awaitEvent(t, s.ns, "failing", "HandlerFailed", 1)
	want := "Handler print failed for good after 6 attempts: this Pod is labelled to fail"
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
	}
	if errors := program.Errors(); len(errors) != 1 {
		t.Errorf("errors were logged, want one:\n%s", strings.Join(errors, "\n"))
	}
}

// tellsWhatWasMissed restarts the program after a Pod was deleted in its absence.
func (s *podStage) tellsWhatWasMissed(t *testing.T) {
	t.Helper()
	s.pods.Delete(t, "leaving")
	held := s.pods.Await(t, "leaving", "deletion", func(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() != nil })
	if len(held.GetFinalizers()) != 1 {
		t.Errorf("finalizers are %v", held.GetFinalizers())
	}
	restarted := plane.Operator(t, s.launch)
	restarted.Await(t, s.line("Delete", "leaving"))
	s.pods.AwaitGone(t, "leaving")
	restarted.Await(t, s.line("Sync", "staying"))
	if exit := restarted.Stop(t); exit.Code != 0 {
		t.Errorf("exit code after the restart is %d", exit.Code)
	}
	for _, none := range []string{s.line("Add", "staying"), s.line("Update", "staying"), s.line("Sync", "leaving")} {
		if lines := restarted.With(none); len(lines) != 0 {
			t.Errorf("after the restart: %s", strings.Join(lines, "\n"))
		}
	}
	mustLogNoError(t, restarted.Lines)
}

// create makes a Pod that has its node from the start: nobody edits it later.
func (s *podStage) create(t *testing.T, name string, labels map[string]any) {
	t.Helper()
	s.pods.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "labels": labels},
		"spec": map[string]any{
			"nodeName": s.node, "containers": []any{map[string]any{"name": "main", "image": "pause"}},
		},
	}})
}

// line is what the log says of a Pod.
func (s *podStage) line(what, pod string) string { return fmt.Sprintf(`"%s for Pod %s"`, what, pod) }
