// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/operate/cleanup"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const (
	foos       = "foos.v1.example.com"
	configMaps = "configmaps.v1"
	system     = "system"
)

// declare declares an operator that leaves all that there is to leave: a finalizer, progress, an inventory of children, children of
// both ownerships, a register and a lock. Conditions are looked for on a real API server, which knows who set each.
func declare(op *dsl.Operator) {
	op.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: system}
	op.Resource(foos, func(foo *dsl.Resource) {
		foo.Owns(configMaps)
		foo.Owns("deployments.v1.apps")
		foo.Owns("statefulsets.v1.apps")
		child := func(name, namespace string) map[string]any {
			return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": namespace}, "data": map[string]any{"a": "b"}}
		}
		foo.OnReconcile("keep", func(ctx context.Context, r *dsl.Request) error {
			if _, err := r.Children.Apply(ctx, child(r.Object.GetName(), "default")); err != nil {
				return err
			}
			_, err := r.Children.Apply(ctx, child(r.Object.GetName(), "elsewhere"), dsl.ChildSpec{Name: "far", Ownership: dsl.Labelled})
			return err
		})
		foo.OnUpdate("note", func(context.Context, *dsl.Request) error { return nil })
		foo.OnDelete("hold", func(context.Context, *dsl.Request) error { return errors.New("not yet") })
	})
}

// refusals refuse requests on their way: by method and the end of the path, the answer.
type refusals map[string]*apierrors.StatusError

func (r refusals) RoundTrip(next http.RoundTripper) http.RoundTripper {
	return trip(func(request *http.Request) (*http.Response, error) {
		for what, answer := range r {
			method, end, _ := strings.Cut(what, " ")
			if request.Method != method || !strings.HasSuffix(request.URL.Path, end) {
				continue
			}
			if answer.ErrStatus.Reason == metav1.StatusReasonConflict {
				delete(r, what) // the next one has the version of now
			}
			status := answer.ErrStatus
			status.Kind, status.APIVersion = "Status", "v1"
			body, err := json.Marshal(status)
			return &http.Response{
				StatusCode: int(answer.ErrStatus.Code), Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(bytes.NewReader(body)), Request: request,
			}, err
		}
		return next.RoundTrip(request)
	})
}

type trip func(*http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "web", errors.New("no"))

// scene is an operator that has worked and was stopped, and what cleans up after it.
func scene(t *testing.T, set cleanup.Settings, refused refusals, play func(c *kit.Cluster, op *dsl.Operator, clean *cleanup.Cleaner)) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: foos, Kind: "Foo"})
		for _, name := range []string{"elsewhere", system} {
			c.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}`)
		}
		op := dsl.New("op")
		declare(op)
		p := c.Start(op, func(s *engine.Settings) { s.Namespace = system })
		c.Settle()
		c.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {a: b}, annotations: {theirs: x}, finalizers: [example.com/theirs]}, spec: {size: 1}}`)
		c.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: going}, spec: {size: 1}}`)
		c.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}}`)
		c.Advance(time.Minute)
		c.Delete(foos, "default", "going")
		c.Advance(time.Minute)
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		c.Advance(time.Minute)
		set.Config, set.Namespace = c.Config(), system
		set.Config.Wrap(refused.RoundTrip)
		clean, err := cleanup.New(context.WithoutCancel(t.Context()), op, set)
		if err != nil {
			t.Fatal(err)
		}
		play(c, op, clean)
	})
}

// marked returns each object on which something of the operator is, with what it is.
func marked(c *kit.Cluster) (out []string) {
	for _, resource := range []string{foos, configMaps, "secrets.v1", "leases.v1.coordination.k8s.io"} {
		for _, namespace := range []string{"default", "elsewhere", system} {
			for _, o := range c.List(resource, namespace) {
				metadata := fmt.Sprint(o.GetFinalizers(), o.GetAnnotations(), o.GetLabels())
				if strings.Contains(metadata, "op.handwerk.dev/") || namespace == system {
					out = append(out, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
				}
			}
		}
	}
	return out
}

// names are the objects that were found.
func names(list []cleanup.Found) (out []string) {
	for _, f := range list {
		out = append(out, f.String())
	}
	slices.Sort(out)
	return out
}

// TestNothingOfAnOperatorIsLeft holds that all marks of an operator go, those of others stay, and what was being deleted is gone.
func TestNothingOfAnOperatorIsLeft(t *testing.T) {
	for name, deletes := range map[string]bool{"the children stay": false, "the children are deleted": true} {
		t.Run(name, func(t *testing.T) {
			scene(t, cleanup.Settings{DeleteChildren: deletes}, nil, func(c *kit.Cluster, _ *dsl.Operator, clean *cleanup.Cleaner) {
				found := clean.Look(context.WithoutCancel(t.Context()))
				got := [][]string{names(found.Objects), names(found.Children), names(found.Own)}
				want := [][]string{
					{"Foo default/going", "Foo default/web"}, {"ConfigMap default/going", "ConfigMap default/web", "ConfigMap elsewhere/going", "ConfigMap elsewhere/web"},
					{"ConfigMap system/op-children", "Lease system/op-leader"},
				}
				if diff := cmp.Diff(want, got); diff != "" || len(found.Unseen) > 0 {
					t.Errorf("found (-want +got):\n%s%v", diff, found.Unseen)
				}
				if failed := clean.Remove(context.WithoutCancel(t.Context()), found, nil); len(failed) > 0 {
					t.Error(failed)
				}
				if left := marked(c); len(left) > 0 {
					t.Errorf("left are %v", left)
				}
				if again := clean.Look(context.WithoutCancel(t.Context())); !again.Empty() {
					t.Errorf("a second look finds %v", again)
				}
				web := c.Get(foos, "default", "web")
				if web.GetLabels()["a"] != "b" || web.GetAnnotations()["theirs"] != "x" || !slices.Equal(web.GetFinalizers(), []string{"example.com/theirs"}) {
					t.Errorf("what others put on the object is %v", web.Object["metadata"])
				}
				if c.Get(foos, "default", "going") != nil {
					t.Error("the object that was being deleted is still there")
				}
				if there := c.Get(configMaps, "default", "web") != nil; there == deletes {
					t.Errorf("the child is there: %v", there)
				}
				if c.Get(configMaps, "default", "theirs") == nil {
					t.Error("a stranger's object is gone")
				}
			})
		})
	}
}

// TestWhoBearsTheMarksOfAChild holds that an object which bears an operator's marks, and which the operator did not make, is not
// deleted for a child.
func TestWhoBearsTheMarksOfAChild(t *testing.T) {
	scene(t, cleanup.Settings{DeleteChildren: true}, nil, func(c *kit.Cluster, _ *dsl.Operator, clean *cleanup.Cleaner) {
		copied := c.Get(configMaps, "default", "web").DeepCopy()
		copied.Object["metadata"] = map[string]any{"name": "copy", "namespace": "default", "annotations": copied.Object["metadata"].(map[string]any)["annotations"]}
		c.Create(copied.Object)
		if failed := clean.Remove(context.WithoutCancel(t.Context()), clean.Look(context.WithoutCancel(t.Context())), nil); len(failed) > 0 {
			t.Error(failed)
		}
		if o := c.Get(configMaps, "default", "copy"); o == nil || len(o.GetAnnotations()) > 0 {
			t.Errorf("the copy is %v", o)
		}
	})
}

// TestMarksThatKubernetesHasCopied holds that marks go, too, from objects to which Kubernetes copies the annotations of a child.
func TestMarksThatKubernetesHasCopied(t *testing.T) {
	scene(t, cleanup.Settings{}, nil, func(c *kit.Cluster, _ *dsl.Operator, clean *cleanup.Cleaner) {
		child := c.Get(configMaps, "default", "web").GetAnnotations()
		for kind, resource := range map[string]string{"ReplicaSet": "replicasets.v1.apps", "ControllerRevision": "controllerrevisions.v1.apps"} {
			annotations := map[string]any{"theirs": "x"}
			for key, value := range child {
				annotations[key] = value
			}
			c.Create(map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": "web", "namespace": "default", "annotations": annotations}})
			if failed := clean.Remove(context.WithoutCancel(t.Context()), clean.Look(context.WithoutCancel(t.Context())), nil); len(failed) > 0 {
				t.Error(failed)
			}
			if left := c.Get(resource, "default", "web").GetAnnotations(); !maps.Equal(left, map[string]string{"theirs": "x"}) {
				t.Errorf("the %s has %v", kind, left)
			}
		}
	})
}

// TestConfigurationsOfBefore holds that the ConfigMaps of earlier configurations go, and the Deployment's own stays for it.
func TestConfigurationsOfBefore(t *testing.T) {
	for name, test := range map[string]struct {
		deployed bool
		left     []string
	}{
		"the Deployment is there":    {true, []string{"handwerk-op-0123456789", "handwerk-op-config", "handwerk-op-abcdefabcd"}},
		"the Deployment was deleted": {false, []string{"handwerk-op-config", "handwerk-op-abcdefabcd"}},
	} {
		t.Run(name, func(t *testing.T) {
			scene(t, cleanup.Settings{Deployment: "handwerk-op"}, nil, func(c *kit.Cluster, _ *dsl.Operator, clean *cleanup.Cleaner) {
				ours := map[string]any{"app.kubernetes.io/name": "handwerk", "app.kubernetes.io/instance": "op"}
				all := map[string]map[string]any{
					"handwerk-op-0123456789": ours, "handwerk-op-9876543210": ours, "handwerk-op-aaaaaaaaaa": ours,
					"handwerk-op-config": ours, "handwerk-op-abcdefabcd": nil,
				}
				for name, labels := range all {
					c.Create(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": system, "labels": labels}})
				}
				if test.deployed {
					c.Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: handwerk-op, namespace: system},
						spec: {template: {spec: {volumes: [{name: config, configMap: {name: handwerk-op-0123456789}}]}}}}`)
				}
				if failed := clean.Remove(context.WithoutCancel(t.Context()), clean.Look(context.WithoutCancel(t.Context())), nil); len(failed) > 0 {
					t.Error(failed)
				}
				for name := range all {
					if there := c.Get(configMaps, system, name) != nil; there != slices.Contains(test.left, name) {
						t.Errorf("ConfigMap %s is there: %v", name, there)
					}
				}
			})
		})
	}
}

// TestWhoIsSeenToRun holds that a process that renews its lock is seen, and that one which ended is not.
func TestWhoIsSeenToRun(t *testing.T) {
	scene(t, cleanup.Settings{}, nil, func(c *kit.Cluster, _ *dsl.Operator, clean *cleanup.Cleaner) {
		if running, err := clean.Running(context.WithoutCancel(t.Context()), time.Now()); running != "" || err != nil {
			t.Errorf("after the end: %q, %v", running, err)
		}
		op := dsl.New("op")
		declare(op)
		p := c.Start(op, func(s *engine.Settings) { s.Namespace, s.Identity = system, "pod-0" })
		c.Advance(time.Minute)
		if running, err := clean.Running(context.WithoutCancel(t.Context()), time.Now()); running != "pod-0 renews Lease system/op-leader" || err != nil {
			t.Errorf("while it runs: %q, %v", running, err)
		}
		p.Kill()
		c.Advance(time.Minute)
		if running, err := clean.Running(context.WithoutCancel(t.Context()), time.Now()); running != "" || err != nil {
			t.Errorf("after a crash: %q, %v", running, err)
		}
	})
}

// TestWhatCannotBeDoneIsSaid holds that each thing which the account may not see or change is named, that the rest is done, and that
// what says where the rest is stays.
func TestWhatCannotBeDoneIsSaid(t *testing.T) {
	refused := refusals{"PATCH /configmaps/web": forbidden}
	scene(t, cleanup.Settings{}, refused, func(c *kit.Cluster, _ *dsl.Operator, clean *cleanup.Cleaner) {
		ctx := context.WithoutCancel(t.Context())
		failed := clean.Remove(ctx, clean.Look(ctx), nil)
		var texts []string
		for _, err := range failed {
			texts = append(texts, err.Error())
		}
		want := []string{
			`cleaning ConfigMap default/web: configmaps "web" is forbidden: no`, `cleaning ConfigMap elsewhere/web: configmaps "web" is forbidden: no`,
			"ConfigMap system/op-children stays: it says where the rest is", "Lease system/op-leader stays: it says where the rest is",
		}
		if diff := cmp.Diff(want, texts); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if web := c.Get(foos, "default", "web"); slices.Contains(web.GetFinalizers(), "op.handwerk.dev/finalizer") {
			t.Error("the finalizer is still there")
		}
		clear(refused)
		refused["GET /configmaps"] = forbidden
		if text := fmt.Sprint(clean.Look(ctx).Unseen); !strings.Contains(text, `listing configmaps: configmaps "web" is forbidden: no`) {
			t.Errorf("unseen is %s", text)
		}
		clear(refused)
		if failed := clean.Remove(ctx, clean.Look(ctx), nil); len(failed) > 0 {
			t.Error(failed)
		}
		if left := marked(c); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	})
}

// TestAnAccountOfSomeNamespaces holds that an account which may list nothing cluster-wide looks in the namespaces of the scope.
func TestAnAccountOfSomeNamespaces(t *testing.T) {
	tests := map[string]struct {
		scope  []string
		within []string
		unseen int
	}{
		"whose names are known": {scope: []string{"elsewhere", "default"}, within: []string{"default", "elsewhere"}},
		"that are a glob":       {scope: []string{"def*"}, unseen: 2},
		"that are all":          {unseen: 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			refused := refusals{"GET /v1/configmaps": forbidden, "GET /v1/foos": forbidden}
			scene(t, cleanup.Settings{}, refused, func(_ *kit.Cluster, op *dsl.Operator, clean *cleanup.Cleaner) {
				op.Scope.Namespaces = tt.scope
				found := clean.Look(context.WithoutCancel(t.Context()))
				if diff := cmp.Diff(tt.within, found.Within); diff != "" || len(found.Unseen) != tt.unseen {
					t.Errorf("unseen are %v; looked within (-want +got):\n%s", found.Unseen, diff)
				}
				if all := len(found.Objects) == 2 && len(found.Children) == 4; all != (tt.unseen == 0) {
					t.Errorf("found are %v and %v", names(found.Objects), names(found.Children))
				}
			})
		})
	}
}

// TestAnObjectThatChangesMeanwhile holds that a conflict is tried again with the object as it is then.
func TestAnObjectThatChangesMeanwhile(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Group: "example.com", Resource: "foos"}, "web", errors.New("changed"))
	refused := refusals{"PATCH /foos/web": conflict}
	scene(t, cleanup.Settings{}, refused, func(c *kit.Cluster, _ *dsl.Operator, clean *cleanup.Cleaner) {
		ctx := context.WithoutCancel(t.Context())
		if failed := clean.Remove(ctx, clean.Look(ctx), nil); len(failed) > 0 {
			t.Error(failed)
		}
		if left := marked(c); len(left) > 0 || len(refused) > 0 {
			t.Errorf("left are %v, and the refusals %v", left, refused)
		}
	})
}
