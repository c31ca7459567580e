// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const sites = "sites.v1.example.com"

// listedSite is the write of a site's record.
const listedSite = "patch sites web"

// playClusterScoped is a stage with an operator whose objects have no namespace, or are namespaces.
func playClusterScoped(t *testing.T, resource string, operator func(*dsl.Resource, *kit.Journal), play func(*scene.Stage)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: sites, Kind: "Site", ClusterScoped: true})
		s := scene.NewStage(t, c)
		s.CreateElsewhere()
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: attacker}}`)
		s.Operator.Resource(resource, func(r *dsl.Resource) { operator(r, &s.Journal) })
		play(s)
	})
}

// keepsIn returns an operator that keeps an owned ConfigMap in a namespace, and lists what it has.
func keepsIn(namespace string) func(*dsl.Resource, *kit.Journal) {
	return func(r *dsl.Resource, j *kit.Journal) {
		r.Owns(scene.ConfigMaps)
		r.OnReconcile("keep", j.Note("keep", func(ctx context.Context, r *dsl.Request) error {
			if r.Object.GetName() != "web" && r.Object.GetName() != namespace {
				return nil
			}
			spec := dsl.ChildSpec{Handler: "keep", Name: "settings"}
			_, err := r.Children.Apply(ctx, scene.ConfigMapWithValue(namespace, "x"), spec)
			if color, _, _ := unstructured.NestedString(r.Object.Object, "spec", "color"); color == "both" && err == nil {
				if _, err = r.Children.Apply(ctx, scene.ConfigMapWithValue(attacker, "x"), spec); err != nil {
					j.Add(err.Error())
				}
			}
			return err
		}))
		r.OnUpdate("list", scene.NotesChildren(j), dsl.NoOld())
	}
}

// getSite returns the site web.
func getSite(s *scene.Stage) *unstructured.Unstructured { return s.Get(sites, "", "web") }

// createOwnedBySite makes what names the site web as its controller, as whoever may create a ConfigMap can.
func createOwnedBySite(s *scene.Stage, namespace, name string) *unstructured.Unstructured {
	s.T.Helper()
	owner := getSite(s)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"value": "forged"}}}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetAnnotations(map[string]string{scene.ChildAnnotation: "keep/settings", "op.handwerk.dev/applied": "handwerk:forged"})
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	return s.Create(u.Object)
}

// recolorSite changes the site, so that handlers look at it.
func recolorSite(s *scene.Stage, color string) {
	s.T.Helper()
	s.Update(sites, "", "web", func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"color": color} })
}

// TestARecordDecidesOnChildrenOfAClusterScopedOwner holds that children in namespaces count for an owner that has none just
// as its inventory lists them.
func TestARecordDecidesOnChildrenOfAClusterScopedOwner(t *testing.T) {
	const genuine = "keep/settings/=elsewhere/web:owned,delete"
	begin := func(s *scene.Stage) {
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Site, metadata: {name: web}, spec: {color: red}}`)
	}
	for name, play := range map[string]func(*scene.Stage){
		"one is entered once, before it is made": func(s *scene.Stage) {
			begin(s)
			s.Wrote(listedSite, "patch configmaps elsewhere/web", listedSite)
			s.Process.Restart()
			s.Wrote()
			s.Called("keep create", "keep resume")
			s.ChangeConfigMap("elsewhere", scene.SpoilValue)
			s.Called("keep child")
			wantValue(s, "elsewhere", "x")
		},
		"one that is forged wakes no handler, and is seen by none": func(s *scene.Stage) {
			begin(s)
			s.Forget()
			createOwnedBySite(s, attacker, "aaa")
			s.Called()
			s.Update(scene.ConfigMaps, attacker, "aaa", scene.SpoilValue)
			s.Called()
			recolorSite(s, "blue")
			s.Called("keep update", genuine)
			s.Process.Restart()
			s.Forget()
			recolorSite(s, "green")
			s.Called("keep update", genuine)
		},
		"one of a lost record is entered where it is wanted": func(s *scene.Stage) {
			begin(s)
			uid := wantValue(s, "elsewhere", "x").GetUID()
			s.Process.Kill()
			s.Update(sites, "", "web", func(o *unstructured.Unstructured) {
				notes := o.GetAnnotations()
				delete(notes, scene.RecordAnnotation)
				o.SetAnnotations(notes)
			})
			createOwnedBySite(s, attacker, "aaa")
			s.Advance(time.Minute)
			s.Forget()
			s.Process.Restart()
			s.Wrote(listedSite)
			recolorSite(s, "blue")
			s.Called("keep resume", "keep update", genuine)
			if now := wantValue(s, "elsewhere", "x").GetUID(); now != uid {
				s.T.Errorf("it was made again: %s", now)
			}
		},
		"one in the place of a child to come is left alone": func(s *scene.Stage) {
			begin(s)
			s.Advance(time.Minute)
			forged := createOwnedBySite(s, attacker, "web")
			s.Forget()
			recolorSite(s, "both")
			s.Called("keep update", "applying ConfigMap attacker/web: it exists and is not owned by this object; it names this object as its "+
				"controller, but is not in its inventory of children (annotation op.handwerk.dev/children): delete it, or give the child another name",
				genuine)
			if now := s.Get(scene.ConfigMaps, attacker, "web"); now.GetResourceVersion() != forged.GetResourceVersion() {
				s.T.Errorf("it was written to: %v", now.Object)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { playClusterScoped(t, sites, keepsIn("elsewhere"), play) })
	}
}

// TestANamespaceOwnsObjectsInItWithoutARecord holds that what is in a namespace is near to it, and costs no record.
func TestANamespaceOwnsObjectsInItWithoutARecord(t *testing.T) {
	playClusterScoped(t, "namespaces.v1", keepsIn("elsewhere"), func(s *scene.Stage) {
		s.Launch()
		s.Settle()
		s.ChangeConfigMap("elsewhere", scene.SpoilValue)
		wantValue(s, "elsewhere", "x")
		if notes := s.Get("namespaces.v1", "", "elsewhere").GetAnnotations(); notes[scene.RecordAnnotation] != "" {
			s.T.Errorf("there is a record: %s", notes[scene.RecordAnnotation])
		}
	})
}

// TestAClusterScopedOwnerHasChildrenInNamespaces holds that an object without a namespace can own some with one, which
// costs it a write of its inventory before the first.
func TestAClusterScopedOwnerHasChildrenInNamespaces(t *testing.T) {
	const teams = "teams.v1.example.com"
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: teams, Kind: "Team", ClusterScoped: true})
		s := scene.NewStage(t, c)
		s.Operator.Resource(teams, func(team *dsl.Resource) {
			team.Owns("configmaps.v1", "namespaces.v1")
			team.OnReconcile("keep", s.Note("keep", func(ctx context.Context, r *dsl.Request) error {
				_, err1 := r.Children.Apply(ctx, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team"}})
				_, err2 := r.Children.Apply(ctx, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "team"}})
				found, err3 := r.Children.Get("configmaps.v1", "team/a")
				if found == nil {
					s.Add("the child is not found")
				}
				return errors.Join(err1, err2, err3)
			}))
		})
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Team, metadata: {name: one}}`)
		s.Called("keep create")
		s.Wrote("patch namespaces team", "patch teams one", "patch configmaps team/a")
		s.Delete("configmaps.v1", "team", "a")
		s.Called("keep child")
		s.Wrote("patch configmaps team/a")
	})
}
