// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/samples/kopf"
)

func TestKopfsExceptions(t *testing.T) {
	t.Parallel()
	s := playKopf(t, kopfInGo(kopf.Exceptions))
	s.example(t)
	s.runs(t, "eventual_success_with_a_few_messages", "success", 1)
	for _, handler := range []string{"instant_failure_with_only_a_message", "eventual_failure", "instant_failure"} {
		eventually(t, handler+" to fail for good", func() (bool, string) {
			events := fmt.Sprint(eventsIn(t, s.ns, "KopfExample"))
			return strings.Contains(events, "Warning HandlerFailed Handler "+handler+" failed for good"), events
		})
	}
	for handler, want := range map[string]string{
		"eventual_success_with_a_few_messages": "4 1", "instant_failure_with_only_a_message": "1 0", "eventual_failure": "3 0", "instant_failure": "1 0",
	} {
		if got := fmt.Sprint(s.counted(t, handler, ""), " ", s.counted(t, handler, "success")); got != want {
			t.Errorf("attempts of %s, and how many succeeded: %s, want %s", handler, got, want)
		}
	}
}

func TestKopfsSubHandlers(t *testing.T) {
	t.Parallel()
	s := playKopf(t, kopfInYAML(t, "07-subhandlers"))
	s.example(t)
	for _, item := range []string{"item1", "item2"} {
		if line := s.Await(t, "Handling creation for "+item); !strings.Contains(line, "create_fn/"+item) {
			t.Errorf("it is said by %s", line)
		}
	}
}

func TestKopfsEmbedded(t *testing.T) {
	t.Parallel()
	ns, user, log := plane.Namespace(t), plane.User("kopf"), &logText{}
	user.AllowIn(t, ns, cluster.Rule("kopf.dev", "kopfexamples", "get", "list", "watch", "create", "patch", "delete"), eventRule())
	if err := kopf.Embedded(t.Context(), user.Config(), ns, log.logger()); err != nil {
		t.Fatal(err)
	}
	for step := range 3 {
		for _, text := range []string{"Hello, %s!", "Good bye, %s!"} {
			if text := fmt.Sprintf(text, fmt.Sprintf("kopf-example-%d", step)); log.count(text) != 1 {
				t.Errorf("%q was said %d times", text, log.count(text))
			}
		}
	}
	if left := plane.Objects(kopf.Examples, ns).List(t); len(left) > 0 {
		t.Errorf("%d objects are left", len(left))
	}
}

func TestKopfsHooks(t *testing.T) {
	t.Parallel()
	ns, user, log := plane.Namespace(t), plane.User("kopf"), &logText{}
	user.AllowIn(t, ns, cluster.Rule("", "pods", "get", "list", "watch"), eventRule())
	logins := 0
	program := kopf.Hooks(func(context.Context) (*rest.Config, error) { logins++; return user.Config(), nil })
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // its end is in order, and waited for
	defer cancel()
	ended := make(chan int, 1)
	go func() {
		args := []string{"run", "--namespace=" + ns, "--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=0", "--debug-bind-address=0", "--zap-encoder=json"}
		ended <- program.Run(ctx, args, cmd.Streams{Out: log, Err: log})
	}()
	s := &kopfStage{ns: ns, pods: plane.Objects("pods.v1", ns)}
	log.await(t, "The tasks are counted from now on.")
	log.await(t, "Startup works now.")
	s.pod(t, "served")
	log.await(t, "Served by the background task.")
	if pod := s.pods.Get(t, "served"); len(pod.GetFinalizers()) > 0 {
		t.Errorf("its finalizers are %v", pod.GetFinalizers())
	}
	if code, body, err := ask(t, healthOf(t, log), "/healthz?verbose"); code != http.StatusOK || !strings.Contains(body, "[+]probe/tasks_count ok") {
		t.Errorf("/healthz is %d (%v):\n%s", code, err, body)
	}
	s.pods.Delete(t, "served")
	log.await(t, "Serving is finished.")
	cancel()
	if code := <-ended; code != 0 || log.count("Cleaning up.") != 1 || logins != 1 {
		t.Errorf("exit code %d, %d cleanups, %d logins", code, log.count("Cleaning up."), logins)
	}
}

// healthOf is where a program serves its probes, as its log says.
func healthOf(t *testing.T, log *logText) string {
	t.Helper()
	log.mu.Lock()
	defer log.mu.Unlock()
	for line := range strings.Lines(log.text.String()) {
		var at addresses
		if strings.Contains(line, `"msg":"starting"`) && json.Unmarshal([]byte(line), &at) == nil {
			return at.Health
		}
	}
	t.Fatalf("no line says it:\n%s", log.text.String())
	return ""
}

func TestKopfsDaemons(t *testing.T) {
	t.Parallel()
	s := playKopf(t, kopfInGo(kopf.Daemons))
	s.example(t)
	s.kex.Await(t, kopfExample, "three failures", func(o *unstructured.Unstructured) bool { return field(o, "status", "message") == "Failed 3 times." })
	for _, daemon := range []string{"background_sync", "background_async"} {
		s.awaitBoth(t, daemon, "Ping from a daemon: field=value")
	}
	s.kex.Patch(t, kopfExample, `{"spec":{"field":"changed"}}`)
	s.Await(t, "Ping from a daemon: field=changed")
	s.kex.Delete(t, kopfExample)
	s.kex.AwaitGone(t, kopfExample)
}

// awaitBoth waits for a line that has both texts.
func (s *kopfStage) awaitBoth(t *testing.T, one, other string) {
	t.Helper()
	waitFor(t, one+" and "+other, func() bool {
		for _, line := range s.With(one) {
			if strings.Contains(line, other) {
				return true
			}
		}
		return false
	})
}

func TestKopfsAllAtOnce(t *testing.T) {
	t.Parallel()
	s := playKopf(t, kopfInGo(kopf.AllAtOnce))
	for _, line := range []string{"Starting in 1s...", "Startup works now."} {
		s.Await(t, line)
	}
	s.example(t)
	s.kex.Await(t, kopfExample, "both results", func(o *unstructured.Unstructured) bool {
		return field(o, "status", "create_1", "job1-status") == int64(100) && field(o, "status", "create_2", "job2-status") == int64(100)
	})
	s.Await(t, "This Pod is special for us.")
	if pod := s.pods.Get(t, kopfExample+"-pod"); pod == nil || len(pod.GetOwnerReferences()) != 1 {
		t.Errorf("the Pod is %v", pod)
	}
	eventually(t, "two Events", func() (bool, string) {
		got := eventsIn(t, s.ns, "KopfExample")
		return got["Normal AnyReason"] && got["Warning SomeReason Cannot do something"], fmt.Sprint(got)
	})
	s.kex.Patch(t, kopfExample, `{"spec":{"lst":["a","b"]}}`)
	s.Await(t, "Handling the diff")
	s.Await(t, "Handling the field: ")
	s.kex.Delete(t, kopfExample)
	s.kex.AwaitGone(t, kopfExample)
	s.Stop(t)
	if diff := cmp.Diff(1, len(s.With("Cleaning up in 3s..."))); diff != "" {
		t.Errorf("cleanups (-want +got):\n%s", diff)
	}
}
