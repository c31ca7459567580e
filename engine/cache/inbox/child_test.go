// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// show has the cache show a ConfigMap.
func (p *post) show(name, uid, version string) {
	p.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"namespace": "default", "name": name, "uid": uid, "resourceVersion": version,
	}, "data": []any(nil)}}
	if _, err := p.cache.client.Resource(configMaps).Namespace("default").Create(p.t.Context(), o, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// TestAnOwnWriteWithoutAnEventIsLookedFor holds what becomes of an own write to the child c, version 5, whose event does not come: the owner
// is woken when the cache has come to the write and does not have it, or does not come to it at all.
func TestAnOwnWriteWithoutAnEventIsLookedFor(t *testing.T) {
	tests := map[string]struct {
		shows func(p *post)
		// soon and late: the owner is queued within a few seconds, or after more than a minute.
		soon, late bool
	}{
		"the cache has nothing under the name": {func(p *post) { p.show("other", "o", "6") }, true, true},
		"it has another object of the name":    {func(p *post) { p.show("web", "d", "6") }, true, true},
		"it has a later state":                 {func(p *post) { p.show("web", "c", "6") }, true, true},
		"it has the state as it was written":   {func(p *post) { p.show("web", "c", "5") }, false, false},
		"it is older than the write":           {func(p *post) { p.show("other", "o", "4") }, false, true},
		"its event comes late": {func(p *post) {
			p.show("other", "o", "4")
			p.OnChildEvent(p.key, p.event(watch.Updated, "c", "5"), false)
		}, false, false},
		"the versions go back, and the child with": {func(p *post) { p.ForgetEchoes(); p.show("other", "o", "6") }, true, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPost(t)
				synctest.Wait() // the cache has listed
				p.OnEvent(p.event(watch.Added, "u", "1"))
				turn := p.Take(p.key)
				p.wrote("c", "5")
				turn.Handled()
				turn.Memory = &remembered{"u"}
				p.SetHealth(p.key, ops.ObjectHealth{Health: ops.Ready})
				turn.Close()
				p.in.Get()
				p.in.Done(p.key)
				tt.shows(p)
				time.Sleep(2 * lookPause)
				wantWoken(p, tt.soon)
				time.Sleep(2 * Patience)
				wantWoken(p, tt.late)
				if s := p.keys[p.key]; !tt.late && s.pending != nil {
					t.Errorf("there is room for what is awaited: %+v", s.pending)
				}
			})
		})
	}
}

// wantWoken fails the test unless the key is queued for a change of a child, or is not.
func wantWoken(p *post, want bool) {
	p.t.Helper()
	synctest.Wait()
	if came := p.Peek(p.key); came.Child != want || (len(p.in.Stats().Waiting) > 0) != want {
		p.t.Errorf("a child counts as changed: %t, and keys are queued: %v; want %t", came.Child, p.in.Stats().Waiting, want)
	}
}
