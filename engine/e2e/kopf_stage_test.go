// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/samples/kopf"
)

// kopfExample is the name of the object that kopf's examples are about.
const kopfExample = "kopf-example-1"

// kopfStage is where one of kopf's examples is at work.
type kopfStage struct {
	*cluster.Running
	ns        string
	op        *dsl.Operator
	user      *cluster.User
	kex, pods *cluster.Objects
}

// playKopf runs an operator in a namespace of its own, until it is ready.
func playKopf(t *testing.T, op *dsl.Operator) *kopfStage {
	t.Helper()
	s := &kopfStage{ns: plane.Namespace(t), op: op, user: plane.User("kopf")}
	s.user.AllowIn(t, s.ns, cluster.Rule("kopf.dev", "kopfexamples,kopfexamples/status", "get", "list", "watch", "create", "patch", "delete"),
		made("", "pods"), cluster.Rule("coordination.k8s.io", "leases", "*"), eventRule())
	s.kex, s.pods = plane.Objects(kopf.Examples, s.ns), plane.Objects("pods.v1", s.ns)
	op.Scope.Namespaces = []string{s.ns}
	s.begin(t)
	return s
}

// begin runs the operator, once more after it was stopped.
func (s *kopfStage) begin(t *testing.T) {
	t.Helper()
	s.Running = cluster.Run(t, s.op, engine.Settings{Config: s.user.Config()})
	s.AwaitReady(t)
}

// example makes the object of the examples.
func (s *kopfStage) example(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	return plane.Apply(t, s.ns, "samples/kopf/example.yaml")[0]
}

// pod makes a Pod.
func (s *kopfStage) pod(t *testing.T, name string) {
	t.Helper()
	plane.Apply(t, s.ns, "apiVersion: v1\nkind: Pod\nmetadata: {name: "+name+", labels: {app: "+name+"}}\nspec: {containers: [{name: main, image: busybox}]}")
}

// runs waits until a handler has come out so a number of times.
func (s *kopfStage) runs(t *testing.T, handler, outcome string, want float64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s to come out %s %v times", handler, outcome, want), func() (bool, string) {
		got := s.counted(t, handler, outcome)
		return got == want, fmt.Sprint(got)
	})
}

// counted is how often a handler has come out so; an empty outcome stands for all.
func (s *kopfStage) counted(t *testing.T, handler, outcome string) (sum float64) {
	t.Helper()
	families, err := s.Metrics.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "handwerk_handler_runs_total" {
			continue
		}
		for _, series := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range series.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["handler"] == handler && (outcome == "" || labels["outcome"] == outcome) {
				sum += series.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// eventsIn are the Events about objects of a kind in a namespace, each once, by type, reason and message.
func eventsIn(t *testing.T, ns, kind string) map[string]bool {
	t.Helper()
	list, err := plane.Kubernetes().CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, e := range list.Items {
		found[strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Type, e.Reason, e.Message))] = true
	}
	return found
}

// kopfInYAML is one of the examples that are YAML. Each replacement is of an old text by a new one.
func kopfInYAML(t *testing.T, name string, replacements ...string) *dsl.Operator {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../samples/kopf", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(string(text), replacements[i]) {
			t.Fatalf("%s has no %q", name, replacements[i])
		}
	}
	op, err := config.Parse(name, []byte(strings.NewReplacer(replacements...).Replace(string(text))), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// kopfInGo is one of those that are Go.
func kopfInGo(declare func(*dsl.Operator)) *dsl.Operator {
	op := dsl.New("")
	declare(op)
	return op
}

// logText is a log that tests read.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write adds to the log.
func (l *logText) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// count is how often a text is in the log.
func (l *logText) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// await waits until a text is in the log.
func (l *logText) await(t *testing.T, text string) {
	t.Helper()
	waitFor(t, text, func() bool { return l.count(text) > 0 })
}

// logger is one that writes there.
func (l *logText) logger() logr.Logger {
	return funcr.New(func(_, line string) { fmt.Fprintln(l, line) }, funcr.Options{})
}

// running reports whether a Pod runs.
func running(o *unstructured.Unstructured) bool {
	return field(o, "status", "phase") == string(corev1.PodRunning)
}
