// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"bytes"
	"errors"
	"flag"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/guard"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/sandbox/server"
)

var update = flag.Bool("update", false, "write the golden files")

// tree reads an object as it comes over the wire.
func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestALineSaysWhatWasWritten(t *testing.T) {
	tests := map[string]struct{ before, after, want string }{
		"a field that has another value":      {`{spec: {replicas: 1}}`, `{spec: {replicas: 2}}`, "spec.replicas 1 → 2"},
		"a field that is new":                 {`{spec: {}}`, `{spec: {size: small}}`, "spec.size=small"},
		"a field that is gone":                {`{spec: {size: small}}`, `{spec: {}}`, "-spec.size"},
		"each field of what is new":           {`{}`, `{status: {a: 1, b: true}}`, "status.a=1, status.b=true"},
		"no value that is long":               {`{spec: {a: b}}`, `{spec: {a: ` + strings.Repeat("x", 50) + `}}`, "spec.a b"},
		"a field within an item of a list":    {`{l: [{a: 1}, {a: 2}]}`, `{l: [{a: 1}, {a: 3}]}`, "l[1].a 2 → 3"},
		"a list that has become longer":       {`{l: [1]}`, `{l: [1, 2]}`, "l [1] → [1,2]"},
		"a finalizer":                         {`{metadata: {}}`, `{metadata: {finalizers: [a/b]}}`, "+finalizer a/b"},
		"a finalizer that was taken off":      {`{metadata: {finalizers: [a/b]}}`, `{metadata: {}}`, "-finalizer a/b"},
		"an owner":                            {`{metadata: {}}`, `{metadata: {ownerReferences: [{kind: Foo, name: x}]}}`, "+owner Foo x"},
		"a label":                             {`{metadata: {labels: {a: b}}}`, `{metadata: {labels: {a: c}}}`, "label a=c"},
		"an annotation, without its value":    {`{metadata: {}}`, `{metadata: {annotations: {a: b}}}`, "annotation a"},
		"conditions by their types":           {`{status: {conditions: [{type: Ready, status: "False"}, {type: Old, status: "True"}]}}`, `{status: {conditions: [{type: Ready, status: "True", reason: Good}]}}`, "-Old, Ready=True (Good)"},
		"no bookkeeping of the server":        {`{metadata: {resourceVersion: "1", generation: 1}, a: 1}`, `{metadata: {resourceVersion: "2", generation: 2, managedFields: [{manager: x}]}, a: 2}`, "a 1 → 2"},
		"nothing of a Secret but which field": {`{kind: Secret, data: {a: eA==}}`, `{kind: Secret, data: {a: eQ==}}`, "data.a"},
		"the first few changes, and how many": {`{}`, `{s: {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6}}`, "s.a=1, s.b=2, s.c=3, s.d=4, and 2 more"},
		"nothing where nothing has changed":   {`{a: 1}`, `{a: 1}`, ""},
		"an object that is new":               {``, `{a: 1}`, "created"},
		"an object that goes without a finalizer": {`{metadata: {finalizers: [a/b], deletionTimestamp: "2026-01-01T00:00:00Z"}}`,
			`{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}}`, "-finalizer a/b: deleted"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _ := write{Request: server.Request{Verb: "patch"}, code: http.StatusOK, before: tree(t, test.before), after: tree(t, test.after)}.words()
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestALineSaysWhatWasDeletedOrRefused(t *testing.T) {
	tests := map[string]struct {
		write write
		want  string
	}{
		"a deletion":            {write{Request: server.Request{Verb: "delete"}, code: 200}, "deleted"},
		"the beginning of one":  {write{Request: server.Request{Verb: "delete"}, code: 200, after: tree(t, `{metadata: {finalizers: [a/b, c/d]}}`)}, "is being deleted, held by a/b, c/d"},
		"that of a Pod":         {write{Request: server.Request{Verb: "delete"}, code: 200, after: tree(t, `{metadata: {}}`)}, "is being deleted"},
		"one of many":           {write{Request: server.Request{Verb: "deletecollection"}, code: 200}, "deleted all"},
		"a refusal":             {write{Request: server.Request{Verb: "create"}, code: 403, message: "no"}, "create refused, 403 Forbidden: no"},
		"that of a subresource": {write{Request: server.Request{Verb: "patch", Subresource: "status"}, code: 422, message: "a\nb"}, "patch of status refused, 422 Unprocessable Entity: a b"},
		"one without words":     {write{Request: server.Request{Verb: "update"}, code: 409}, "update refused, 409 Conflict"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, _ := test.write.words(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestADeletionIsOneIfTheObjectWasMadeAgain looks at the object when another one has its name.
func TestADeletionIsOneIfTheObjectWasMadeAgain(t *testing.T) {
	for next, want := range map[string]string{"b": "deleted", "a": "is being deleted"} {
		w := write{Request: server.Request{Verb: "delete"}, before: tree(t, `{metadata: {uid: a}}`)}
		w.answered(http.StatusOK, []byte(`{"kind":"Status"}`), func() map[string]any { return tree(t, `{metadata: {uid: `+next+`}}`) })
		if got, _ := w.words(); got != want {
			t.Errorf("the object is %s by now: got %q, want %q", next, got, want)
		}
	}
}

// TestACreationInTheBinaryFormHasTheNameOfItsObject holds what kubectl create namespace sends.
func TestACreationInTheBinaryFormHasTheNameOfItsObject(t *testing.T) {
	var body bytes.Buffer
	object := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &body); err != nil {
		t.Fatal(err)
	}
	w := write{Request: server.Request{Verb: "create"}}
	w.answered(http.StatusCreated, body.Bytes(), nil)
	if w.Name != "shop" {
		t.Errorf("the name is %q, want shop", w.Name)
	}
}

func TestALineSaysWhenTheStateOfAWorkloadIsAnother(t *testing.T) {
	const running = `{status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`
	tests := map[string]struct{ resource, after, want string }{
		"a Pod that waits":            {"pods", `{status: {phase: Pending}}`, ""},
		"a Pod that runs":             {"pods", `{status: {phase: Running}}`, ""},
		"a Pod that is ready":         {"pods", running, "Running, ready"},
		"a Pod that fails":            {"pods", `{status: {phase: Running, containerStatuses: [{state: {waiting: {reason: CrashLoopBackOff}}}]}}`, "CrashLoopBackOff"},
		"a Pod that has come through": {"pods", `{status: {phase: Succeeded}}`, "Succeeded"},
		"a Pod that is being deleted": {"pods", `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}}`, "Terminating"},
		"a Pod that is gone":          {"pods", ``, "gone"},
		"a Deployment":                {"deployments", `{spec: {replicas: 3}, status: {readyReplicas: 1}}`, "1 of 3 replicas ready"},
		"a DaemonSet":                 {"daemonsets", `{status: {numberReady: 1, desiredNumberScheduled: 2}}`, "1 of 2 Pods ready"},
		"a Job":                       {"jobs", `{status: {conditions: [{type: Failed, status: "True"}]}}`, "Failed"},
		"a Job that runs":             {"jobs", `{status: {}}`, ""},
		"a claim":                     {"persistentvolumeclaims", `{status: {phase: Bound}}`, "Bound"},
		"a load balancer":             {"services", `{status: {loadBalancer: {ingress: [{ip: 198.18.0.1}]}}}`, "has the address 198.18.0.1"},
		"a ReplicaSet":                {"replicasets", `{spec: {replicas: 3}}`, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := write{code: http.StatusOK, after: tree(t, test.after)}
			w.Resource.Resource = test.resource
			if got := stateOf(w); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestLines compares all lines that there can be, with colors.
func TestLines(t *testing.T) {
	var out bytes.Buffer
	l := newLines(&out, true)
	l.now = func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, int(7*time.Millisecond), time.UTC) }
	at := func(resource, namespace, name, verb string) server.Request {
		return server.Request{Verb: verb, Resource: schema.GroupVersionResource{Resource: resource}, Namespace: namespace, Name: name}
	}
	l.banner("foo", "/tmp/kubeconfig", "", false)
	l.banner("foo", "state/kubeconfig", "state", false)
	l.banner("foo", "state/kubeconfig", "state", true)
	l.write(l.wrote(write{Request: at("customresourcedefinitions", "", "foos.example.com", "patch"), by: "play", code: 201, after: tree(t, `{a: 1}`)}))
	l.write(l.wrote(write{Request: at("foos", "default", "web", "patch"), by: "handler", code: 200, before: tree(t, `{a: 1}`), after: tree(t, `{a: 2}`)}))
	l.write(l.wrote(write{Request: at("foos", "default", "web", "patch"), by: "handler", code: 200, before: tree(t, `{a: 1}`), after: tree(t, `{a: 1}`)}))
	l.write(l.wrote(write{Request: at("foos", "other", "web", "patch"), by: "foo", code: 200, before: tree(t, `{metadata: {}}`), after: tree(t, `{metadata: {annotations: {a: b}}}`)}))
	l.write(l.wrote(write{Request: at("foos", "default", "web", "create"), by: "kubectl", code: 403, message: "no"}))
	l.write(l.wrote(write{Request: at("foos", "default", "web", "delete"), by: "kubectl", code: 200}))
	for range 2 { // the second time is no news
		l.write(l.staged(write{Request: at("pods", "default", "web-1", "patch"), by: "workloads", code: 200, after: tree(t, `{status: {phase: Succeeded}}`)}))
	}
	l.write(l.staged(write{Request: at("pods", "default", "web-1", "patch"), by: "workloads", code: 409, after: tree(t, `{status: {phase: Failed}}`)}))
	configMap := schema.GroupResource{Resource: "configmaps"}
	replicaSet := tree(t, `{metadata: {ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, controller: true}]}}`)
	held := `{metadata: {finalizers: [a/b], ownerReferences: [{kind: Foo, name: web}]}}`
	l.own(server.OwnWrite{Resource: configMap, Namespace: "default", Name: "web", Before: tree(t, `{a: 1}`)})
	l.own(server.OwnWrite{Resource: configMap, Namespace: "default", Name: "held", Before: tree(t, held),
		After: tree(t, `{metadata: {finalizers: [a/b], deletionTimestamp: "2026-01-01T00:00:00Z", ownerReferences: [{kind: Foo, name: web}]}}`)})
	l.own(server.OwnWrite{Resource: configMap, Namespace: "default", Name: "left", Before: tree(t, held), After: tree(t, `{metadata: {finalizers: [a/b]}}`)})
	l.own(server.OwnWrite{Resource: configMap, Namespace: "other", Name: "kube-root-ca.crt", Before: tree(t, `{a: 1}`)})
	l.own(server.OwnWrite{Resource: schema.GroupResource{Group: "apps", Resource: "replicasets"}, Namespace: "default", Name: "web-1", Before: replicaSet})
	l.own(server.OwnWrite{Resource: schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, Name: "foos.example.com",
		Before: tree(t, `{a: 1}`), After: tree(t, `{a: 1, status: {acceptedNames: {kind: Foo}}}`)})
	log := l.logger()
	log.Info("operator starts", "resources", "foos")
	about := log.WithValues("resource", "foos.v1.example.com", "namespace", "default", "name", "web", "handler", "a", "cause", "create")
	about.V(1).Info("handler succeeded", "took", "1ms")
	about.Info("created Deployment default/web")
	about.WithValues("cause", "child").V(1).Info("handler succeeded", "took", "1ms")
	about.V(2).Info("handler was looked at")
	about.Info("handler will be tried again", logmark.Warning, true, "error", "broken", "retryAfter", "1s")
	about.Error(errors.New("broken"), "handler failed")
	log.V(1).Info("source is synced")
	l.say("operator.yaml changed")
	l.fault("", nil)
	l.fault("stopping operator", errors.New("broken"))
	l.faults("the last one goes on", "a.yaml:1:2: wrong\na.yaml:3:4: wrong\n")

	const file = "testdata/lines.golden"
	got := strings.ReplaceAll(out.String(), "\x1b", "^")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALineWaitsForThoseOfWritesThatBeganBefore(t *testing.T) {
	for ordered, want := range map[bool]string{true: "the cause\nwhat follows\n", false: "what follows\nthe cause\n"} {
		out := &transcript{changed: make(chan struct{})}
		l := newLines(out, false)
		l.ordered = ordered
		cause, unchanged := l.begin(), l.begin()
		l.say("what follows")
		unchanged(line{})
		cause(line{what: "the cause"})
		if got := regexp.MustCompile(`(?m)^\S+ +`).ReplaceAllString(out.String(), ""); got != want {
			t.Errorf("ordered %t: the lines are %q, want %q", ordered, got, want)
		}
	}
}

func TestWhatIsLoggedWithoutALoggerHasALine(t *testing.T) {
	var out bytes.Buffer
	err := Run(t.Context(), Settings{
		Out: &out,
		Adopt: func(log logr.Logger, verbosity int) {
			log.Error(errors.New("no route to host"), "Failed to watch", "type", "v1.Pod")
			log.V(verbosity + 1).Info("a detail")
		},
		Load: func() (*dsl.Operator, error) { return nil, errors.New("no operator") },
	})
	if err == nil {
		t.Fatal("it plays without an operator")
	}
	_, got, _ := strings.Cut(out.String(), "  ")
	if diff := cmp.Diff("Failed to watch: no route to host type=v1.Pod\n", got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAPanicHasTheLinesOfTheCodeThatPanicked holds that an author finds the place at once, among frames that are of Go and of the engine.
func TestAPanicHasTheLinesOfTheCodeThatPanicked(t *testing.T) {
	var out bytes.Buffer
	l := newLines(&out, false)
	broke := guard.Here(func() { first(nil) })
	l.logger().Error(broke, "handler panicked", "resource", "foos.v1.example.com", "name", "web", "handler", "size", "stack", string(guard.Stack(broke)))
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if !strings.HasSuffix(got[0], "handler panicked: "+broke.Error()) {
		t.Errorf("the first line is %q", got[0])
	}
	calls := slices.DeleteFunc(got[1:], func(text string) bool { return !strings.HasPrefix(text, "    github.com/") })
	for i, want := range []string{"/cmd/play.first(", "/cmd/play.TestAPanicHasTheLinesOfTheCodeThatPanicked.func1("} {
		if len(calls) != 2 || !strings.Contains(calls[i], want) {
			t.Fatalf("the calls are %q", calls)
		}
	}
	if !strings.Contains(out.String(), "\n        ") || !strings.Contains(out.String(), "cmd/play/lines_test.go:") {
		t.Errorf("the place in the file is missing:\n%s", &out)
	}
}

//go:noinline
func first(of []int) int { return of[0] }
