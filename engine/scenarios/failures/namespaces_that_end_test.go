// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// ends is the API server's refusal to make something in a namespace that is being deleted.
func ends(namespace string) error {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("unable to create new content in namespace "+namespace+" because it is being terminated"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace", Message: "namespace " + namespace + " is being terminated",
	})
	return err
}

// appliesMaps is a resource whose handler keeps some ConfigMaps.
const appliesMaps = `{resource: foos.v1.example.com, handlers: [{id: maps, apply: {
	a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}},
	c: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {b: "${children.b.metadata.uid}"}}}}]}`

// TestNothingIsMadeInANamespaceThatIsBeingDeleted holds that a handler which is refused for that ends, says so once, and is not
// tried again, whatever else it waits for.
func TestNothingIsMadeInANamespaceThatIsBeingDeleted(t *testing.T) {
	launch := func(s *scene.Stage) (failed func() []string) {
		failed = scene.LaunchWithLog(s, `"handler failed for good"`)
		s.Create(scene.Web)
		s.Settle()
		s.Forget()
		return failed
	}
	said := `"handler failed for good".*ConfigMap default/\w: its namespace is being deleted: nothing can be made in it`
	t.Run("the handler ends with the first child that is missing, and says so once", func(t *testing.T) {
		scene.PlayYAML(t, appliesMaps, func(s *scene.Stage) {
			failed := launch(s)
			end := s.FailWhile("patch", scene.ConfigMaps, ends("default"))
			for _, child := range []string{"a", "b", "c"} { // the namespace's controller deletes them in this order
				s.Delete(scene.ConfigMaps, "default", child)
				s.Settle()
			}
			s.Advance(24 * time.Hour)
			s.WantLines(failed, said)
			if n := end(); n != 1 {
				s.T.Errorf("%d requests were refused, want 1", n)
			}
		})
	})
	t.Run("another process tries once", func(t *testing.T) {
		scene.PlayYAML(t, appliesMaps, func(s *scene.Stage) {
			launch(s)
			s.FailWhile("patch", scene.ConfigMaps, ends("default"))
			s.Delete(scene.ConfigMaps, "default", "a")
			s.Advance(time.Hour)
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Called("maps child", "maps resume")
		})
	})
	t.Run("in another namespace the handler is tried until that is there again", func(t *testing.T) {
		scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [{id: maps, apply: {a: {ownership: labelled, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: elsewhere}}}}}]}`, func(s *scene.Stage) {
			s.CreateElsewhere()
			failed := launch(s)
			end := s.FailWhile("patch", scene.ConfigMaps, ends("elsewhere"))
			s.Delete(scene.ConfigMaps, "elsewhere", "a")
			s.Advance(time.Minute)
			end()
			s.Advance(time.Hour)
			if s.Get(scene.ConfigMaps, "elsewhere", "a") == nil {
				s.T.Error("the child is not there")
			}
			s.WantLines(failed)
		})
	})
}

// TestADeletionInANamespaceThatIsBeingDeletedGoesOn holds that a delete handler which cannot make what it wants does not hold its
// object. Handlers that must come after its success do not run.
func TestADeletionInANamespaceThatIsBeingDeletedGoesOn(t *testing.T) {
	makes := func(ctx context.Context, r *dsl.Request) error {
		_, err := r.Client.Create(ctx, scene.ConfigMapIn("default", "backup"))
		return err
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"what comes after it does not run, and the others do": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("backup", j.Note("backup", makes))
				foo.OnDelete("after", j.Note("after"), dsl.After("backup"))
				foo.OnDelete("beside", j.Note("beside"))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.FailWhile("create", scene.ConfigMaps, ends("default"))
				s.Remove()
				s.Called("backup delete", "beside delete")
				s.WantGone()
			},
		},
		"so it is with sub-handlers": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("backup", func(_ context.Context, r *dsl.Request) error {
					r.Handle("one", makes)
					r.Handle("two", makes)
					return nil
				})
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.FailWhile("create", scene.ConfigMaps, ends("default"))
				s.Remove()
				s.WantGone()
			},
		},
		"a new process does not hold the object either": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("backup", j.Note("backup", makes))
				foo.OnDelete("slow", j.Note("slow", scene.RetriesAfter(time.Hour)))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.FailWhile("create", scene.ConfigMaps, ends("default"))
				s.Remove()
				s.Advance(time.Minute) // so that it is stored
				s.Called("backup delete", "slow delete")
				s.Upgrade(func(foo *dsl.Resource, j *kit.Journal) {
					foo.OnDelete("backup", j.Note("backup", makes))
					foo.OnDelete("slow", j.Note("slow"))
				}, func() {})
				s.Advance(2 * time.Hour)
				s.Called("slow delete 2")
				s.WantGone()
			},
		},
		"so it is with one that lets its object go when it fails, and with all that come after it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("backup", j.Note("backup", scene.Fails(dsl.Permanent(scene.ErrAgain))), dsl.Release())
				foo.OnDelete("after", j.Note("after"), dsl.After("backup"))
				foo.OnDelete("last", j.Note("last"), dsl.After("after"))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.Called("backup delete")
				s.WantGone()
			},
		},
		"a right that is missing holds it as ever": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("backup", j.Note("backup", makes), dsl.Retries(1))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.FailWhile("create", scene.ConfigMaps, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "backup", errors.New("no")))
				s.Remove()
				s.Advance(time.Hour)
				if s.Web() == nil {
					s.T.Error("the object is gone")
				}
			},
		},
	})
}

// TestANamespaceGoesWithItsObjects holds that a namespace that is being deleted goes, although delete handlers would make something
// in it.
func TestANamespaceGoesWithItsObjects(t *testing.T) {
	scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [
		{id: maps, apply: {settings: {ownership: labelled, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}"}}}}},
		{id: backup, causes: [delete], apply: {job: {onDelete: delete, readyWhen: child.metadata.name == '', template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-backup"}}}}},
		{id: farewell, causes: [delete], after: [backup], log: {message: bye}}]}`, func(s *scene.Stage) {
		s.CreateElsewhere()
		failed := scene.LaunchWithLog(s, `web-backup: its namespace`)
		s.Create(strings.Replace(scene.Web, "name: web", "name: web, namespace: elsewhere", 1))
		s.Advance(time.Minute)
		s.Delete("namespaces.v1", "", "elsewhere")
		s.Advance(time.Minute)
		s.WantLines(failed, `"handler failed for good".*ConfigMap elsewhere/web-backup: its namespace is being deleted`)
		if left := s.Get("namespaces.v1", "", "elsewhere"); left != nil {
			s.T.Errorf("the namespace is there: %v", left.Object["status"])
		}
	})
}
