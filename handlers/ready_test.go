// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const apps, deployments = "apps.v1.example.com", "deployments.v1.apps"

// appHead is an operator whose Apps have a Deployment and a ConfigMap, and perhaps more. Its CRD is its own.
const appHead = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: op}
resources:
- resource: apps.v1.example.com
  schema: {kind: App, spec: {replicas: integer, image: string, text: string}, status: {phase: string, available: integer}}
  %s
  handlers:
  - id: children
    apply:
      web:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: "${self.metadata.name}"}
        spec:
          replicas: ${self.spec.replicas}
          selector: {matchLabels: {app: "${self.metadata.name}"}}
          template: {metadata: {labels: {app: "${self.metadata.name}"}}, spec: {containers: [{name: app, image: "${self.spec.image}"}]}}
      text:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${self.metadata.name}"}
        data: {text: "${self.spec.text}"}
`

// appOperator reads the operator with lines for the resource, and with more handlers.
func appOperator(t *testing.T, lines, more string) *dsl.Operator {
	t.Helper()
	op, err := config.Parse("operator.yaml", []byte(fmt.Sprintf(appHead, lines)+more), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// app is a cluster with an App called me.
type app struct {
	*kit.Cluster
	t *testing.T
	p *kit.Process
}

// inApp plays on a cluster with the operator and an App.
func inApp(t *testing.T, lines, more string, play func(a *app)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		op := appOperator(t, lines, more)
		c.Create(&unstructured.Unstructured{Object: op.Resources()[0].CRD})
		a := &app{Cluster: c, t: t, p: c.Start(op)}
		c.Create("{apiVersion: example.com/v1, kind: App, metadata: {name: me, namespace: default}, spec: {replicas: 2, image: nginx, text: hello}}")
		c.Settle()
		play(a)
	})
}

// rollOut gives the Deployment a status as its controller does.
func (a *app) rollOut(updated, available int64) {
	a.Update(deployments, "default", "me", func(o *unstructured.Unstructured) {
		o.Object["status"] = map[string]any{
			"observedGeneration": o.GetGeneration(), "replicas": int64(2), "updatedReplicas": updated, "readyReplicas": available, "availableReplicas": available,
			"conditions": []any{map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}},
		}
	})
	a.Settle()
}

// ready is what the App says in its condition Ready.
func (a *app) ready() string {
	o := a.Get(apps, "default", "me")
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		if c := item.(map[string]any); c["type"] == "Ready" {
			late := ""
			if c["observedGeneration"] != o.GetGeneration() {
				late = " (of an earlier generation)"
			}
			return strings.TrimSpace(fmt.Sprintf("%v %v: %v", c["status"], c["reason"], c["message"])) + late
		}
	}
	return "nothing"
}

// says holds what the App says, and that its health, which operator status counts, is ready unless the condition is False.
func (a *app) says(when, want string) {
	a.t.Helper()
	a.Settle()
	if got := a.ready(); got != want {
		a.t.Errorf("%s it says %q\nwant %q", when, got, want)
	}
	var unwell []string
	for _, c := range a.p.Engine().Ready() {
		if kind, _, _ := strings.Cut(c.Name, "/"); slices.Contains([]string{"waiting", "failing", "held", "paused"}, kind) {
			unwell = append(unwell, c.String())
		}
	}
	if (len(unwell) > 0) != strings.HasPrefix(want, "False") {
		a.t.Errorf("%s it says %q, and its health is %q", when, want, unwell)
	}
}

const (
	allReady = "True AllReady: All children are ready."
	created  = "False LessReplicas: Deployment default/me: not all of 2 are created"
	updated  = "False LessUpdated: Deployment default/me: not all of 2 are updated"
)

// wrote holds what the operator has written since the last call.
func (a *app) wrote(when string, want ...string) {
	a.t.Helper()
	var got []string
	for _, w := range a.p.Writes() {
		got = append(got, w.String())
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		a.t.Errorf("%s it wrote\n%s\nwant\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// statusWrite is a write of the App's status.
const statusWrite = "patch apps/status default/me"

func TestAnOwnResourceSaysWhetherItIsReady(t *testing.T) {
	inApp(t, "", "", func(a *app) {
		a.says("at first", created)
		a.p.Writes()
		a.rollOut(2, 1)
		a.says("rolled out in part", "False LessAvailable: Deployment default/me: not all of 2 are available")
		a.rollOut(2, 2)
		a.says("rolled out", allReady)
		a.wrote("of a roll-out", statusWrite, statusWrite)
		a.Advance(time.Hour)
		a.p.Restart()
		a.says("after a restart", allReady)
		a.wrote("at rest")
	})
}

// TestReadyIsNeverTrueOfAGenerationThatIsNotRolledOut holds what kubectl wait, which looks at the condition's observedGeneration, waits for.
func TestReadyIsNeverTrueOfAGenerationThatIsNotRolledOut(t *testing.T) {
	inApp(t, "", "", func(a *app) {
		a.rollOut(2, 2)
		a.says("rolled out", allReady)
		var seen []string
		stop := a.Rewrite(apps, func(o *unstructured.Unstructured) {
			list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			for _, item := range list {
				if c := item.(map[string]any); c["type"] == "Ready" {
					seen = append(seen, fmt.Sprint(c["status"], " of ", c["observedGeneration"]))
				}
			}
		})
		defer stop()
		a.p.Writes()
		spec(a.Cluster, apps, "me", "nginx:2", "spec", "image")
		a.says("after the change", "False LatestGenerationNotObserved: Deployment default/me: its controller has not seen the last change yet")
		a.wrote("of the change", "patch deployments default/me", statusWrite)
		a.rollOut(0, 2)
		a.says("while it is rolled out", updated)
		a.rollOut(2, 2)
		a.says("in the end", allReady)
		for i, what := range seen {
			if what == "True of 2" && i < len(seen)-1 {
				t.Errorf("it was True too early: %v", seen)
			}
		}
	})
}

func TestReadyIsFalseWhileAnApplyFails(t *testing.T) {
	inApp(t, "", "", func(a *app) {
		a.rollOut(2, 2)
		a.says("rolled out", allReady)
		end := a.Refuse("configmaps.v1", func(*unstructured.Unstructured) error { return fmt.Errorf("full") })
		spec(a.Cluster, apps, "me", "bye", "spec", "text")
		if got := a.ready(); !strings.HasPrefix(got, "False ") || !strings.Contains(got, "full") || strings.Contains(got, "earlier") {
			t.Errorf("while the apply fails it says %q", got)
		}
		end()
		a.Advance(time.Minute)
		a.says("mended", allReady)
	})
}

func TestReadyOfAnotherHandlerThatFails(t *testing.T) {
	inApp(t, "", "  - id: phase\n    set: {status: {phase: \"${string(100 / (self.spec.replicas - 3))}\"}}\n", func(a *app) {
		a.rollOut(2, 2)
		a.says("rolled out", allReady)
		spec(a.Cluster, apps, "me", int64(3), "spec", "replicas")
		a.Advance(time.Minute)
		if got, want := a.ready(), "False HandlerFailing: Handler phase: "; !strings.HasPrefix(got, want) {
			t.Errorf("it says %q, want %q", got, want)
		}
		a.p.Writes()
		a.Advance(time.Hour)
		a.wrote("for more attempts")
		spec(a.Cluster, apps, "me", int64(2), "spec", "replicas")
		a.rollOut(2, 2)
		a.says("mended", allReady)
	})
}

func TestReadyIsTurnedOffAndOn(t *testing.T) {
	inApp(t, "ready: false", "", func(a *app) {
		a.rollOut(2, 2)
		a.says("turned off", "nothing")
	})
	inApp(t, "", "  - id: said\n    set: {conditions: [{type: Ready, status: true, reason: Mine, message: Of mine.}]}\n", func(a *app) {
		a.says("set by a handler", "True Mine: Of mine.")
	})
	_, err := config.Parse("operator.yaml", []byte(fmt.Sprintf(appHead, "ready: true")+
		"  - id: said\n    set: {conditions: [{type: Ready, status: true}]}\n"), handlers.Standard())
	if want := "ready: handler said sets the condition Ready itself"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("turned on where a handler sets it: %v, want %s", err, want)
	}
	inApp(t, "", "  - {id: code, call: foo.Farewell}\n", func(a *app) {
		a.says("where Go code may set it", "nothing")
	})
}

// TestAHandlerThatReadsReadyRunsForIt holds that a handler which writes in the same reconcile in which Ready changes has not seen that.
func TestAHandlerThatReadsReadyRunsForIt(t *testing.T) {
	inApp(t, "", `  - id: phase
    set:
      status:
        available: ${children.web.?status.?availableReplicas.orValue(0)}
        phase: "${self.?status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status == 'True') ? 'Up' : 'Down'}"
`, func(a *app) {
		for _, available := range []int64{2, 1, 2} {
			a.rollOut(2, available)
			if got, want := text(a.Get(apps, "default", "me"), "status.phase"), map[int64]string{1: "Down", 2: "Up"}[available]; got != want {
				t.Errorf("with %d available it is %s (%s), want %s", available, got, a.ready(), want)
			}
		}
		a.Writes()
		a.Advance(time.Hour)
		a.wrote("at rest")
	})
}

// TestReadyOfAnotherControllerIsLeftAlone holds that the condition stays with the field manager that has set it, and that a read is
// made once for each object to find out.
func TestReadyOfAnotherControllerIsLeftAlone(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		op := appOperator(t, "", "")
		c.Create(&unstructured.Unstructured{Object: op.Resources()[0].CRD})
		c.Create("{apiVersion: example.com/v1, kind: App, metadata: {name: me, namespace: default}, spec: {replicas: 2, image: nginx, text: hello}}")
		c.Update(apps, "default", "me", func(o *unstructured.Unstructured) {
			o.Object["status"] = map[string]any{"conditions": []any{map[string]any{
				"type": "Ready", "status": "Unknown", "reason": "Theirs", "message": "Wait for us.", "lastTransitionTime": "2000-01-01T00:00:00Z", "observedGeneration": int64(1),
			}}}
		})
		a := &app{Cluster: c, t: t, p: c.Start(op)}
		a.says("at first", "Unknown Theirs: Wait for us.")
		a.rollOut(2, 2)
		a.says("rolled out", "Unknown Theirs: Wait for us.")
	})
}

// TestAnUpgradeGivesEachObjectTheConditionOnce holds what the new condition costs an object that an earlier version has handled.
func TestAnUpgradeGivesEachObjectTheConditionOnce(t *testing.T) {
	inApp(t, "ready: false", "", func(a *app) {
		a.rollOut(2, 2)
		if err := a.p.Stop(); err != nil {
			t.Fatal(err)
		}
		a.p = a.Start(appOperator(t, "", ""))
		a.says("after the upgrade", allReady)
		a.wrote("for the upgrade", statusWrite)
		a.Advance(time.Hour)
		a.wrote("later")
	})
}
