// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// kindSample is a sample of a kind of handlers at work.
type kindSample struct {
	*cluster.Operator
	ns      string
	main    string
	args    []string
	user    *cluster.User
	objects *cluster.Objects
}

// runKind runs a sample that brings the CRD of its resource along, as a user who may do what that takes, may write its
// objects and do what the rules say, and makes its example. Each replacement is of an old text in the sample by a new one.
func runKind(t *testing.T, name, plural string, rules []rbacv1.PolicyRule, replacements ...string) *kindSample {
	t.Helper()
	s := &kindSample{ns: plane.Namespace(t), user: plane.User(name), main: sampleMain(name), args: []string{"run", "--install-crds", "--config", sampleFile(t, name, replacements...)}}
	s.objects = plane.Objects(plural+".v1alpha1.samples.handwerk.dev", s.ns)
	s.user.Allow(t, cluster.Rule("apiextensions.k8s.io", "customresourcedefinitions", "get", "list", "watch", "create", "patch"))
	s.user.AllowIn(t, s.ns, append(rules, eventRule(), cluster.Rule("samples.handwerk.dev", plural, "get", "list", "watch", "patch"),
		cluster.Rule("samples.handwerk.dev", plural+"/status", "patch"))...)
	s.args = append(s.args, "-n", s.ns)
	s.start(t)
	crd := plural + ".samples.handwerk.dev"
	plane.AwaitServed(t, plane.Objects(crds, "").Await(t, crd, "being installed", func(*unstructured.Unstructured) bool { return true }))
	plane.Apply(t, s.ns, "samples/"+name+"/example.yaml")
	return s
}

// start runs the program, once more when it was stopped.
func (s *kindSample) start(t *testing.T) {
	t.Helper()
	s.Operator = plane.Operator(t, cluster.Launch{Main: s.main, Config: s.user.Config(), Args: s.args})
	s.Await(t, "operator starts")
}

// end stops the program, which has logged no error but those with these texts.
func (s *kindSample) end(t *testing.T, but ...string) {
	t.Helper()
	if exit := s.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	mustLogNoError(t, s.Lines, but...)
}

// status waits until fields of an object's status have values, by the path of each.
func (s *kindSample) status(t *testing.T, name string, want map[string]any) *unstructured.Unstructured {
	t.Helper()
	return s.objects.Await(t, name, fmt.Sprint("a status with ", want), func(o *unstructured.Unstructured) bool {
		for path, value := range want {
			if !cmp.Equal(value, field(o, append([]string{"status"}, strings.Split(path, ".")...)...)) {
				return false
			}
		}
		return true
	})
}

// event waits for an Event about an object, and says what is in it.
func (s *kindSample) event(t *testing.T, name, reason, want string) {
	t.Helper()
	if e := awaitEvent(t, s.ns, name, reason, 1); fmt.Sprint(e.Type, " ", e.Message) != want {
		t.Errorf("Event %s is %s %s, want %s", reason, e.Type, e.Message, want)
	}
}

// TestTimerSample holds that timers run by their periods and pauses, and when nothing changes, for each object and for all.
func TestTimerSample(t *testing.T) {
	t.Parallel()
	s := runKind(t, "timer", "reminders", nil, "every: 1m", "every: 1s", "pause: 30s, initialDelay: 5s", "pause: 1s, initialDelay: 0s",
		"idle: 10m", "idle: 500ms", "every: 1h", "every: 1s")
	s.objects.Await(t, "tea", "three beats", func(o *unstructured.Unstructured) bool {
		beats, _ := field(o, "status", "beats").(int64)
		return beats >= 3
	})
	s.AwaitTimes(t, 3, "half a minute after the last time: tea")
	s.event(t, "tea", "Quiet", "Normal nothing has changed for ten minutes: tea")
	s.AwaitTimes(t, 2, "there are 1 reminders")
	s.objects.Patch(t, "tea", `{"spec":{"note":"coffee"}}`)
	s.Await(t, "half a minute after the last time: coffee")
	s.end(t)
}

// TestTTLSample holds that an object warns and goes when its time is over, and that another one without a time stays.
func TestTTLSample(t *testing.T) {
	t.Parallel()
	s := runKind(t, "ttl", "previews", []rbacv1.PolicyRule{
		cluster.Rule("samples.handwerk.dev", "previews", "delete"), cluster.Rule("", "pods", "get", "list", "watch", "create", "patch", "delete"),
	}, "duration('5m')", "duration('3599s')")
	s.event(t, "try-it", "ExpiresSoon", "Warning its time is over in five minutes")
	s.objects.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "samples.handwerk.dev/v1alpha1", "kind": "Preview", "metadata": map[string]any{"name": "stays"}, "spec": map[string]any{},
	}})
	s.objects.Patch(t, "try-it", `{"spec":{"ttl":"3s"}}`)
	s.objects.AwaitGone(t, "try-it")
	if o := s.objects.Get(t, "stays"); o.GetDeletionTimestamp() != nil {
		t.Error("a Preview without a time goes, too")
	}
	s.end(t)
}

// TestCausesSample holds that each cause has its handler run, with what it is about.
func TestCausesSample(t *testing.T) {
	t.Parallel()
	s := runKind(t, "causes", "parcels", nil)
	s.Await(t, "created, to Hamburg")
	s.Await(t, "seen ADDED")
	s.objects.Patch(t, "books", `{"spec":{"to":"Bremen"}}`)
	s.event(t, "books", "Moved", "Normal from Hamburg to Bremen")
	s.Await(t, "updated spec.to")
	s.Await(t, "seen MODIFIED")
	s.objects.Patch(t, "books", `{"spec":{"weight":40}}`)
	s.event(t, "books", "Heavy", "Warning it weighs 40")
	s.Await(t, "updated spec.weight")
	if lines := s.With("resumed"); len(lines) > 0 {
		t.Errorf("it was resumed: %v", lines)
	}
	s.end(t)
	s.start(t)
	s.Await(t, "resumed, to Bremen")
	s.objects.Delete(t, "books")
	s.objects.AwaitGone(t, "books")
	s.Await(t, "deleted, to Bremen")
	s.Await(t, "seen DELETED")
	if lines := append(s.With("created, "), s.With("updated ")...); len(lines) > 0 {
		t.Errorf("after a restart it says %v", lines)
	}
	s.end(t)
}

// TestSubHandlersSample holds that each entry of a list has attempts of its own, and that all begin again after a change.
func TestSubHandlersSample(t *testing.T) {
	t.Parallel()
	s := runKind(t, "sub-handlers", "fleets", nil)
	s.status(t, "north-sea", map[string]any{"attempts.hamburg": int64(1), "attempts.bergen": int64(3)})
	if e := awaitEvent(t, s.ns, "north-sea", "HandlerFailed", 1); !strings.Contains(e.Message, "bergen is closed") {
		t.Errorf("the Event says %s", e.Message)
	}
	if lines := s.With("the fleet is in"); len(lines) != 1 || !containsAll(lines[0], "in hamburg", "deploy/hamburg") {
		t.Errorf("it says %v", lines)
	}
	s.objects.Patch(t, "north-sea", `{"spec":{"closed":null}}`)
	s.status(t, "north-sea", map[string]any{"attempts.hamburg": int64(1), "attempts.bergen": int64(1)})
	s.Await(t, "the fleet is in bergen")
	s.AwaitTimes(t, 2, "the fleet is in hamburg")
	s.end(t, "failed for good")
}

// TestStepsSample holds that steps go on where they stopped, and begin again for a change.
func TestStepsSample(t *testing.T) {
	t.Parallel()
	s := runKind(t, "steps", "editions", []rbacv1.PolicyRule{made("", "configmaps")})
	s.status(t, "shop", map[string]any{"released": "2.0"})
	s.event(t, "shop", "Celebrated", "Normal version 2.0 is a large one")
	notes := plane.Objects(configMaps, s.ns)
	if got := field(notes.Get(t, "shop-notes"), "data", "version"); got != "2.0" {
		t.Errorf("the notes are for %v", got)
	}
	if lines := s.With("release 2.0 begins"); len(lines) != 1 || len(s.With("attempt 1 was to fail")) == 0 {
		t.Errorf("it began %d times, and failed %d times", len(lines), len(s.With("attempt 1 was to fail")))
	}
	s.objects.Patch(t, "shop", `{"spec":{"version":"2.1"}}`)
	s.status(t, "shop", map[string]any{"released": "2.1"})
	if got := field(notes.Get(t, "shop-notes"), "data", "version"); got != "2.1" {
		t.Errorf("the notes are for %v then", got)
	}
	if events := eventsIn(t, s.ns, "Edition"); events["Normal Celebrated version 2.1 is a large one"] {
		t.Errorf("Events: %v", events)
	}
	s.end(t)
}

// TestErrorsSample holds how often handlers are tried that fail in each way, and that none keeps another from running.
func TestErrorsSample(t *testing.T) {
	t.Parallel()
	s := runKind(t, "errors", "trials", nil)
	s.Await(t, "all that can succeed has")
	failing := s.objects.Await(t, "and-error", "the condition of what has failed", func(o *unstructured.Unstructured) bool {
		return cluster.Condition(o, "HandlersFailing") == "True" && len(field(o, "status", "attempts").(map[string]any)) == 7 && field(o, "status", "attempts", "backoff") == int64(3)
	})
	want := map[string]any{
		"backoff": int64(3), "temporary": int64(3), "permanent": int64(1), "retries": int64(2), "deadline": int64(1), "strict": int64(1), "careless": int64(1),
	}
	if diff := cmp.Diff(want, field(failing, "status", "attempts")); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	text := asJSON(t, field(failing, "status", "conditions"))
	if !containsAll(text, "permanent", "retries", "deadline", "strict") || strings.Contains(text, "careless") || strings.Contains(text, "temporary:") {
		t.Errorf("conditions are %s", text)
	}
	s.end(t, "failed for good")
}

// TestMemoSample holds that memos of objects and of the operator keep what handlers left there, as long as the process.
func TestMemoSample(t *testing.T) {
	t.Parallel()
	s := runKind(t, "memo", "guests", nil)
	s.status(t, "ada", map[string]any{"greeting": "Hello, Ada", "greet.times": int64(1), "greet.guests": int64(1)})
	s.objects.Patch(t, "ada", `{"spec":{"name":"Countess"}}`)
	s.status(t, "ada", map[string]any{"greeting": "Hello, Countess", "greet.times": int64(2), "greet.guests": int64(1)})
	other := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "samples.handwerk.dev/v1alpha1", "kind": "Guest", "metadata": map[string]any{"name": "bob"}, "spec": map[string]any{"name": "Bob"},
	}}
	s.objects.Create(t, other)
	s.status(t, "bob", map[string]any{"greeting": "Hello, Bob", "greet.times": int64(1), "greet.guests": int64(2)})
	s.objects.Delete(t, "bob")
	s.objects.AwaitGone(t, "bob")
	s.objects.Create(t, other)
	s.status(t, "bob", map[string]any{"greet.times": int64(1), "greet.guests": int64(3)})
	s.end(t)
	s.start(t)
	s.status(t, "ada", map[string]any{"greeting": "Hello, Countess", "greet.times": int64(1)})
	s.end(t)
}

// TestActivitiesSample runs a program of one's own: its probe follows what handlers leave in the operator's memo, between a startup
// and a cleanup.
func TestActivitiesSample(t *testing.T) {
	t.Parallel()
	ns, user := plane.Namespace(t), plane.User("activities")
	user.AllowIn(t, ns, eventRule(), cluster.Rule("", "configmaps", "get", "list", "watch"))
	p := plane.Operator(t, cluster.Launch{Main: "samples/activities", Config: user.Config(), Args: []string{"run", "--config", "samples/activities/operator.yaml", "-n", ns}})
	awaitReadyz(t, p, "[+]probe/door ok")
	for _, line := range []string{"this process begins", "the door is open"} {
		p.Await(t, line)
	}
	plane.Apply(t, ns, "samples/activities/example.yaml")
	eventually(t, "the process not to be ready", func() (bool, string) {
		code, body, err := ask(t, addressesOf(t, p).Health, "/readyz?verbose")
		return code != http.StatusOK && strings.Contains(body, "[-]probe/door") && strings.Contains(body, "the door is closed"), fmt.Sprintf("%d (%v):\n%s", code, err, body)
	})
	plane.Objects(configMaps, ns).Patch(t, "door", `{"data":{"door":"open"}}`)
	awaitReadyz(t, p, "[+]probe/door ok")
	if lines := p.With(`"the door is closed"`); len(lines) > 0 {
		t.Errorf("it says %v", lines)
	}
	if exit := p.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	if lines := p.With(`"the door is closed"`); len(lines) != 1 {
		t.Errorf("at its end it says %v", lines)
	}
	mustLogNoError(t, p.Lines)
}
