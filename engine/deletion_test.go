// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
)

// hurries deletes the Pod once more with so many seconds of grace; its node does that with none when the Pod
// has come to its end.
func (s *stage) hurries(grace int64) {
	s.t.Helper()
	client, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		s.t.Fatal(err)
	}
	pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("default")
	if err := pods.Delete(context.Background(), "web", metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		s.t.Error(err)
	}
}

// TestTheEndOfAPodIsNoOtherDeletion is law 2 for what takes its time to be deleted: the API server moves the
// deletion timestamp when it is deleted once more, to now where its grace period is over.
func TestTheEndOfAPodIsNoOtherDeletion(t *testing.T) {
	waits := fails(dsl.Waiting("rain", time.Hour))
	onPods := func(define func(pods *dsl.Resource, j *journal), play func(s *stage)) scenario {
		return scenario{func(*dsl.Resource, *journal) {}, func(s *stage) {
			s.Operator = dsl.New("op")
			s.Operator.Resource("pods.v1", func(pods *dsl.Resource) { define(pods, &s.Journal) })
			s.Launch()
			s.Create(`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeName: here}}`)
			s.Settle()
			s.Delete("pods.v1", "default", "web")
			play(s)
			if s.Get("pods.v1", "default", "web") != nil {
				s.t.Error("the Pod is still there")
			}
		}}
	}
	for name, later := range map[string]time.Duration{"in its grace period": 15 * time.Second, "when that is over": 40 * time.Second} {
		scenarios(t, map[string]scenario{
			name + ", of one that no finalizer holds": onPods(func(pods *dsl.Resource, j *journal) {
				pods.OnDelete("left", j.Note("left"), dsl.NoFinalizer())
			}, func(s *stage) {
				s.Called("left delete")
				s.Advance(later)
				s.hurries(1)
				s.Called()
				s.Advance(time.Second)
				s.hurries(0)
				s.Called()
			}),
			name + ", while another handler waits, to the next process": onPods(func(pods *dsl.Resource, j *journal) {
				pods.OnDelete("one", j.Note("one"))
				pods.OnDelete("two", j.Note("two", waits, waits, succeeds))
			}, func(s *stage) {
				s.Called("one delete", "two delete")
				s.Advance(later)
				if err := s.Process.Stop(); err != nil {
					s.t.Error(err)
				}
				s.hurries(0)
				s.Process.Restart()
				s.Called("two delete")
				s.Process.Restart()
				s.Called("two delete")
			}),
		})
	}
}
