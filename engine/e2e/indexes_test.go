// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestIndexInGo: handlers see what an index over another resource has, are woken by what they have read alone, and a
// watch that was cut off while objects went and came leaves nothing behind.
func TestIndexInGo(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	seen := &kit.Journal{}
	look := func(_ context.Context, r *dsl.Request) error {
		owners, err := dsl.Index[string, map[string]string](r, "owners")
		if err != nil {
			return err
		}
		found, err := owners.Get(spec(r.Object, "value"))
		var values []string
		for _, one := range found {
			values = append(values, one["v"])
		}
		if !strings.HasPrefix(r.Object.GetName(), "marker") {
			seen.Add(fmt.Sprintf("%s %s [%s]", r.Object.GetName(), r.Cause, strings.Join(values, " ")))
		}
		return err
	}
	op := s.operator(func(r *dsl.Resource) { r.OnReconcile("look", s.Note("look", look)) })
	op.Index("owners", configMaps, func(o *unstructured.Unstructured) ([]dsl.Entry, error) {
		data, _, err := unstructured.NestedStringMap(o.Object, "data")
		if data["for"] == "" {
			return nil, err
		}
		return []dsl.Entry{{Key: data["for"], Value: map[string]string{"v": data["v"]}}}, err
	})
	give := func(name, owner, value string) {
		plane.Apply(t, s.ns, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {for: %s, v: %q}", name, owner, value))
	}
	give("m-1", "a", "1")
	running := s.begin(t, op)
	calls := func(want ...string) {
		t.Helper()
		var got []string
		waitFor(t, fmt.Sprint("calls ", want), func() bool {
			got = append(got, seen.Take()...)
			return len(got) >= len(want)
		})
		s.quiesce(t, "look")
		if diff := cmp.Diff(want, append(got, seen.Take()...)); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	}
	s.works.Create(t, work("w", "a"))
	calls("w create [1]")
	s.works.Create(t, work("x", "b"))
	calls("x create []")
	mark := plane.Mark(t)
	give("m-2", "b", "2")
	calls("x index [2]")
	give("m-0", "a", "0")
	calls("w index [0 1]")
	s.maps.Patch(t, "m-1", `{"metadata":{"labels":{"nothing":"new"}}}`)
	s.quiesce(t, "look")
	s.maps.Delete(t, "m-1")
	calls("w index [0]")
	if got := s.writes(t, mark, "w"); len(got) > 0 {
		t.Errorf("writes %v, want none", got)
	}
	running.Stop(t)
	s.maps.Delete(t, "m-0")
	s.begin(t, op)
	var after []string
	waitFor(t, "both to be resumed", func() bool { after = append(after, seen.Take()...); return len(after) >= 2 })
	if joined := strings.Join(after, ","); !strings.Contains(joined, "w resume []") || !strings.Contains(joined, "x resume [2]") {
		t.Errorf("calls after a restart: %v", after)
	}
}

// TestIndexWithoutRight: an index whose resource may not be listed holds up those alone that read it, says so, and is
// read when the right is given.
func TestIndexWithoutRight(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	user := plane.User("index")
	user.AllowIn(t, s.ns, cluster.Rule("e2e.example.com", "works,works/status", "*"), cluster.Rule("events.k8s.io", "events", "*"))
	op := s.operator(func(r *dsl.Resource) {
		r.OnReconcile("reads", s.Note("reads", func(_ context.Context, r *dsl.Request) error {
			_, err := dsl.Index[string, any](r, "names")
			return err
		}))
		r.OnReconcile("free", s.Note("free"))
	})
	op.Index("names", configMaps, func(o *unstructured.Unstructured) ([]dsl.Entry, error) {
		return []dsl.Entry{{Key: o.GetName(), Value: true}}, nil
	})
	settings := settingsOf(s)
	settings.Config = user.Config()
	running := cluster.Run(t, op, settings)
	awaitCheck(t, running, "index/names", ops.Warn, "forbidden")
	s.works.Create(t, work("w", "a"))
	s.Await(t, 1, "free", "w")
	failed := len(s.Await(t, 1, "reads", "w"))
	user.AllowIn(t, s.ns, cluster.Rule("", "configmaps", "list", "watch"))
	awaitCheck(t, running, "index/names", ops.Pass, "")
	s.Await(t, failed+1, "reads", "w")
}

// TestIndexSample: sites that claim one host know it of each other, as long as it is so; and a plan is found by its name.
func TestIndexSample(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	runSample(t, "index", []string{ns}, []rbacv1.PolicyRule{
		cluster.Rule("samples.handwerk.dev", "sites", "get", "list", "watch"),
		cluster.Rule("samples.handwerk.dev", "sites/status", "patch"),
		cluster.Rule("", "configmaps", "list", "watch"),
	})
	sites := plane.Objects("sites.v1alpha1.samples.handwerk.dev", ns)
	site := func(name string, hosts ...string) {
		plane.Apply(t, ns, fmt.Sprintf("apiVersion: samples.handwerk.dev/v1alpha1\nkind: Site\nmetadata: {name: %s}\nspec: {plan: small, hosts: [%s]}", name, strings.Join(hosts, ", ")))
	}
	says := func(condition, status, message string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			for _, one := range list {
				c := one.(map[string]any)
				if c["type"] == condition && c["status"] == status && strings.Contains(c["message"].(string), message) {
					return true
				}
			}
			return false
		}
	}
	site("shop", "shop.example.com")
	sites.Await(t, "shop", "having its host for itself", says("Unique", string(metav1.ConditionTrue), ""))
	sites.Await(t, "shop", "having no plan", says("WithinPlan", string(metav1.ConditionFalse), "there is no plan small"))
	plane.Apply(t, ns, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: small, labels: {samples.handwerk.dev/kind: plan}}\ndata: {hosts: \"1\"}")
	sites.Await(t, "shop", "having a plan", says("WithinPlan", string(metav1.ConditionTrue), "known"))
	site("copycat", "copycat.example.com", "shop.example.com")
	both := "shop.example.com is claimed by " + ns + "/copycat, " + ns + "/shop"
	sites.Await(t, "shop", "sharing its host", says("Unique", string(metav1.ConditionFalse), both))
	sites.Await(t, "copycat", "sharing a host", says("Unique", string(metav1.ConditionFalse), both))
	sites.Await(t, "copycat", "claiming too many", says("WithinPlan", string(metav1.ConditionFalse), "known"))
	sites.Delete(t, "copycat")
	sites.Await(t, "shop", "having its host for itself again", says("Unique", string(metav1.ConditionTrue), ""))
}
