// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestTheVerdictNamesTheOneCause holds the line under the title: how the object stands, and the cause that decides.
func TestTheVerdictNamesTheOneCause(t *testing.T) {
	const (
		keeps    = `{id: keep, apply: {web: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {size: "${string(self.spec.size)}"}}}}`
		deploys  = `{id: app, apply: {web: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}}}`
		limited  = `{id: storage, when: "self.spec.size < 3", apply: {web: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {size: "${string(self.spec.size)}"}}}}`
		opposite = `{id: small, causes: [reconcile], when: "self.spec.size < 3", set: {status: {is: small}}}, {id: large, causes: [reconcile], when: "self.spec.size >= 3", set: {status: {is: large}}}`
		orphans  = `{id: keep, apply: {web: {onDelete: delete, ownership: labelled, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}}}}`
	)
	for name, tt := range map[string]struct {
		handlers string
		then     func(s *scene.Stage)
		want     string
	}{
		"all is well": {keeps, nil, "ready"},
		"handlers with opposite whens are well, too": {opposite, nil, "ready"},
		"a change that a when keeps from the children": {limited, func(s *scene.Stage) { s.Resize(9) },
			"stuck: handler storage does not run: its when is false: self.spec.size < 3 (op.yaml:1), where self.spec.size is 9"},
		"a child is not ready": {deploys, nil, "not ready: child Deployment default/web: 0 of 1 created"},
		"a failure counts more than a child that is not ready": {deploys + `, ` + strings.ReplaceAll(keeps, "{web: ", "{settings: "), func(s *scene.Stage) {
			s.FailWhile("patch", scene.ConfigMaps, apierrors.NewInternalError(errors.New("no room")))
			s.Resize(2)
		}, `failing: handler keep failed`},
		"a pause counts more than anything else": {deploys, pauseWeb, "paused: while we move (take off annotation op.handwerk.dev/paused to go on)"},
		"a pause of an object that is being deleted": {orphans, func(s *scene.Stage) {
			pauseWeb(s)
			s.Remove()
		}, "paused: while we move (take off annotation op.handwerk.dev/paused to go on); it is being deleted"},
		"a finalizer of somebody else": {deploys, func(s *scene.Stage) {
			s.Update(scene.Foos, "default", "web", finalize("example.com/theirs"))
			s.Remove()
			s.Advance(8 * time.Minute)
		}, "being deleted for 8m: held by finalizer example.com/theirs, which is not this operator's"},
		"a child that holds the deletion": {orphans, func(s *scene.Stage) {
			s.Update(scene.ConfigMaps, "default", "web", finalize("example.com/theirs"))
			s.Remove()
			s.Advance(8 * time.Minute)
		}, "being deleted for 8m: held by child ConfigMap default/web, which is being deleted; it has finalizers: example.com/theirs"},
		"its own condition": {keeps, func(s *scene.Stage) {
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{
					"type": "Ready", "status": string(metav1.ConditionFalse), "reason": "NoLicence", "message": "It has expired.", "lastTransitionTime": "2000-01-01T00:00:00Z",
				}}, "status", "conditions")
			})
		}, "not ready: condition Ready is False (NoLicence): It has expired."},
		"a write that is refused": {`{id: beat, causes: [reconcile], set: {labels: {size: "${string(self.spec.size)}"}}}`, func(s *scene.Stage) {
			s.FailWhile("patch", scene.Foos, apierrors.NewInternalError(errors.New("no room")))
			s.Resize(2)
		}, "failing: reconcile could not be finished: writing object: Internal error occurred: no room"},
	} {
		t.Run(name, func(t *testing.T) {
			text := `{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: op}, resources: [{resource: foos.v1.example.com, handlers: [` + tt.handlers + `]}]}`
			scene.PlayConfiguration(t, text, func(s *scene.Stage) {
				s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
				s.Launch()
				s.Create(scene.Web)
				s.Settle()
				if tt.then != nil {
					tt.then(s)
					s.Settle()
				}
				got := strings.Split(answer(s), "\n")
				if want := "  " + tt.want; got[0] != "Foo default/web of operator op" || !strings.HasPrefix(got[1], want) {
					t.Errorf("want the verdict %q:\n%s", tt.want, strings.Join(got, "\n"))
				}
			})
		})
	}
}

// TestARelatedObjectThatChangesIsNamed holds that the history names what has woken a reconcile.
func TestARelatedObjectThatChangesIsNamed(t *testing.T) {
	const text = `{apiVersion: handwerk.dev/v1alpha1, kind: Operator, metadata: {name: op}, resources: [{resource: foos.v1.example.com,
related: [{name: conf, resource: configmaps.v1, object: conf}], handlers: [{id: app, causes: [reconcile], set: {status: {size: "${related.?conf.data.size.orValue('0')}"}}}]}]}`
	scene.PlayConfiguration(t, text, func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Settle()
		s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: conf}, data: {size: "1"}}`)
		s.Settle()
		s.Update(scene.ConfigMaps, "default", "conf", scene.SetField("2", "data", "size"))
		s.Settle()
		s.Delete(scene.ConfigMaps, "default", "conf")
		s.Settle()
		got := answerTo(s, history)
		for _, want := range []string{"related configmaps default/conf came", "related configmaps default/conf changed", "related configmaps default/conf was deleted"} {
			if !strings.Contains(got, want) {
				t.Errorf("the history lacks %q:\n%s", want, got)
			}
		}
	})
}
