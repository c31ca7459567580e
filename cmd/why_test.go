// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/sandbox"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// stuck is the answer about an object that is stuck in many ways, with a text that would steer the terminal.
func stuck() why.Answer {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) *time.Time { return new(now.Add(d)) }
	ran := why.Run{At: *at(-time.Minute), Cause: "update", Number: 2, Outcome: "retry", Error: "no route\nto \x1b[2Jhost", Took: metav1.Duration{Duration: 1500 * time.Millisecond}}
	return why.Answer{
		Operator: "foo", At: now, Resource: "foos.v1.example.com", Kind: "Foo", Namespace: "shop", Name: "web", Health: "held", Since: at(-time.Hour),
		Idle: why.IdleFor(why.BreakerOpen, ""), Due: at(30 * time.Second),
		Deletion: &why.Deletion{Since: *at(-time.Hour), Finalizers: []string{"foo.handwerk.dev/finalizer"}, Held: []string{"child Job shop/web, which still exists"}},
		Handlers: []why.Handler{{
			ID: "app", Reason: "BackOff", Says: "handler app failed, and is tried again: no route", Attempts: 2, Next: at(8 * time.Second), Last: &ran,
			Changed: []why.Change{{Path: "spec.size", From: "1", To: "2"}},
			Clauses: []dsl.Clause{{What: "when", Text: "self.spec.size > 1", Place: "foo.yaml:12", Holds: true, Values: []dsl.ClauseValue{{Text: "self.spec.size", Value: "2"}}}},
		}},
		Children: []why.Child{{Kind: "Job", Namespace: "shop", Name: "web", Handler: "app", By: "reference", State: "not ready", Says: "Job shop/web: 0 of 1 ready"}},
		Machines: []why.Machine{{ID: "life", State: "Pending", Since: at(-time.Hour), Ways: []why.Way{{To: "Done", When: dsl.Clause{What: "when", Text: "self.spec.done"}}}}},
		Rights:   []string{"may not create jobs.batch (handler foos/app)"},
		History: []why.Reconcile{{
			At: ran.At, Woken: []string{"the object changed"}, Changed: []why.Change{{Path: "spec.size", From: "1", To: "2"}},
			Attempts: []why.Attempt{{Handler: "app", Run: ran}}, More: 3, Latest: at(-time.Second),
		}},
	}
}

// TestWhy compares all that a person sees of an answer.
func TestWhy(t *testing.T) {
	for name, test := range map[string]struct {
		answer   why.Answer
		args     []string
		terminal bool
	}{
		"why-stuck":         {answer: stuck()},
		"why-stuck-colored": {answer: stuck(), terminal: true},
		"why-stuck-json":    {answer: stuck(), args: []string{"-o", "json"}},
		"why-unseen":        {answer: why.Answer{Operator: "foo", Kind: "Foo", Namespace: "shop", Name: "web", Unseen: "there is no such object"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.shows = func(io.Writer) bool { return test.terminal }
			code := b.execute(t.Context(), append([]string{"why", "foo/web", "-n", "shop", "--address", answering(t, test.answer)}, test.args...))
			compareGolden(t, name, fmt.Sprintf("-- exit %d --\n-- stdout --\n%s-- stderr --\n%s", code, b.out.String(), b.err.String()))
		})
	}
}

// TestWhyAsksAboutTheObject holds what is asked, and that an operator which does not handle the resource has the last word.
func TestWhyAsksAboutTheObject(t *testing.T) {
	var asked why.Question
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ = why.ParseQuestion(r.URL.Query())
		w.Header().Set(ops.OperatorHeader, "foo")
		w.WriteHeader(http.StatusNotFound)
		if err := json.NewEncoder(w).Encode(metav1.Status{Code: http.StatusNotFound, Message: "operator foo does not handle it"}); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	b := newBench(t)
	code := b.execute(t.Context(), []string{"why", "foo.example.com/web", "--namespace", "shop", "--history", "--address", server.Listener.Addr().String()})
	if want := (why.Question{Resource: "foo.example.com", Namespace: "shop", Name: "web", History: true}); asked != want {
		t.Errorf("asked %+v, want %+v", asked, want)
	}
	if want := "error: operator foo does not handle it\n"; code != exitFailed || b.err.String() != want {
		t.Errorf("exit code %d, stderr %q, want %q", code, b.err.String(), want)
	}
}

// TestWhyOfAnOperatorThatIsDown holds that the object alone is read where no operator answers.
func TestWhyOfAnOperatorThatIsDown(t *testing.T) {
	kubeconfig := sandbox.New(t, sandbox.Options{NoWorkloads: true}).Kubeconfig()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", Finalizers: []string{"foo.handwerk.dev/finalizer"}}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().ConfigMaps("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		resource string
		code     int
		want     string
	}{
		"a short name":           {"cm/web", exitOK, "    held by finalizer foo.handwerk.dev/finalizer\n"},
		"a kind":                 {"ConfigMap/web", exitOK, "ConfigMap default/web\n"},
		"that nothing answers":   {"configmaps/web", exitOK, "the operator does not answer, so this is from the API server alone"},
		"an object that is gone": {"cm/none", exitFailed, `configmaps "none" not found`},
		"an unknown resource":    {"foo/web", exitFailed, "reading foo/web: no matches"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "KUBECONFIG="+kubeconfig)
			code := b.execute(t.Context(), []string{"why", test.resource, "--address", "unix:" + filepath.Join(t.TempDir(), "none.sock")})
			if said := b.out.String() + b.err.String(); code != test.code || !strings.Contains(said, test.want) {
				t.Errorf("exit code %d, want %d, and %q:\n%s", code, test.code, test.want, said)
			}
		})
	}
}

// TestWhatABookSaysOfAHandler holds the sentence about a handler, made from its entry in a stored book alone.
func TestWhatABookSaysOfAHandler(t *testing.T) {
	for want, e := range map[string]progress.Entry{
		"handler app had finished when the operator last stored its progress":                    {Handled: "x"},
		"handler app is to run for update":                                                       {Try: progress.Record{Cause: dsl.Update}},
		"handler app failed, and is tried again: no route":                                       {Try: progress.Record{Cause: dsl.Update, Attempts: 2, Message: "no route"}},
		"handler app waits for Secret shop/registry":                                             {Try: progress.Record{Cause: dsl.Update, Attempts: 1, Waiting: true, Message: "waiting for Secret shop/registry"}},
		"handler app failed for good: no such size; it runs again when what it looks at changes": {Handled: "x", FailedFor: dsl.Update, Try: progress.Record{Cause: dsl.Update, Done: true, Failed: true, Message: "no such size"}},
	} {
		t.Run(want, func(t *testing.T) {
			h := storedHandler("app", e)
			if h.Says != want {
				t.Errorf("it says %q", h.Says)
			}
			if open := e.Try.Cause != "" && !e.Try.Done; open && h.Attempts != e.Try.Attempts || !open && h.Attempts > 0 {
				t.Errorf("it counts %d attempts", h.Attempts)
			}
		})
	}
}

// TestWhyOfWhatCannotBeAsked holds that a mistake of the person who asks is no operator that does not answer, and that an object
// which is not there is an error, whether the operator runs or not.
func TestWhyOfWhatCannotBeAsked(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.yaml")
	gone := why.Answer{Operator: "foo", Kind: "Foo", Namespace: "shop", Name: "nope", Unseen: why.NoObject}
	lab(t, func(t *testing.T, _ *kit.Cluster, run func(string) (int, string)) {
		for args, want := range map[string]string{
			"why foo/web --address nonsense":                       "error: asking at nonsense: want host:port, or unix:/path (--address)\n",
			"why foo/web --config " + none:                         none,
			"why foo/nope --address " + answering(t, gone):         `error: foo "nope" not found` + "\n",
			"why foo/nope --address unix:/nowhere/s":               `"nope" not found`,
			"why foo/nope -o json --address " + answering(t, gone): `error: foo "nope" not found` + "\n",
		} {
			if code, said := run(args); code != exitFailed || !strings.Contains(said, want) {
				t.Errorf("%s: exit %d, want %q in:\n%s", args, code, want, said)
			}
		}
	})
}

// TestTheNamespaceOfRunIsNotThatOfAnObject holds that $HANDWERK_NAMESPACE, by which operator run gets its scope, leaves the default
// of other commands as it is.
func TestTheNamespaceOfRunIsNotThatOfAnObject(t *testing.T) {
	b := newBench(t)
	b.Env = append(b.Env, "HANDWERK_NAMESPACE=team-a,team-b")
	root := b.root()
	for _, name := range []string{"why", "tree", "retry"} {
		c, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		if err := setFromEnv(c.Flags(), b.Env); err != nil {
			t.Error(err)
		}
		if got := c.Flags().Lookup("namespace").Value.String(); got != "" {
			t.Errorf("operator %s asks in namespace %s", name, got)
		}
	}
}
