// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
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

// TestSerialPerObject is law 3, whatever the trigger: event, retry, resync and child.
func TestSerialPerObject(t *testing.T) {
	b := &busy{}
	perform(t, scenario{
		func(foo *dsl.Resource, j *journal) {
			foo.Owns(deployments)
			foo.Resync = time.Minute
			foo.Workers = 3
			foo.OnReconcile("child", keepsChild)
			foo.OnReconcile("slow", j.Note("slow", b.handler(10*time.Second)))
			foo.On(both(), "vain", j.Note("vain", temporary(3*time.Second)))
		},
		func(s *stage) {
			for i := range 5 {
				s.Create(fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web-%d}, spec: {size: 1}}`, i))
			}
			s.Launch()
			for i := range 60 {
				s.Advance(1700 * time.Millisecond)
				s.Update(foos, "default", fmt.Sprint("web-", i%5), func(o *unstructured.Unstructured) {
					o.Object["spec"] = map[string]any{"size": int64(i)}
				})
				if s.Get(deployments, "default", fmt.Sprint("web-", i%5)) != nil {
					s.Update(deployments, "default", fmt.Sprint("web-", i%5), func(o *unstructured.Unstructured) {
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

// TestSlowObjectsStarveNobody holds that what is slow costs its own workers alone.
func TestSlowObjectsStarveNobody(t *testing.T) {
	b := &busy{}
	perform(t, scenario{
		func(foo *dsl.Resource, j *journal) {
			foo.Workers = 1
			foo.OnReconcile("slow", j.Note("slow", b.handler(time.Hour)))
		},
		func(s *stage) {
			s.Operator.Resource("configmaps.v1", func(cm *dsl.Resource) { cm.OnReconcile("quick", s.Note("quick")) })
			s.Launch()
			s.Create(web)
			s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
			s.CalledInAnyOrder("quick create", "slow create")
		},
	})
}
