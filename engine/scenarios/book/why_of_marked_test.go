// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestWhyOfAnObjectWithMarksOfEarlierVersions holds that an answer about an object which no reconcile has taken over yet says what the
// handlers do once one has.
func TestWhyOfAnObjectWithMarksOfEarlierVersions(t *testing.T) {
	pause := func(s *scene.Stage, annotations map[string]string) {
		s.Update("namespaces.v1", "", "default", func(o *unstructured.Unstructured) { o.SetAnnotations(annotations) })
	}
	for name, tt := range map[string]struct {
		load func(s *scene.Stage)
		want []string
	}{
		"it was handled":                      {marked{1, 1, "op/observed/u1", ""}.load, nil},
		"it has changed since":                {marked{2, 1, "op/observed/u1", ""}.load, []string{"h update"}},
		"the operator had another name":       {marked{1, 1, "old/observed/u1", ""}.load, nil},
		"the number is somebody else's":       {marked{1, 1, "other", ""}.load, []string{"made create", "h create"}},
		"the book is under the earlier name":  {bookOf("old"), []string{"h update"}},
		"the book is under a stranger's name": {bookOf("other"), []string{"made create", "h create"}},
	} {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: true})
				s := scene.NewStage(t, c)
				s.Operator.Was = []string{"old"}
				foo := s.Operator.Resource(scene.Foos, nil)
				foo.OnCreate("made", s.Note("made"))
				foo.On(scene.CreateAndUpdate(), "h", s.Note("h"))
				tt.load(s)
				pause(s, map[string]string{"op.handwerk.dev/paused": "looking"})
				s.Launch()
				s.Settle()
				a, err := s.Process.Engine().Why(t.Context(), why.Question{Resource: "foos", Namespace: "default", Name: "web"})
				if err != nil {
					t.Fatal(err)
				}
				var runs []string
				for _, h := range a.Handlers {
					if h.Reason == "ToRun" {
						runs = append(runs, h.ID+" "+h.Cause)
					}
				}
				if diff := cmp.Diff(tt.want, runs); diff != "" {
					t.Errorf("handlers that are to run (-want +got):\n%s", diff)
				}
				s.Called()
				pause(s, nil)
				s.Called(tt.want...)
			})
		})
	}
}

// bookOf loads web with the book of an operator, in which handler h has handled something else.
func bookOf(operator string) func(s *scene.Stage) {
	return func(s *scene.Stage) {
		s.Load(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: default, uid: u1, generation: 1, annotations: {` + operator + `.handwerk.dev/state: '{"handwerk":2,"uid":"u1","generation":1,"handlers":{"made":{"of":"essence","seen":"x"},"h":{"of":"essence","seen":"x"}}}'}}, spec: {size: 1, color: red}}`)
	}
}
