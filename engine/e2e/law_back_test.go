// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// tally counts an operator's reads of single objects, and conflicts.
type tally struct {
	next             http.RoundTripper
	reads, conflicts atomic.Int64
}

func (c *tally) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	if r.Method == http.MethodGet && r.URL.RawQuery == "" {
		c.reads.Add(1)
	}
	if err == nil && answer.StatusCode == http.StatusConflict {
		c.conflicts.Add(1)
	}
	return answer, err
}

// mirrors keeps as many ConfigMaps as the object has replicas, deletes the others, and reports each second.
func mirrors() *dsl.Operator {
	op := dsl.New("mirrors")
	wanted := func(o *unstructured.Unstructured) int64 {
		n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		return n
	}
	op.Resource(foos, func(r *dsl.Resource) {
		r.Limits = &dsl.Limits{Deletions: dsl.DeletionLimits{PerMinute: dsl.Unlimited, Share: dsl.Unlimited}}
		r.Owns("configmaps.v1")
		r.OnReconcile("mirror", func(ctx context.Context, r *dsl.Request) error {
			keep := map[string]bool{}
			for i := range wanted(r.Object) {
				name := fmt.Sprint(r.Object.GetName(), "-", i)
				keep[name] = true
				if _, err := r.Children.Apply(ctx, map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"of": r.Object.GetName()},
				}); err != nil {
					return err
				}
			}
			found, err := r.Children.List("configmaps.v1")
			for _, o := range found {
				if err == nil && !keep[o.GetName()] {
					err = r.Children.Delete(ctx, "configmaps.v1", o.GetName())
				}
			}
			return err
		})
		r.Every(time.Second, "report", func(_ context.Context, r *dsl.Request) error {
			r.Patch.Annotate("example.com/seen", fmt.Sprint(wanted(r.Object), " ", time.Now().UnixNano()))
			return nil
		})
	})
	return op
}

// TestEtcdIsSetBack holds what an operator does that runs on while etcd is set back to an older snapshot: it does not repeat
// requests that cannot succeed, deletes no child that the restored owner wants, and comes to what the restored objects say.
func TestEtcdIsSetBack(t *testing.T) {
	t.Parallel()
	own := plane.Own(t, "samples/foo/crd.yaml")
	objects, children := own.Objects(foos, "default"), own.Objects("configmaps.v1", "default")
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
	reports := func(when string, want int64) {
		t.Helper()
		since := time.Now().UnixNano()
		for _, name := range names {
			own.Objects(foos, "default").Await(t, name, when, func(o *unstructured.Unstructured) bool {
				var seen, at int64
				_, _ = fmt.Sscan(o.GetAnnotations()["example.com/seen"], &seen, &at) // nothing was seen
				return seen == want && at > since
			})
		}
	}
	uids := func() map[string]types.UID {
		out := map[string]types.UID{}
		for _, o := range own.Objects("configmaps.v1", "default").List(t) {
			out[o.GetName()] = o.GetUID()
		}
		return out
	}
	var asked *tally
	config := own.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if asked == nil {
			asked = &tally{}
		}
		asked.next = next
		return asked
	})
	for _, name := range names {
		objects.Create(t, foo(name, 10))
	}
	cluster.Run(t, mirrors(), engine.Settings{Config: config})
	reports("a report", 10)
	for _, name := range names {
		children.Await(t, name+"-9", "to be there", func(*unstructured.Unstructured) bool { return true })
	}

	restore := own.Backup()
	before := uids()
	for _, name := range names {
		own.Objects(foos, "default").Patch(t, name, `{"spec":{"replicas":1}}`)
	}
	reports("a report of the change", 1)
	for _, name := range names {
		own.Objects("configmaps.v1", "default").AwaitGone(t, name+"-9")
	}
	restore()
	conflicts, reads := asked.conflicts.Load(), asked.reads.Load()
	<-time.After(45 * time.Second)
	conflicts, reads = asked.conflicts.Load()-conflicts, asked.reads.Load()-reads
	// Each object's report is written from the cache of before: it meets a conflict, and the read after it shows that versions have
	// gone back. Until the objects are listed again its reconcile is tried after 0.5 s, 1 s, 2 s and so on, each with a conflict and a
	// read. No child is applied before ConfigMaps are listed again: that would be another conflict and read for each of the 81.
	if most := int64(6 * len(names)); conflicts > most || reads > most {
		t.Errorf("%d conflicts and %d reads in 45 s", conflicts, reads)
	}
	reports("a report of the restored object", 10)
	if diff := cmp.Diff(before, uids()); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
}
