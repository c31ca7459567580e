// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/handlers"
)

// releases is a foreign CRD. STATUS has the fields of its status.
const releases = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: releases.GROUP}
spec:
  group: GROUP
  names: {kind: Release, plural: releases}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      SUBRESOURCES
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {a: {type: string}}}
            status: {type: object, properties: {STATUS}}
`

// failingReleases names no condition. Its handler fails.
const failingReleases = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: releaser}
resources:
  - resource: releases.v1.GROUP
    READY
    handlers:
      - {id: note, set: {annotations: {seen: "${string(1 / (self.metadata.generation - 1))}"}}}
`

// TestTheEnginesOwnConditionsNeedASchemaThatKeepsThem holds that validate --cluster and the start say of a foreign CRD which conditions
// of the engine's own it would not keep, and that no part of them is written: neither for a failure nor for a pause.
func TestTheEnginesOwnConditionsNeedASchemaThatKeepsThem(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ status, ready, subresources, want string }{
		"no list of conditions": {
			`phase: {type: string}`, "", "subresources: {status: {}}",
			"the schema has no status.conditions, so the engine does not write its own: HandlersFailing, Paused",
		},
		"conditions without a status and a reason": {
			`conditions: {type: array, items: {type: object, properties: {type: {type: string}, message: {type: string}}}}`, "ready: true", "subresources: {status: {}}",
			"the schema's status.conditions have no status and no reason, so the engine does not write its own: Ready, Reconciling, Stalled, HandlersFailing, Paused",
		},
		"no list of conditions, and no subresource": {
			`phase: {type: string}`, "ready: true", "",
			"the schema has no status.conditions, so the engine does not write its own: HandlersFailing, Paused",
		},
		"whole conditions": {
			`conditions: {type: array, items: {type: object, properties: {type: {type: string}, status: {type: string}, reason: {type: string}, message: {type: string}, lastTransitionTime: {type: string}, observedGeneration: {type: integer}}}}`, "", "subresources: {status: {}}", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := ownGroup("conditions")
			plane.Apply(t, "", strings.NewReplacer("GROUP", group, "STATUS", tt.status, "SUBRESOURCES", tt.subresources).Replace(releases))
			text := strings.NewReplacer("GROUP", group, "READY", tt.ready).Replace(failingReleases)
			validatesWith(t, text, tt.want)
			keepsNoHalf(t, group, text, tt.want != "")
		})
	}
}

// validatesWith holds that a check of a configuration against the cluster has this warning, which --strict takes for no fault; empty
// for none.
func validatesWith(t *testing.T, text, want string) {
	t.Helper()
	p := plane.Operator(t, cluster.Launch{Args: []string{"validate", "--cluster", "--strict", "--config", write(t, text)}, Config: plane.User("reader").Config()})
	code, said := p.Wait(t).Code, strings.Join(p.All(), "\n")
	if code != 0 || !strings.Contains(said, want) || strings.Contains(said, "warning: ") != (want != "") {
		t.Errorf("exit code %d, want 0 and %q:\n%s", code, want, said)
	}
}

// keepsNoHalf holds that the operator fails and pauses without a condition if the schema keeps none, and says so before it has an
// object.
func keepsNoHalf(t *testing.T, group, text string, silent bool) {
	t.Helper()
	user := plane.User("releaser")
	user.Allow(t, crdRules("get", "list", "watch"), cluster.Rule(group, "releases", "get", "list", "watch", "patch"), cluster.Rule(group, "releases/status", "patch"),
		cluster.Rule("", "events", "create", "patch"), cluster.Rule("events.k8s.io", "events", "create", "patch"))
	op, err := config.Parse("operator.yaml", []byte(text), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	op.Settings.GracePeriod = grace
	running := cluster.Run(t, op, engine.Settings{Config: user.Config()})
	const says = "conditions are not written"
	if silent {
		running.Await(t, says)
	}
	objects := plane.Objects("releases.v1."+group, plane.Namespace(t))
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	o.SetAPIVersion(group + "/v1")
	o.SetKind("Release")
	o.SetName("first")
	objects.Create(t, o)
	has := func(kind string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool { return cluster.Condition(o, kind) == "True" }
	}
	if !silent {
		objects.Await(t, "first", "the condition of failing handlers", has("HandlersFailing"))
	}
	running.Await(t, "handler will be tried again")
	objects.Patch(t, "first", `{"metadata": {"annotations": {"releaser.handwerk.dev/paused": "for a while"}}}`)
	running.Await(t, "object is paused")
	if !silent {
		objects.Await(t, "first", "the condition of the pause", has("Paused"))
		return
	}
	running.Stop(t)
	if list, found, _ := unstructured.NestedSlice(objects.Get(t, "first").Object, "status", "conditions"); found {
		t.Errorf("conditions were written: %v", list)
	}
	if n := len(running.With(says)); n != 1 {
		t.Errorf("the log says %d times that conditions are not written", n)
	}
}
