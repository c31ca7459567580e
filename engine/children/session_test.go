// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/children/prune"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
)

// BenchmarkSessionWithoutChildren is what children cost a reconcile over an object that has none.
func BenchmarkSessionWithoutChildren(b *testing.B) {
	op := dsl.New("demo")
	f := &Family{settings: Settings{Operator: op}, names: namesOf(op)}
	p := Input{
		Key: cache.ObjectName{Namespace: "shop", Name: "web"}, Now: time.Now(), Logger: aside{logr.Discard()}, Memory: &Memory{}, Prune: &prune.Memory{Logged: true}, Awaits: &inbox.Writes{},
		Object: &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
			"namespace": "shop", "name": "web", "uid": "1", "annotations": map[string]any{"example.com/a": "1", "example.com/b": "2"},
		}}},
	}
	request := &dsl.Request{}
	b.ReportAllocs()
	for b.Loop() {
		s := f.Begin(p)
		request.Subject.Children = s.Reader()
		request.Children = s.For(nil, collision.Attempt{Handler: "sync"}, nil)
		if along := s.Trim(s.Base()); along != nil || s.Applied() || len(s.Writes()) > 0 {
			b.Fatal("something was applied, or is to be written")
		}
		s.Close(true)
	}
}
