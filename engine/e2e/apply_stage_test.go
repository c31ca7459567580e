// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

// firstWait is the back-off after the first failure. The default would have the tests wait longer.
const firstWait = 100 * time.Millisecond

// beside is a child that nothing is ever wrong with.
const beside = `
beside:
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: "${self.metadata.name}-beside"}
  data: {value: "${self.spec.other}"}
`

// applyStage is where an operator of works that is written in YAML, and only applies, is at work.
type applyStage struct {
	ns    string
	user  *cluster.User
	works *cluster.Objects
	maps  *cluster.Objects
	// running is set by run.
	running *cluster.Running
}

// newApplyStage makes a stage, with a user who may do what apply needs with works and what the rules
// say, in the stage's namespace and in others.
func newApplyStage(t *testing.T, others []string, rules ...rbacv1.PolicyRule) *applyStage {
	t.Helper()
	s := &applyStage{ns: plane.Namespace(t), user: plane.User("apply")}
	for _, ns := range append([]string{s.ns}, others...) {
		s.user.AllowIn(t, ns, append([]rbacv1.PolicyRule{
			cluster.Rule("e2e.example.com", "works", "get", "list", "watch", "patch"),
			cluster.Rule("e2e.example.com", "works/status", "patch"), eventRule(),
		}, rules...)...)
	}
	s.works, s.maps = plane.Objects(works, s.ns), plane.Objects(configMaps, s.ns)
	return s
}

// partsOperator is an operator that keeps the children. Options are lines of the resource.
func partsOperator(name, children string, options ...string) string {
	lines := []string{
		"apiVersion: handwerk.dev/v1alpha1", "kind: Operator", "metadata: {name: " + name + "}",
		"resources:", "  - resource: " + works,
	}
	for _, option := range options {
		lines = append(lines, "    "+option)
	}
	lines = append(lines, "    handlers:", "      - id: parts", fmt.Sprintf("        backoff: {initial: %s}", firstWait), "        apply:")
	return strings.Join(lines, "\n") + indented(children, 10) + "\n"
}

// indented is a text as lines that begin so many spaces later.
func indented(text string, spaces int) string {
	start := "\n" + strings.Repeat(" ", spaces)
	return start + strings.ReplaceAll(strings.TrimSpace(text), "\n", start)
}

// parsed reads an operator that works in the namespaces.
func parsed(t *testing.T, text string, namespaces ...string) *dsl.Operator {
	t.Helper()
	op, err := config.Parse("operator.yaml", []byte(text), handlers.Standard())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	op.Scope.Namespaces = namespaces
	return op
}

// run runs an operator that keeps the children in the stage's namespace and in others. It is waited
// for only until the ConfigMaps here are known: what else it needs may be missing.
func (s *applyStage) run(t *testing.T, children string, others ...string) {
	t.Helper()
	op := parsed(t, partsOperator("apply", children), append([]string{s.ns}, others...)...)
	s.running = cluster.Run(t, op, engine.Settings{Config: s.user.Config()})
	s.running.Await(t, fmt.Sprintf(`"msg"="source is synced" "resource"="configmaps" "namespace"=%q`, s.ns))
}

// verdictOf is what the condition of apply says.
func verdictOf(o *unstructured.Unstructured) (reason, message string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, each := range list {
		if c, _ := each.(map[string]any); c["type"] == "Applied" {
			return fmt.Sprint(c["reason"]), fmt.Sprint(c["message"])
		}
	}
	return "", ""
}

// awaitVerdict waits until the condition of a work has the reason and all the words.
func (s *applyStage) awaitVerdict(t *testing.T, name, reason string, words ...string) {
	t.Helper()
	what := fmt.Sprintf("the reason %s with %q", reason, words)
	o := s.works.Await(t, name, what, func(o *unstructured.Unstructured) bool {
		got, message := verdictOf(o)
		return got == reason && containsAll(message, words...)
	})
	want := "False"
	if reason == "AllApplied" {
		want = "True"
	}
	if got := cluster.Condition(o, "Applied"); got != want {
		t.Errorf("with the reason %s the condition is %s", reason, got)
	}
}

// applied waits until all of a work's children are.
func (s *applyStage) applied(t *testing.T, name string) {
	t.Helper()
	s.awaitVerdict(t, name, "AllApplied")
}

// awaitWarning waits for a Warning about a work that has the words.
func (s *applyStage) awaitWarning(t *testing.T, name, reason string, words ...string) {
	t.Helper()
	eventually(t, "an Event "+reason, func() (bool, string) {
		list, err := plane.Kubernetes().CoreV1().Events(s.ns).List(t.Context(), metav1.ListOptions{
			FieldSelector: fields.Set{"involvedObject.name": name}.String(),
		})
		if err != nil {
			return false, err.Error()
		}
		var seen []string
		for _, e := range list.Items {
			if e.Reason == reason && e.Type == corev1.EventTypeWarning && containsAll(e.Message, words...) {
				return true, ""
			}
			seen = append(seen, e.Type+" "+e.Reason+": "+e.Message)
		}
		return false, strings.Join(seen, "\n")
	})
}

// quiesce returns when the operator has come past what happened before to a work that has the child
// [beside]: twice a change of the work went through it, with all that was in the queue before, and was
// reported.
func (s *applyStage) quiesce(t *testing.T, name string) {
	t.Helper()
	for range 2 {
		value := rand.String(8)
		s.works.Patch(t, name, fmt.Sprintf(`{"spec":{"other":%q}}`, value))
		s.maps.Await(t, name+"-beside", "the change", func(o *unstructured.Unstructured) bool { return dataValue(o) == value })
		s.works.Await(t, name, "the report", func(o *unstructured.Unstructured) bool {
			return strings.Contains(asJSON(t, field(o, "status", "conditions")), fmt.Sprintf(`"observedGeneration":%d`, o.GetGeneration()))
		})
	}
}

// pauses are what the attempts for a work that failed said about when the next one comes.
func (s *applyStage) pauses(t *testing.T, name string) []time.Duration {
	t.Helper()
	var out []time.Duration
	for _, line := range s.running.With("handler will be tried again") {
		if !strings.Contains(line, fmt.Sprintf(`"name"=%q`, name)) {
			continue
		}
		_, rest, _ := strings.Cut(line, `"retryAfter"="`)
		text, _, _ := strings.Cut(rest, `"`)
		pause, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("reading %s: %v", line, err)
		}
		out = append(out, pause)
	}
	return out
}

// mustBackOff waits for two more attempts, and fails the test unless the pauses between them grow and
// they wrote nothing but once each to what is refused.
func (s *applyStage) mustBackOff(t *testing.T, name string) {
	t.Helper()
	waitFor(t, "a first attempt in the log", func() bool { return len(s.pauses(t, name)) > 0 })
	before, mark := len(s.pauses(t, name)), plane.Mark(t)
	waitFor(t, "two more attempts", func() bool { return len(s.pauses(t, name)) >= before+2 })
	writes, pauses := writesFor(plane.Writes(t, s.user.Name, mark), name), s.pauses(t, name)
	// Each pause is twice the one before, and a fifth more by chance. A busy machine takes a bit of it
	// before it is logged.
	if first, third := pauses[before-1], pauses[before+1]; third <= first {
		t.Errorf("of three pauses the first is %s and the last %s", first, third)
	}
	if n := len(writes); n > len(pauses)-before {
		t.Errorf("%d attempts made %d writes:\n%s", len(pauses)-before, n, writes)
	}
	if again := slices.IndexFunc(writes, func(w cluster.Write) bool { return w.Code < 400 }); again >= 0 {
		t.Errorf("what is done already, or said, was written again:\n%s", writes)
	}
}

// writesFor returns the writes to a work and to its children, which are called after it.
func writesFor(writes cluster.Writes, name string) cluster.Writes {
	return slices.DeleteFunc(writes, func(w cluster.Write) bool {
		return w.Name != name && !strings.HasPrefix(w.Name, name+"-")
	})
}

// trouble is what keeps a child of the work w from being applied.
type trouble struct {
	// reason and words are what is said about it.
	reason string
	words  []string
	// cure takes it away.
	cure func(t *testing.T)
}

// endsWell holds that a failure is reported, is tried again with back-off, keeps nothing else up, and is
// over by itself when its reason is gone. The work is there, and has the child [beside].
func (s *applyStage) endsWell(t *testing.T, name string, of trouble) {
	t.Helper()
	s.awaitVerdict(t, name, of.reason, of.words...)
	s.awaitWarning(t, name, of.reason, of.words...)
	s.mustBackOff(t, name)
	s.works.Patch(t, name, `{"spec":{"other":"changed"}}`)
	s.maps.Await(t, name+"-beside", "the change", func(o *unstructured.Unstructured) bool { return dataValue(o) == "changed" })
	if reason, _ := verdictOf(s.works.Get(t, name)); reason != of.reason {
		t.Errorf("the reason became %s", reason)
	}
	of.cure(t)
	s.applied(t, name)
}
