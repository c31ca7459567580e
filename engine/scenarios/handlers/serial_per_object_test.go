// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// busy counts how many run at once.
type busy struct {
	mu        sync.Mutex
	now, most map[string]int
}

// handler returns one that takes as long as is said, by the object and by all objects.
func (b *busy) handler(takes time.Duration) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		b.count(r.Object.GetName(), 1)
		b.count("all", 1)
		defer b.count(r.Object.GetName(), -1)
		defer b.count("all", -1)
		select {
		case <-time.After(takes):
		case <-ctx.Done():
		}
		return ctx.Err()
	}
}

func (b *busy) count(key string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == nil {
		b.now, b.most = map[string]int{}, map[string]int{}
	}
	b.now[key] += n
	b.most[key] = max(b.most[key], b.now[key])
}

// TestHandlersOfOneObjectNeverRunAtOnce is law 3, whatever the trigger: event, retry, resync and child.
func TestHandlersOfOneObjectNeverRunAtOnce(t *testing.T) {
	b := &busy{}
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.Resync = time.Minute
			foo.Workers = 3
			foo.OnReconcile("child", scene.KeepsDeployment)
			foo.OnReconcile("slow", j.Note("slow", b.handler(10*time.Second)))
			foo.On(scene.CreateAndUpdate(), "vain", j.Note("vain", scene.RetriesAfter(3*time.Second)))
		},
		Play: func(s *scene.Stage) {
			for i := range 5 {
				s.Create(fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web-%d}, spec: {size: 1}}`, i))
			}
			s.Launch()
			for i := range 60 {
				s.Advance(1700 * time.Millisecond)
				s.Update(scene.Foos, "default", fmt.Sprint("web-", i%5), func(o *unstructured.Unstructured) {
					o.Object["spec"] = map[string]any{"size": int64(i)}
				})
				if s.Get(scene.Deployments, "default", fmt.Sprint("web-", i%5)) != nil {
					s.Update(scene.Deployments, "default", fmt.Sprint("web-", i%5), func(o *unstructured.Unstructured) {
						o.Object["status"] = map[string]any{"replicas": int64(i)}
					})
				}
			}
		},
	})
	for name, n := range b.most {
		want := 1
		if name == "all" {
			want = 3
		}
		if n != want {
			t.Errorf("%s: %d at once, want %d", name, n, want)
		}
	}
	if len(b.most) != 6 {
		t.Errorf("%v: not all objects were handled", b.most)
	}
}

// TestASlowResourceHoldsUpNoOther holds that what is slow costs its own workers alone.
func TestASlowResourceHoldsUpNoOther(t *testing.T) {
	b := &busy{}
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Workers = 1
			foo.OnReconcile("slow", j.Note("slow", b.handler(time.Hour)))
		},
		Play: func(s *scene.Stage) {
			s.Operator.Resource("configmaps.v1", func(cm *dsl.Resource) { cm.OnReconcile("quick", s.Note("quick")) })
			s.Launch()
			s.Create(scene.Web)
			s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
			s.CalledInAnyOrder("quick create", "slow create")
		},
	})
}
