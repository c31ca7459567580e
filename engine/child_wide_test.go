// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

const (
	sites = "sites.v1.example.com"
	// listedSite is the write of a site's record.
	listedSite = "patch sites web"
)

// wide is a stage with an operator whose objects have no namespace, or are namespaces.
func wide(t *testing.T, resource string, operator func(*dsl.Resource, *journal), play func(*stage)) {
	t.Helper()
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: sites, Kind: "Site", ClusterScoped: true})
		s := newStage(t, c)
		s.elsewhere()
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: attacker}}`)
		s.Operator.Resource(resource, func(r *dsl.Resource) { operator(r, &s.Journal) })
		play(s)
	})
}

// keepsIn returns an operator that keeps an owned ConfigMap in a namespace, and lists what it has.
func keepsIn(namespace string) func(*dsl.Resource, *journal) {
	return func(r *dsl.Resource, j *journal) {
		r.Owns(configMaps)
		r.OnReconcile("keep", j.Note("keep", func(ctx ctx, r *dsl.Request) error {
			if r.Object.GetName() != "web" && r.Object.GetName() != namespace {
				return nil
			}
			spec := dsl.ChildSpec{Handler: "keep", Name: "settings"}
			_, err := r.Children.Apply(ctx, settings(namespace, "x"), spec)
			if color, _, _ := unstructured.NestedString(r.Object.Object, "spec", "color"); color == "both" && err == nil {
				if _, err = r.Children.Apply(ctx, settings(attacker, "x"), spec); err != nil {
					j.Add(err.Error())
				}
			}
			return err
		}))
		r.OnUpdate("list", lists(j), dsl.NoOld())
	}
}

// site returns the site web.
func (s *stage) site() *unstructured.Unstructured { return s.Get(sites, "", "web") }

// bySite makes what names the site web as its controller, as whoever may create a ConfigMap can.
func (s *stage) bySite(namespace, name string) *unstructured.Unstructured {
	s.t.Helper()
	owner := s.site()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"value": "forged"}}}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetAnnotations(map[string]string{childAnnotation: "keep/settings", "op.handwerk.dev/applied": "handwerk:forged"})
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	return s.Create(u.Object)
}

// recolor changes the site, so that handlers look at it.
func (s *stage) recolor(color string) {
	s.t.Helper()
	s.Update(sites, "", "web", func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"color": color} })
}

// TestWideOwners holds that children in namespaces count for an owner that has none just as its
// record lists them.
func TestWideOwners(t *testing.T) {
	const genuine = "keep/settings/=elsewhere/web:owned,delete"
	begin := func(s *stage) {
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Site, metadata: {name: web}, spec: {color: red}}`)
	}
	for name, play := range map[string]func(*stage){
		"one is entered once, before it is made": func(s *stage) {
			begin(s)
			s.Wrote(listedSite, "patch configmaps elsewhere/web", listedSite)
			s.Process.Restart()
			s.Wrote()
			s.Called("keep create", "keep resume")
			s.drift("elsewhere", spoil)
			s.Called("keep child")
			s.value("elsewhere", "x")
		},
		"one that is forged wakes nobody, and is seen by nobody": func(s *stage) {
			begin(s)
			s.Forget()
			s.bySite(attacker, "aaa")
			s.Called()
			s.Update(configMaps, attacker, "aaa", spoil)
			s.Called()
			s.recolor("blue")
			s.Called("keep update", genuine)
			s.Process.Restart()
			s.Forget()
			s.recolor("green")
			s.Called("keep update", genuine)
		},
		"one from before the record is entered where it is wanted": func(s *stage) {
			begin(s)
			uid := s.value("elsewhere", "x").GetUID()
			s.Process.Kill()
			s.Update(sites, "", "web", func(o *unstructured.Unstructured) {
				notes := o.GetAnnotations()
				delete(notes, record)
				o.SetAnnotations(notes)
			})
			s.bySite(attacker, "aaa")
			s.Advance(time.Minute)
			s.Forget()
			s.Process.Restart()
			s.Wrote(listedSite)
			s.recolor("blue")
			s.Called("keep resume", "keep update", genuine)
			if now := s.value("elsewhere", "x").GetUID(); now != uid {
				s.t.Errorf("it was made again: %s", now)
			}
		},
		"one in the place of a child to come is left alone": func(s *stage) {
			begin(s)
			s.Advance(time.Minute)
			forged := s.bySite(attacker, "web")
			s.Forget()
			s.recolor("both")
			s.Called("keep update", "applying ConfigMap attacker/web: it exists and is not owned by this object; it names this object as its "+
				"controller, but is not in its record of children (annotation op.handwerk.dev/children): delete it, or give the child another name",
				genuine)
			if now := s.Get(configMaps, attacker, "web"); now.GetResourceVersion() != forged.GetResourceVersion() {
				s.t.Errorf("it was written to: %v", now.Object)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { wide(t, sites, keepsIn("elsewhere"), play) })
	}
}

// TestNamespacesAsOwners holds that what is in a namespace is near to it, and costs no record.
func TestNamespacesAsOwners(t *testing.T) {
	wide(t, "namespaces.v1", keepsIn("elsewhere"), func(s *stage) {
		s.Launch()
		s.Settle()
		s.drift("elsewhere", spoil)
		s.value("elsewhere", "x")
		if notes := s.Get("namespaces.v1", "", "elsewhere").GetAnnotations(); notes[record] != "" {
			s.t.Errorf("there is a record: %s", notes[record])
		}
	})
}
