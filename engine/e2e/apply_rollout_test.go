// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// shardsOf are four Deployments that are updated one after the other. The test says which is ready:
// by an annotation with the image.
const shardsOf = `
shard:
  forEach: ${lists.range(4)}
  readyWhen: &ready child.metadata.annotations[?'e2e.example.com/ready'].orValue('') == child.spec.template.spec.containers[0].image
  rollout: {maxUnavailable: 1, readyWhen: *ready}
  template:
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "${self.metadata.name}-${item}"}
    spec:
      replicas: 0
      selector: {matchLabels: &labels {shard: "${self.metadata.name}-${item}"}}
      template:
        metadata: {labels: *labels}
        spec: {containers: [{name: main, image: "${self.spec.value}"}]}
`

// shards are the Deployments of a work w, as a watch shows them.
type shards struct {
	*cluster.Objects

	mu sync.Mutex
	// unready are those whose image is not the one that was found ready; most is how many at a time.
	unready map[string]bool
	most    int
}

// watchShards begins to count. All shards are ready.
func watchShards(t *testing.T, ns string) *shards {
	t.Helper()
	s := &shards{Objects: plane.Objects(deployments, ns), unready: map[string]bool{}}
	w, err := plane.Dynamic().Resource(s.Name).Namespace(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("watching Deployments: %v", err)
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for event := range w.ResultChan() {
			if o, is := event.Object.(*unstructured.Unstructured); is && event.Type != watch.Bookmark {
				s.seen(o)
			}
		}
	})
	t.Cleanup(func() {
		w.Stop()
		watching.Wait()
	})
	return s
}

func (s *shards) seen(o *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unready, o.GetName())
	if o.GetAnnotations()["e2e.example.com/ready"] != image(o) {
		s.unready[o.GetName()] = true
	}
	s.most = max(s.most, len(s.unready))
}

// mustHaveBeenOneByOne fails the test if more than one was unready at a time, or none ever.
func (s *shards) mustHaveBeenOneByOne(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most != 1 {
		t.Errorf("up to %d were unready at a time; now %v", s.most, slices.Sorted(maps.Keys(s.unready)))
	}
}

// awaitImage waits until a shard has an image.
func (s *shards) awaitImage(t *testing.T, shard int, want string) {
	t.Helper()
	s.Await(t, fmt.Sprint("w-", shard), "the image "+want, func(o *unstructured.Unstructured) bool { return image(o) == want })
}

// say says that a shard is ready with an image.
func (s *shards) say(t *testing.T, shard int, image string) {
	t.Helper()
	s.Patch(t, fmt.Sprint("w-", shard), fmt.Sprintf(`{"metadata":{"annotations":{"e2e.example.com/ready":%q}}}`, image))
}

// mustBe compares the images of all shards.
func (s *shards) mustBe(t *testing.T, when string, want ...string) {
	t.Helper()
	for i, w := range want {
		if got := image(s.Get(t, fmt.Sprint("w-", i))); got != w {
			t.Errorf("%s, shard %d has the image %s, want %s", when, i, got, w)
		}
	}
}

// newShards makes the work w with all its shards ready.
func newShards(t *testing.T, s *applyStage) *shards {
	t.Helper()
	s.works.Create(t, work("w", "v1"))
	all := &shards{Objects: plane.Objects(deployments, s.ns)}
	for i := range 4 {
		all.awaitImage(t, i, "v1") // all are made at once
	}
	for i := range 4 {
		all.say(t, i, "v1")
	}
	s.applied(t, "w") // so the operator knows that they are
	return watchShards(t, s.ns)
}

// TestApplyRollsOut: one after the other, it stops at one that does not become ready, a mended
// version goes to that one first, and then it goes on.
func TestApplyRollsOut(t *testing.T) {
	t.Parallel()
	s := newApplyStage(t, nil, made("", "configmaps"), made("apps", "deployments"))
	s.run(t, beside+shardsOf)
	all := newShards(t, s)
	s.works.Patch(t, "w", `{"spec":{"value":"bad"}}`)
	all.awaitImage(t, 0, "bad")
	all.say(t, 0, "bad")
	all.awaitImage(t, 1, "bad")
	s.awaitVerdict(t, "w", "Waiting", "rollout of shard", "2 of 4 are still to be updated", "Deployment "+s.ns+"/w-1")
	mark := plane.Mark(t)
	s.quiesce(t, "w")
	all.mustBe(t, "stopped", "bad", "bad", "v1", "v1")
	if writes := plane.Writes(t, s.user.Name, mark).Of("deployments", ""); len(writes) > 0 {
		t.Errorf("a stopped rollout wrote:\n%s", writes)
	}
	if pauses := s.pauses(t, "w"); len(pauses) > 0 {
		t.Errorf("waiting counted as %d failures", len(pauses))
	}

	s.works.Patch(t, "w", `{"spec":{"value":"good"}}`)
	all.awaitImage(t, 1, "good")
	s.quiesce(t, "w")
	all.mustBe(t, "mended but not ready", "bad", "good", "v1", "v1")
	for i, shard := range []int{1, 0, 2, 3} {
		all.awaitImage(t, shard, "good")
		if reason, _ := verdictOf(s.works.Get(t, "w")); reason == "AllApplied" && i < 3 {
			t.Errorf("all is said to be applied before shard %d was ready", shard)
		}
		all.say(t, shard, "good")
	}
	s.applied(t, "w")
	all.mustBe(t, "done", "good", "good", "good", "good")
	all.mustHaveBeenOneByOne(t)
}
