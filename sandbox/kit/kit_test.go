// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const (
	foos   = "foos.v1.example.com"
	oneFoo = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1}}`
)

// watcher is an operator that notes each version of a Foo's spec.size that it sees.
func watcher(seen *[]string) *dsl.Operator {
	op := dsl.New("watcher")
	op.Resource(foos, func(foo *dsl.Resource) {
		foo.OnReconcile("see", func(_ context.Context, r *dsl.Request) error {
			size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
			*seen = append(*seen, fmt.Sprint(size))
			r.Patch.SetStatus("size", size)
			return nil
		})
	})
	return op
}

func size(c *kit.Cluster, n int64) {
	c.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"size": n} })
}

// TestFaults holds that faults are played, and end.
func TestFaults(t *testing.T) {
	tests := map[string]struct {
		play func(c *kit.Cluster, p *kit.Process)
		// want is what the operator has seen, after the first version.
		want   []string
		writes []string
	}{
		"watches that are held show nothing until they are released": {
			play: func(c *kit.Cluster, _ *kit.Process) {
				c.HoldWatches(foos)
				size(c, 2)
				c.Advance(time.Minute)
				c.ReleaseWatches(foos)
			},
			want: []string{"2"}, writes: []string{"patch foos/status default/web"},
		},
		"watches that are cut are resumed": {
			play: func(c *kit.Cluster, _ *kit.Process) {
				c.CutWatches()
				size(c, 2)
				c.Advance(time.Minute)
			},
			want: []string{"2"}, writes: []string{"patch foos/status default/web"},
		},
		"watches that are cut while they are held still are": {
			play: func(c *kit.Cluster, _ *kit.Process) {
				c.HoldWatches(foos)
				size(c, 2)
				c.CutWatches(foos)
				c.Advance(time.Minute)
			},
		},
		"watches that expire miss what was held": {
			play: func(c *kit.Cluster, _ *kit.Process) {
				c.HoldWatches(foos)
				size(c, 2)
				size(c, 3)
				c.ExpireWatches(foos)
				c.ReleaseWatches(foos)
				c.Advance(time.Minute)
			},
			want: []string{"3"}, writes: []string{"patch foos/status default/web"},
		},
		"a request fails as often as it is told to": {
			play: func(c *kit.Cluster, _ *kit.Process) {
				c.FailNext("patch", foos+"/status", apierrors.NewInternalError(errors.New("no")), errors.New("no route to host"))
				size(c, 2)
				c.Advance(time.Minute)
			},
			want:   []string{"2", "2", "2"},
			writes: []string{"patch foos/status default/web: 500", "patch foos/status default/web"},
		},
		"what is written is changed on its way, on each endpoint what belongs to it, until that ends": {
			play: func(c *kit.Cluster, _ *kit.Process) {
				end := c.Rewrite(foos, func(o *unstructured.Unstructured) {
					o.Object["spec"] = map[string]any{"size": int64(7)}
					unstructured.RemoveNestedField(o.Object, "status", "size")
				})
				size(c, 2)
				c.Settle()
				if status := c.Get(foos, "default", "web").Object["status"]; !cmp.Equal(status, map[string]any{}) {
					panic(fmt.Sprint("status ", status))
				}
				end()
				size(c, 3)
				c.Settle()
			},
			want: []string{"7", "3"}, writes: []string{"patch foos/status default/web", "patch foos/status default/web"},
		},
		"an answer that is lost was a write": {
			play: func(c *kit.Cluster, _ *kit.Process) {
				c.LoseNext("patch", foos+"/status")
				size(c, 2)
				c.Advance(time.Minute)
			},
			want: []string{"2", "2"}, writes: []string{"patch foos/status default/web"},
		},
		"an answer that is late was a write at once": {
			play: func(c *kit.Cluster, p *kit.Process) {
				c.DelayNext("patch", foos+"/status", time.Minute)
				size(c, 2)
				c.Settle()
				size(c, 3)
				c.Advance(59 * time.Second)
				if n := len(p.Writes()); n != 1 {
					panic(fmt.Sprint(n, " writes while the answer is on its way"))
				}
				c.Advance(time.Second)
			},
			want: []string{"2", "3"}, writes: []string{"patch foos/status default/web"},
		},
		"a right that is missing is refused, until it is given": {
			play: func(c *kit.Cluster, _ *kit.Process) {
				c.Forbid("patch", foos+"/status")
				size(c, 2)
				c.Settle()
				c.Allow("patch", foos+"/status")
				c.Advance(time.Minute)
			},
			want:   []string{"2", "2"},
			writes: []string{"patch foos/status default/web: 403", "patch foos/status default/web"},
		},
		"a process that is cut off sees and does nothing until it is mended": {
			play: func(c *kit.Cluster, p *kit.Process) {
				p.Sever()
				size(c, 2)
				c.Advance(time.Hour)
				p.Restore()
				c.Advance(time.Minute)
			},
			want: []string{"2"}, writes: []string{"patch foos/status default/web"},
		},
		"a process that crashes does not get to know of its last write": {
			play: func(c *kit.Cluster, p *kit.Process) {
				p.CrashAfter(1)
				size(c, 2)
				c.Settle()
				p.Kill()
				size(c, 3)
				c.Advance(time.Hour)
				p.Restart()
			},
			want: []string{"2", "3"}, writes: []string{"patch foos/status default/web", "patch foos/status default/web"},
		},
		"a process that is killed does nothing more": {
			play: func(c *kit.Cluster, p *kit.Process) {
				p.Kill()
				size(c, 2)
				c.Advance(time.Hour)
			},
		},
		"an API group that breaks answers nothing until it is mended": {
			play: func(c *kit.Cluster, _ *kit.Process) {
				c.Break("example.com")
				c.CutWatches(foos)
				c.Advance(time.Minute)
				c.Mend("example.com")
				size(c, 2)
				c.Advance(time.Minute)
			},
			want: []string{"2"}, writes: []string{"patch foos/status default/web"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: foos, Kind: "Foo"})
				var seen []string
				p := c.Start(watcher(&seen))
				c.Create(oneFoo)
				c.Settle()
				seen = nil
				c.Writes()
				test.play(c, p)
				c.Settle()
				if diff := cmp.Diff(test.want, seen, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("seen (-want +got):\n%s", diff)
				}
				var writes []string
				for _, w := range c.Writes() {
					writes = append(writes, w.String())
				}
				if diff := cmp.Diff(test.writes, writes, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestTime holds that time stands still unless it is told to pass.
func TestTime(t *testing.T) {
	begun := time.Now()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: foos, Kind: "Foo"})
		start := time.Now()
		var seen []string
		c.Start(watcher(&seen))
		c.Create(oneFoo)
		c.Settle()
		if passed := time.Since(start); passed != 0 || len(seen) != 1 {
			t.Errorf("%v passed until %v was seen", passed, seen)
		}
		c.Advance(24 * time.Hour)
		if passed := time.Since(start); passed != 24*time.Hour {
			t.Errorf("a day took %v", passed)
		}
	})
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("a day took %v of real time", took)
	}
}

// TestObjects holds in which forms objects can be given.
func TestObjects(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: foos, Kind: "Foo"})
		c.Create(`
			apiVersion: example.com/v1
			kind: Foo
			metadata: {name: one, namespace: elsewhere}
			status: {phase: set}
			---
			---
			apiVersion: v1
			kind: ConfigMap
			metadata:
			  name: two
		`)
		c.Create(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "three"}})
		c.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "four"}})
		path := filepath.Join(t.TempDir(), "five.yaml")
		if err := os.WriteFile(path, []byte("{apiVersion: v1, kind: Node, metadata: {name: five}}"), 0o600); err != nil {
			t.Fatal(err)
		}
		c.CreateFile(path)
		one := c.Get(foos, "elsewhere", "one")
		if phase, _, _ := unstructured.NestedString(one.Object, "status", "phase"); phase != "set" {
			t.Errorf("the status is %v", one.Object["status"])
		}
		for resource, namespace := range map[string]string{"configmaps": "default", "secrets.v1": "default", "pods.v1": "default", "nodes.v1": ""} {
			if n := len(c.List(resource, namespace)); n != 1 {
				t.Errorf("%d %s", n, resource)
			}
		}
		if c.Get(foos, "default", "one") != nil {
			t.Error("an object is found where it is not")
		}
	})
}

// TestUpdate holds that each part of an object is written where it belongs.
func TestUpdate(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: foos, Kind: "Foo"}, kit.Resource{Name: "bars.v1.example.com", Kind: "Bar", NoStatus: true})
		c.Create(oneFoo)
		o := c.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
			o.Object["spec"] = map[string]any{"size": int64(2)}
			o.Object["status"] = map[string]any{"size": int64(1)}
		})
		if fmt.Sprint(o.Object["spec"], o.Object["status"], o.GetGeneration()) != "map[size:2] map[size:1] 2" {
			t.Errorf("the object is %v", o.Object)
		}
		version := o.GetResourceVersion()
		if o = c.Update(foos, "default", "web", func(*unstructured.Unstructured) {}); o.GetResourceVersion() != version {
			t.Error("no change is a write")
		}
		o = c.Update(foos, "default", "web", func(o *unstructured.Unstructured) { delete(o.Object, "status") })
		if o.Object["status"] != nil {
			t.Errorf("the status is still %v", o.Object["status"])
		}
		c.Create(`{apiVersion: example.com/v1, kind: Bar, metadata: {name: web}, status: {size: 1}}`)
		o = c.Update("bars.v1.example.com", "default", "web", func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"size": int64(2)} })
		if o.GetGeneration() != 2 {
			t.Errorf("without a status subresource the generation is %d, want 2", o.GetGeneration())
		}
	})
}

// TestThingsThatContain holds that namespaces and CRDs take their objects along.
func TestThingsThatContain(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: foos, Kind: "Foo"})
		c.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: held, namespace: a, finalizers: [example.com/x]}}`)
		c.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: free, namespace: a}}`)
		c.Delete("namespaces.v1", "", "a")
		if c.Get("configmaps.v1", "a", "free") != nil || c.Get(foos, "a", "held").GetDeletionTimestamp() == nil || c.Get("namespaces.v1", "", "a") == nil {
			t.Error("the namespace is not emptied, or gone too early")
		}
		c.Update(foos, "a", "held", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
		c.Advance(time.Second)
		if c.Get("namespaces.v1", "", "a") != nil {
			t.Error("the namespace is still there")
		}
		c.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: held, finalizers: [example.com/x]}}`)
		c.Unserve(foos)
		c.Update(foos, "default", "held", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
		c.Advance(time.Second)
		if n := len(c.List("customresourcedefinitions.v1.apiextensions.k8s.io", "")); n != 0 {
			t.Errorf("%d CRDs are left", n)
		}
		c.Serve(kit.Resource{Name: foos, Kind: "Foo"})
		if n := len(c.List(foos, "")); n != 0 {
			t.Errorf("%d objects came back", n)
		}
	})
}

// TestClients holds that clients of any kind reach the cluster.
func TestClients(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		typed, err1 := kubernetes.NewForConfig(c.Config())
		partial, err2 := metadata.NewForConfig(c.Config())
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		made, err := typed.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "made-", Labels: map[string]string{"a": "b"}}, Data: map[string]string{"k": "v"},
		}, metav1.CreateOptions{})
		if err != nil || made.Data["k"] != "v" || made.UID == "" {
			t.Errorf("made %+v, %v", made, err)
		}
		list, err := partial.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).List(t.Context(), metav1.ListOptions{LabelSelector: "a=b"})
		if err != nil || len(list.Items) != 1 || list.Items[0].Name != made.Name {
			t.Errorf("listed %+v, %v", list, err)
		}
		groups, err := typed.Discovery().ServerPreferredResources()
		if err != nil || !slices.ContainsFunc(groups, func(l *metav1.APIResourceList) bool { return l.GroupVersion == "apps/v1" }) {
			t.Errorf("served are %v, %v", groups, err)
		}
	})
}

// TestLoad holds that an object is put in as it is.
func TestLoad(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: foos, Kind: "Foo"})
		var seen []string
		c.Start(watcher(&seen))
		want := map[string]any{
			"apiVersion": "example.com/v1", "kind": "Foo", "spec": map[string]any{"size": int64(4)}, "status": map[string]any{"size": int64(4)},
			"metadata": map[string]any{
				"name": "web", "namespace": "default", "uid": "theirs", "generation": int64(9), "finalizers": []any{"example.com/a"},
				"creationTimestamp": "1999-01-01T00:00:00Z", "deletionTimestamp": "1999-02-01T00:00:00Z", "deletionGracePeriodSeconds": int64(0),
				"managedFields": []any{map[string]any{"manager": "them", "operation": "Update", "apiVersion": "example.com/v1",
					"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:size": map[string]any{}}}}},
			},
		}
		got := c.Load(&unstructured.Unstructured{Object: want})
		unstructured.RemoveNestedField(got.Object, "metadata", "resourceVersion")
		if diff := cmp.Diff(want, got.Object); diff != "" {
			t.Errorf("object (-want +got):\n%s", diff)
		}
		c.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
		if o := c.Get(foos, "default", "web"); o != nil {
			t.Errorf("it is still there: %v", o)
		}
	})
}
