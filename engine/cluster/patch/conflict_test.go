// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
)

// contended is a server with one object, which others write before the patches whose numbers a test gives.
type contended struct {
	object   *unstructured.Unstructured
	before   []int
	requests []string
}

func (s *contended) version() string { return s.object.GetResourceVersion() }

func (s *contended) merge(patch tree) {
	var version int
	_, _ = fmt.Sscan(s.version(), &version)
	s.object = &unstructured.Unstructured{Object: overlay(s.object.Object, patch)}
	s.object.SetResourceVersion(fmt.Sprint(version + 1))
}

func (s *contended) Patch(_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	if s.requests = append(s.requests, append(sub, "object")[0]); slices.Contains(s.before, len(s.requests)) {
		s.merge(tree{"metadata": tree{"annotations": tree{"theirs": fmt.Sprint(len(s.requests))}}})
	}
	var sent tree
	if err := json.Unmarshal(data, &sent); err != nil {
		return nil, err
	}
	if sent["metadata"].(tree)["resourceVersion"] != s.version() {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "foos"}, name, errors.New("changed"))
	}
	s.merge(sent)
	return s.object.DeepCopy(), nil
}

func (s *contended) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	return s.object.DeepCopy(), nil
}

// TestAConflictIsReturned holds that a conflict has the object as it is now, that nothing is sent after a conflict, and that a request which
// has succeeded is not sent again. Each conflict costs one request.
func TestAConflictIsReturned(t *testing.T) {
	tests := map[string]struct {
		before []int
		want   []string
		live   []string
	}{
		"nobody else writes":                    {nil, []string{"status", "object"}, nil},
		"before the status":                     {[]int{1}, []string{"status", "status", "object"}, []string{"2"}},
		"between both":                          {[]int{2}, []string{"status", "object", "object"}, []string{"3"}},
		"before both":                           {[]int{1, 3}, []string{"status", "status", "object", "object"}, []string{"2", "4"}},
		"twice before the object":               {[]int{2, 3}, []string{"status", "object", "object", "object"}, []string{"3", "4"}},
		"as often as a write is sent again":     {[]int{1, 2, 3, 4, 5}, []string{"status", "status", "status", "status", "status", "status", "object"}, []string{"2", "3", "4", "5", "6"}},
		"as often before each of both requests": {[]int{1, 2, 3, 4, 5, 7, 8, 9, 10, 11}, slices.Concat(slices.Repeat([]string{"status"}, 6), slices.Repeat([]string{"object"}, 6)), []string{"2", "3", "4", "5", "6", "8", "9", "10", "11", "12"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: tree{"metadata": tree{"name": "a", "uid": "u", "resourceVersion": "1"}}}
			server, p := &contended{object: object, before: tt.before}, dsl.NewPatch()
			p.Label("a", "b")
			p.SetStatus("a", "b")
			target := Target{Client: server, Object: object, Subresource: true}
			result, err := Write(t.Context(), target, p, Marks{})
			var live []string
			for result.Conflict != nil {
				live = append(live, result.Conflict.Live.GetResourceVersion())
				target = target.After(result)
				result, err = Write(t.Context(), target, p, Marks{})
			}
			if diff := cmp.Diff(tt.want, server.requests); diff != "" || err != nil {
				t.Errorf("requests (-want +got):\n%s%v", diff, err)
			}
			if diff := cmp.Diff(tt.live, live); diff != "" {
				t.Errorf("versions of others (-want +got):\n%s", diff)
			}
			if !result.Status || !result.Whole || result.Object.GetResourceVersion() != server.version() {
				t.Errorf("the result is %+v", result)
			}
		})
	}
}

// TestAConflictKeepsWhatWasLearned holds that the result after a conflict has what the server dropped before it.
func TestAConflictKeepsWhatWasLearned(t *testing.T) {
	object := &unstructured.Unstructured{Object: tree{"metadata": tree{"name": "a", "uid": "u", "resourceVersion": "1"}}}
	server, p := &forgetful{contended{object: object, before: []int{2}}}, dsl.NewPatch()
	p.Label("a", "b")
	p.SetStatus("kept", "x")
	p.SetStatus("lost", "x")
	target := Target{Client: server, Object: object, Subresource: true}
	first, _ := Write(t.Context(), target, p, Marks{})
	if first.Conflict == nil || !first.Status || first.Whole {
		t.Fatalf("the first result is %+v", first)
	}
	last, err := Write(t.Context(), target.After(first), p, Marks{})
	if diff := cmp.Diff([]dsl.Path{{"status", "lost"}}, last.Dropped); diff != "" || err != nil || len(last.Ignored) != 1 {
		t.Errorf("dropped fields (-want +got):\n%s%d ignored, %v", diff, len(last.Ignored), err)
	}
}

// forgetful is a server that drops a field of the status.
type forgetful struct{ contended }

func (s *forgetful) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	o, err := s.contended.Patch(ctx, name, kind, data, options, sub...)
	if err == nil {
		unstructured.RemoveNestedField(s.object.Object, "status", "lost")
		unstructured.RemoveNestedField(o.Object, "status", "lost")
	}
	return o, err
}
