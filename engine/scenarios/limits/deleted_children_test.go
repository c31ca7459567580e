// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// count returns how many ConfigMaps are there that are not being deleted.
func count(s *scene.Stage) (n int) {
	s.Settle()
	for _, o := range s.List(scene.ConfigMaps, "default") {
		if o.GetDeletionTimestamp() == nil {
			n++
		}
	}
	return n
}

// want fails the test unless so many ConfigMaps are there.
func want(s *scene.Stage, n int, when string) {
	s.T.Helper()
	if got := count(s); got != n {
		s.T.Errorf("%s there are %d ConfigMaps, want %d", when, got, n)
	}
}

// fan has one owner make a ConfigMap for each name in its list.
const fan = `{resource: foos.v1.example.com, handlers: [{id: fan, apply: {part: {forEach: "${self.spec.names}", template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${item}"}}}}}]}`

// names returns so many names.
func names(n int) (out []any) {
	for i := range n {
		out = append(out, fmt.Sprint("part-", i))
	}
	return out
}

// begin launches the operator with an owner of so many ConfigMaps.
func begin(s *scene.Stage, n int) {
	s.T.Helper()
	s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
	s.Adjust = append(s.Adjust, inOps)
	s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ops}}`)
	s.Launch()
	s.Create(scene.FooIn("default", "web", map[string]any{"names": names(n)}))
	s.Advance(2 * time.Minute) // new objects do not count
	s.Forget()
	want(s, n, "at first")
}

// TestAListThatIsEmptyForAMomentDeletesLittle holds that a forEach whose list is empty by a mistake does not take all
// children away, and that the children stay for good when the list is back.
func TestAListThatIsEmptyForAMomentDeletesLittle(t *testing.T) {
	scene.PlayYAML(t, fan, func(s *scene.Stage) {
		begin(s, 100)
		s.Set([]any{}, "spec", "names")
		s.Advance(time.Hour)
		left := count(s)
		if left < 70 || left == 100 {
			s.T.Errorf("%d of 100 ConfigMaps are left", left)
		}
		if got := checkOf(s); !strings.Contains(got, "/ConfigMap/handler: ") {
			s.T.Errorf("the check says %q", got)
		}
		if got := scene.ConditionMessage(s.Web(), conditions.DeletionsHeld); got != "Operator op: more than 30% of the ConfigMap objects of foos.v1.example.com are to be deleted; operator release lets them go" {
			s.T.Errorf("the condition says %q", got)
		}
		s.Set(names(100), "spec", "names")
		s.Advance(time.Minute)
		want(s, 100, "after the list is back")
		if got := checkOf(s) + scene.ConditionMessage(s.Web(), conditions.DeletionsHeld); got != "" {
			s.T.Errorf("after the list is back it says %q", got)
		}
	})
}

// TestReleasedChildrenAreDeleted holds that a release reaches the handler that waits.
func TestReleasedChildrenAreDeleted(t *testing.T) {
	scene.PlayYAML(t, fan, func(s *scene.Stage) {
		begin(s, 100)
		s.Set([]any{}, "spec", "names")
		s.Advance(2 * time.Minute)
		release(s, limits.Release{Cause: limits.Handler, Until: time.Now().Add(time.Hour)})
		s.Advance(2 * time.Minute)
		want(s, 0, "after the release")
		if got := scene.ConditionMessage(s.Web(), conditions.DeletionsHeld); got != "" {
			s.T.Errorf("the condition stays: %s", got)
		}
	})
}

// TestAHandlerThatStopsAtTheFirstErrorDeletesLittle holds that the share bounds Go code that asks for one deletion after
// the other, so that only one waits at a time.
func TestAHandlerThatStopsAtTheFirstErrorDeletesLittle(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.OnReconcile("keep", func(ctx context.Context, r *dsl.Request) error {
			wanted, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
			for i := range 100 {
				name := fmt.Sprint("part-", i)
				if i >= int(wanted) {
					if err := r.Children.Delete(ctx, scene.ConfigMaps, name); err != nil {
						return err
					}
					continue
				}
				if _, err := r.Children.Apply(ctx, scene.ConfigMapIn("default", name)); err != nil {
					return err
				}
			}
			return nil
		})
	}, Play: func(s *scene.Stage) {
		s.Adjust = append(s.Adjust, inOps)
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ops}}`)
		s.Launch()
		s.Create(scene.FooIn("default", "web", map[string]any{"size": int64(100)}))
		s.Advance(2 * time.Minute)
		want(s, 100, "at first")
		s.Resize(0)
		s.Advance(time.Hour)
		if left := count(s); left < 70 {
			s.T.Errorf("%d left after an hour", left)
		}
		if got := checkOf(s); !strings.Contains(got, "/ConfigMap/handler: 1 of ") {
			s.T.Errorf("the check says %q", got)
		}
	}})
}

// each has each owner make one ConfigMap.
func each(foo *dsl.Resource, _ *kit.Journal) {
	foo.Owns(scene.ConfigMaps)
	foo.OnReconcile("keep", func(ctx context.Context, r *dsl.Request) error {
		_, err := r.Children.Apply(ctx, scene.ConfigMapIn("default", r.Object.GetName()), dsl.ChildSpec{Handler: "keep", Name: "config"})
		return err
	}, dsl.Makes("keep"))
}

// TestAConfigurationThatDropsAHandlerDeletesLittle holds that children without a handler are deleted within the limits,
// and stay when the configuration from before is back.
func TestAConfigurationThatDropsAHandlerDeletesLittle(t *testing.T) {
	other := func(foo *dsl.Resource, _ *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.OnReconcile("other", scene.Succeeds, dsl.Makes())
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"the configuration from before is back": {Operator: each, Play: func(s *scene.Stage) {
			launch(s, 100)
			want(s, 100, "at first")
			s.Upgrade(other, nil)
			s.Advance(time.Hour)
			if left := count(s); left < 70 { // all are, if all ask before the record is read
				s.T.Errorf("%d of 100 ConfigMaps are left", left)
			}
			if got := checkOf(s); !strings.Contains(got, "/ConfigMap/configuration: ") {
				s.T.Errorf("the check says %q", got)
			}
			s.Upgrade(each, nil)
			s.Advance(15 * time.Minute)
			want(s, 100, "after the downgrade")
			if got := checkOf(s); got != "" {
				s.T.Errorf("after the downgrade the check says %q", got)
			}
		}},
		"a person releases them": {Operator: each, Play: func(s *scene.Stage) {
			launch(s, 100)
			s.Upgrade(other, nil)
			s.Advance(2 * time.Minute)
			release(s, limits.Release{Cause: limits.Configuration, Until: time.Now().Add(time.Hour)})
			s.Advance(2 * time.Minute)
			want(s, 0, "after the release")
		}},
	})
}

// TestOwnersThatLeaveASelectorDeleteLittle holds that objects that leave the selector at the same time, as by a wrong
// label, lose few of their children.
func TestOwnersThatLeaveASelectorDeleteLittle(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"the selector of the resource": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.LabelSelector = "!off"
			leaves(foo, j)
		}, Play: func(s *scene.Stage) {
			launch(s, 100)
			for i := range 100 {
				s.Update(scene.Foos, "default", fmt.Sprint("foo-", i), func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"off": "true"}) })
			}
			if n := began(s); n > 30 {
				s.T.Errorf("%d delete handlers began", n)
			}
			if got := checkOf(s); !strings.Contains(got, "/Foo/selector: ") {
				s.T.Errorf("the check says %q", got)
			}
			for i := range 100 {
				s.Update(scene.Foos, "default", fmt.Sprint("foo-", i), func(o *unstructured.Unstructured) { o.SetLabels(nil) })
			}
			s.Advance(15 * time.Minute)
			if n := began(s); n != 0 {
				s.T.Errorf("%d delete handlers began after the labels were gone", n)
			}
			if got := checkOf(s); got != "" {
				s.T.Errorf("the check says %q", got)
			}
		}},
	})
}

// TestANamespaceThatIsDeletedIsNamed holds that people see that deletions come from a namespace.
func TestANamespaceThatIsDeletedIsNamed(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: leaves, Play: func(s *scene.Stage) {
		launch(s, 100)
		s.Delete("namespaces.v1", "", "default")
		s.Advance(time.Minute)
		if got := checkOf(s); !strings.Contains(got, "/Foo/namespace: ") {
			s.T.Errorf("the check says %q", got)
		}
	}})
}
