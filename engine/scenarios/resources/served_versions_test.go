// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// serveVersions makes a CRD serve these versions, the first one preferred.
func serveVersions(s *scene.Stage, names ...string) {
	s.T.Helper()
	s.Update(scene.CRDs, "", "foos.example.com", func(crd *unstructured.Unstructured) {
		list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		var versions []any
		for i, name := range names {
			version := (&unstructured.Unstructured{Object: list[0].(map[string]any)}).DeepCopy().Object
			version["name"], version["storage"] = name, i == 0
			versions = append(versions, version)
		}
		if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
			s.T.Error(err)
		}
	})
}

// TestAnObjectInAnotherServedVersionIsTheSame holds that an object in another served version is the same object.
func TestAnObjectInAnotherServedVersionIsTheSame(t *testing.T) {
	operator := func(resource string, profile dsl.CacheProfile) func(*dsl.Resource, *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.Cache = profile
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("sync", j.Note("sync", func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Children.Apply(ctx, scene.ConfigMapIn("default", r.Object.GetName()), dsl.ChildSpec{Name: "web"})
				return err
			}))
			foo.OnUpdate("changed", j.Note("changed"))
			foo.OnDelete("left", j.Note("left"))
			foo.OnDelete("seen", j.Note("seen"), dsl.NoFinalizer())
		}
	}
	migrate := func(resource string, profile dsl.CacheProfile, play func(s *scene.Stage)) scene.Scenario {
		return scene.Scenario{Operator: func(*dsl.Resource, *kit.Journal) {}, Play: func(s *scene.Stage) {
			s.Operator = dsl.New("op")
			s.Operator.Resource(resource, func(foo *dsl.Resource) { operator(resource, profile)(foo, &s.Journal) })
			s.Begin()
			serveVersions(s, "v2", "v1")
			s.Advance(time.Minute)
			s.Called()
			serveVersions(s, "v2")
			play(s)
		}}
	}
	follows := func(s *scene.Stage) {
		s.Advance(time.Minute)
		s.Called()
		s.Wrote()
		scene.WantWell(s)
		s.Update(foos2, "default", "web", func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"size": int64(2)} })
		s.Called("sync update", "changed update")
		s.Delete(foos2, "default", "web")
		s.Called("left delete", "seen delete")
		if s.Get(foos2, "default", "web") != nil {
			s.T.Error("the finalizer was not taken off")
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"one that names no version follows":       migrate("foos.example.com", dsl.CacheCompact, follows),
		"also where objects are read when needed": migrate("foos.example.com", dsl.CacheLive, follows),
		"what was deleted while it went over is reported, and what came is new": migrate("foos.example.com", dsl.CacheCompact, func(s *scene.Stage) {
			s.HoldWatches(foos2)
			s.FailNext("list", foos2, kit.ErrPage)
			s.FailNext("watch", foos2, kit.ErrPage)
			s.Update(foos2, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Delete(foos2, "default", "web")
			s.Create(strings.NewReplacer("v1", "v2", "web", "other").Replace(scene.Web))
			s.ReleaseWatches(foos2)
			s.Advance(time.Minute)
			s.CalledInAnyOrder("left delete", "seen delete", "sync create")
		}),
		"a namespace that may not be listed keeps no other one back": {Operator: func(*dsl.Resource, *kit.Journal) {}, Play: func(s *scene.Stage) {
			s.Operator = dsl.New("op")
			s.Operator.Scope.Namespaces = []string{"team-*"}
			s.Operator.Resource("foos.example.com", func(foo *dsl.Resource) { watched(foo, &s.Journal) })
			createTeams(s, 3)
			s.Launch()
			s.Forget()
			serveVersions(s, "v2", "v1")
			s.Advance(time.Minute)
			s.Forbid("list", scene.Foos, "team-1")
			s.Forbid("watch", scene.Foos, "team-1")
			serveVersions(s, "v2")
			s.Advance(5 * time.Minute)
			s.Called()
			wantWatched(s, true)
			scene.WantUnwell(s, "forbidden: list, watch in namespace team-1")
			s.Update(foos2, "team-2", "web", resize)
			s.Called("sync update")
			s.Update(foos2, "team-1", "web", resize)
			s.Create(strings.NewReplacer("v1", "v2", "web", "other").Replace(team(1)))
			s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: team-4}}`)
			s.Advance(time.Second)
			s.Create(strings.NewReplacer("v1", "v2").Replace(team(4)))
			s.Called("sync create")
			s.Allow("list", scene.Foos, "team-1")
			s.Allow("watch", scene.Foos, "team-1")
			s.Advance(25 * time.Second)
			s.CalledInAnyOrder("sync update", "sync create")
			scene.WantWell(s)
			s.Delete(foos2, "team-1", "web")
			s.Called("left delete")
		}},
		"a namespace that goes before it was listed in the new version is released": {Operator: func(*dsl.Resource, *kit.Journal) {}, Play: func(s *scene.Stage) {
			s.Operator = dsl.New("op")
			s.Operator.Scope.Namespaces = []string{"team-*"}
			s.Operator.Resource("foos.example.com", func(foo *dsl.Resource) { watched(foo, &s.Journal) })
			createTeams(s, 2)
			s.Launch()
			s.Forget()
			serveVersions(s, "v2", "v1")
			s.Advance(time.Minute)
			s.Forbid("list", scene.Foos, "team-1")
			s.Forbid("watch", scene.Foos, "team-1")
			serveVersions(s, "v2")
			s.Advance(5 * time.Minute)
			s.Called()
			s.Delete(namespaces, "", "team-1")
			s.Advance(time.Minute)
			s.Called("left delete")
			scene.WantWell(s)
		}},
		"one that names the version waits, and says where it is": migrate(scene.Foos, dsl.CacheCompact, func(s *scene.Stage) {
			s.Advance(10 * time.Minute)
			s.Called()
			s.Wrote()
			scene.WantUnwell(s, "resource/"+scene.Foos, "not served", "version v2")
			serveVersions(s, "v2", "v1")
			s.Advance(time.Minute)
			s.Called()
			s.Wrote()
			scene.WantWell(s)
		}),
	})
}
