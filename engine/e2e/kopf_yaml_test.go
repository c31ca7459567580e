// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/samples/kopf"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

func TestKopfsMinimal(t *testing.T) {
	t.Parallel()
	s := playKopf(t, kopfInYAML(t, "01-minimal"))
	s.example(t)
	s.kex.Await(t, kopfExample, "the message", func(o *unstructured.Unstructured) bool {
		return field(o, "status", "create_fn", "message") == "hello world"
	})
	if line := s.Await(t, "And here we are!"); !containsAll(line, "item1", "duration") {
		t.Errorf("it says %s", line)
	}
}

func TestKopfsChildren(t *testing.T) {
	t.Parallel()
	s := playKopf(t, kopfInYAML(t, "02-children"))
	s.example(t)
	parent := s.kex.Await(t, kopfExample, "a child in the status", func(o *unstructured.Unstructured) bool {
		return field(o, "status", "create_fn", "children") != nil
	})
	pod := s.pods.Get(t, kopfExample+"-pod")
	if diff := cmp.Diff([]any{string(pod.GetUID())}, field(parent, "status", "create_fn", "children")); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	if owners := pod.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != parent.GetUID() {
		t.Errorf("the Pod's owners are %v", owners)
	}
	if text := asJSON(t, field(pod, "spec", "containers")); !containsAll(text, `{"name":"FIELD","value":"value"}`, `{"name":"DURATION","value":"1m"}`) {
		t.Errorf("the Pod's containers are %s", text)
	}
}

func TestKopfsEvents(t *testing.T) {
	t.Parallel()
	s := playKopf(t, kopfInYAML(t, "04-events"))
	s.example(t)
	want := map[string]bool{"Normal SomeReason Some message": true, "Warning SomeReason Some message": true, "Warning SomeException Some exception: Exception text.": true}
	eventually(t, "three Events", func() (bool, string) {
		got := eventsIn(t, s.ns, "KopfExample")
		return cmp.Equal(want, got), fmt.Sprint(got)
	})
}

func TestKopfsHandlers(t *testing.T) {
	t.Parallel()
	s := playKopf(t, kopfInYAML(t, "05-handlers"))
	says := func(want ...string) {
		t.Helper()
		s.Await(t, want[len(want)-1])
		var got []string
		for _, line := range s.All() {
			for _, word := range []string{"CREATED 1st", "CREATED 2nd", "UPDATED", "RESUMED 1st", "RESUMED 2nd", "DELETED 1st", "DELETED 2nd", "FIELD CHANGED: nothing -> value", "FIELD CHANGED: value -> changed"} {
				if strings.Contains(line, `"msg"="`+word) {
					got = append(got, word)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what handlers say (-want +got):\n%s", diff)
		}
	}
	s.example(t)
	says("CREATED 1st", "CREATED 2nd", "FIELD CHANGED: nothing -> value")
	s.kex.Patch(t, kopfExample, `{"spec":{"field":"changed"}}`)
	says("CREATED 1st", "CREATED 2nd", "FIELD CHANGED: nothing -> value", "UPDATED", "FIELD CHANGED: value -> changed")
	s.Stop(t)
	s.begin(t)
	says("RESUMED 1st", "RESUMED 2nd")
	s.kex.Delete(t, kopfExample)
	s.kex.AwaitGone(t, kopfExample)
	says("RESUMED 1st", "RESUMED 2nd", "DELETED 1st", "DELETED 2nd")
}

func TestKopfsPeering(t *testing.T) {
	t.Parallel()
	op := kopfInYAML(t, "06-peering")
	s := &kopfStage{ns: plane.Namespace(t), op: op, user: plane.User("kopf")}
	op.Settings.LeaderElection.Namespace = s.ns
	op.Scope.Namespaces = []string{s.ns}
	s.user.AllowIn(t, s.ns, cluster.Rule("kopf.dev", "kopfexamples", "*"), cluster.Rule("coordination.k8s.io", "leases", "*"), eventRule())
	s.kex = plane.Objects(kopf.Examples, s.ns)
	s.begin(t)
	waiting := cluster.Run(t, op, engine.Settings{Config: s.user.Config()})
	s.example(t)
	s.Await(t, `"msg"="handled"`)
	if lines := waiting.With(`"msg"="handled"`); len(lines) > 0 {
		t.Errorf("the other process has handled it, too: %v", lines)
	}
	s.Stop(t)
	s.kex.Create(t, kopfObject("second"))
	waiting.Await(t, `"msg"="handled"`)
	if lines := waiting.With(`"msg"="handled"`); len(lines) != 1 || !strings.Contains(lines[0], "second") {
		t.Errorf("the other process has handled %v", lines)
	}
}

// kopfObject is an object without a spec.
func kopfObject(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kopf.dev/v1", "kind": "KopfExample"}}
	o.SetName(name)
	return o
}

func TestKopfsEventHandlers(t *testing.T) {
	t.Parallel()
	s := playKopf(t, kopfInYAML(t, "08-events"))
	s.example(t)
	s.Await(t, "Event received: ADDED "+kopfExample)
	s.kex.Patch(t, kopfExample, `{"status":{"any":"thing"}}`, "status")
	s.Await(t, "Event received: MODIFIED "+kopfExample)
	s.kex.Delete(t, kopfExample)
	s.Await(t, "Event received: DELETED "+kopfExample)
	s.runs(t, "event_fn_with_error", "ignored", 3)
	s.runs(t, "normal_event_fn", "success", 3)
}

// TestKopfsTesting tests an operator without a cluster, as 09-testing does with one.
func TestKopfsTesting(t *testing.T) {
	t.Parallel()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: kopf.Examples, Kind: "KopfExample"})
		log := &logText{}
		c.Start(kopfInYAML(t, "09-testing"), func(s *engine.Settings) { s.Log = log.logger() })
		c.CreateFile("../../samples/kopf/example.yaml")
		c.Settle()
		c.Delete(kopf.Examples, "default", kopfExample)
		c.Settle()
		if n := log.count("Something was logged here."); n != 1 || len(c.List(kopf.Examples, "default")) > 0 {
			t.Errorf("it was logged %d times", n)
		}
	})
}

func TestKopfsBuiltins(t *testing.T) {
	t.Parallel()
	t.Run("a Pod is deleted when its time is over", func(t *testing.T) {
		t.Parallel()
		s := playKopf(t, kopfInYAML(t, "10-builtins", "initialDelay: 30s", "initialDelay: 1s"))
		s.pod(t, "short")
		s.pods.AwaitGone(t, "short")
		for _, line := range []string{"Pod killing happens in 30s.", "Pod killing happens NOW!", "The Pod is gone."} {
			s.Await(t, line)
		}
	})
	t.Run("of one that is deleted before nothing is left", func(t *testing.T) {
		t.Parallel()
		s := playKopf(t, kopfInYAML(t, "10-builtins", "initialDelay: 30s", "initialDelay: 1h"))
		s.pod(t, "early")
		s.Await(t, "Pod killing happens in 30s.")
		if pod := s.pods.Await(t, "early", "its phase", running); len(pod.GetFinalizers()) > 0 {
			t.Errorf("its finalizers are %v", pod.GetFinalizers())
		}
		s.pods.Delete(t, "early")
		s.Await(t, "The Pod is gone.")
		if lines := s.With("NOW"); len(lines) > 0 {
			t.Errorf("it says %v", lines)
		}
	})
}

func TestKopfsFilters(t *testing.T) {
	t.Parallel()
	s := playKopf(t, kopfInYAML(t, "11-filtering-handlers"))
	s.example(t)
	s.AwaitTimes(t, 2, "Field timer is satisfied.")
	want := []string{
		"Label is matching.", "Label is present.", "Label is absent.", "Label callback matching.", "Annotation is matching.", "Annotation is present.",
		"Annotation is absent.", "Filter satisfied.", "Field value is satisfied.", "Field presence is satisfied.",
	}
	said := func() (out []string) {
		for _, line := range s.With(`"level"=0`) {
			_, text, _ := strings.Cut(line, `"msg"="`)
			if text, _, _ = strings.Cut(text, `"`); text != "Field timer is satisfied." && slices.Contains(append(want, unsaid...), text) {
				out = append(out, text)
			}
		}
		return out
	}
	if diff := cmp.Diff(want, said()); diff != "" {
		t.Errorf("what handlers say of a new object (-want +got):\n%s", diff)
	}
	s.kex.Patch(t, kopfExample, `{"spec":{"field":"changed"}}`)
	s.Await(t, "Field change is satisfied.")
	if diff := cmp.Diff(append(want, "Field change is satisfied."), said()); diff != "" {
		t.Errorf("what handlers say then (-want +got):\n%s", diff)
	}
}

// unsaid is what the filters of the example keep from being said, or say later.
var unsaid = []string{
	"Annotation callback mismatch.", "Filter not satisfied.", "Field value is not satisfied.", "Field presence is not satisfied.", "Field change is satisfied.",
}

func TestKopfsTimers(t *testing.T) {
	t.Parallel()
	s := playKopf(t, kopfInYAML(t, "15-timers", "idle: 5s, pause: 2s", "idle: 500ms, pause: 1s", "idle: 10s, pause: 4s", "idle: 1s, pause: 1s"))
	s.example(t)
	s.AwaitTimes(t, 3, "Ping from a timer: value")
	s.AwaitTimes(t, 2, "Ping from another timer: value")
	s.kex.Patch(t, kopfExample, `{"spec":{"field":"changed"}}`)
	s.AwaitTimes(t, 2, "Ping from a timer: changed")
}

func TestKopfsIndexing(t *testing.T) {
	t.Parallel()
	s := playKopf(t, kopfInYAML(t, "16-indexing", "pause: 5s", "pause: 1s", "pod.startsWith('default::')", "true"))
	s.pod(t, "one")
	s.pods.Await(t, "one", "its phase", running)
	s.example(t)
	pods := func(names ...any) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool { return cmp.Equal(field(o, "status", "running-pods"), names) }
	}
	s.kex.Await(t, kopfExample, "one running Pod", pods(s.ns+"::one"))
	s.Await(t, "app=one: one")
	s.pod(t, "two")
	s.kex.Await(t, kopfExample, "two running Pods", pods(s.ns+"::one", s.ns+"::two"))
	s.pods.Delete(t, "one")
	s.kex.Await(t, kopfExample, "one running Pod again", pods(s.ns+"::two"))
}
