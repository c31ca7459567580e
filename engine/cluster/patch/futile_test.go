// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
)

// pruning is a server that merges patches of status, drops what its schema does not have, and fills
// in a default.
type pruning struct {
	dynamic.ResourceInterface
	object   *unstructured.Unstructured
	unknown  []string
	requests int
}

func (s *pruning) Patch(_ context.Context, _ string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*unstructured.Unstructured, error) {
	s.requests++
	var sent tree
	if err := json.Unmarshal(data, &sent); err != nil {
		return nil, err
	}
	s.object = &unstructured.Unstructured{Object: overlay(s.object.Object, tree{"status": sent["status"]})}
	for _, field := range s.unknown {
		unstructured.RemoveNestedField(s.object.Object, "status", field)
	}
	if list, _, _ := unstructured.NestedSlice(s.object.Object, "status", "ports"); len(list) > 0 {
		for _, item := range list {
			item.(tree)["protocol"] = "TCP"
		}
		if err := unstructured.SetNestedSlice(s.object.Object, list, "status", "ports"); err != nil {
			return nil, err
		}
	}
	return s.object.DeepCopy(), nil
}

// TestWhatTheServerDoesNotTakeIsSentOnce holds that a change which was sent in vain is not sent
// again, until the object or the change is another.
func TestWhatTheServerDoesNotTakeIsSentOnce(t *testing.T) {
	for _, subresource := range []bool{true, false} {
		server := &pruning{
			object:  &unstructured.Unstructured{Object: tree{"metadata": tree{"name": "a", "uid": "u"}, "status": tree{}}},
			unknown: []string{"lost", "conditions"},
		}
		var ignored []uint64
		write := func(when string, requests int, p *dsl.Patch) {
			t.Helper()
			server.requests = 0
			target := Target{Client: server, Object: server.object.DeepCopy(), Subresource: subresource, Ignored: ignored}
			result, err := Write(t.Context(), target, p, Marks{})
			if ignored = result.Ignored; err != nil || server.requests != requests {
				t.Errorf("%s: %d requests, want %d; %v", when, server.requests, requests, err)
			}
		}
		wanting := func(lost string) *dsl.Patch {
			p := dsl.NewPatch()
			p.SetStatus("kept", "x")
			p.SetStatus("lost", lost)
			p.SetStatus("ports", []any{tree{"port": int64(80)}})
			p.SetCondition("Ready", metav1.ConditionTrue, "Ready", "")
			return p
		}
		write("the first time", 1, wanting("1"))
		write("the same again", 0, wanting("1"))
		write("and again", 0, wanting("1"))
		write("another value", 1, wanting("2"))
		write("that again", 0, wanting("2"))
		_ = unstructured.SetNestedSlice(server.object.Object, []any{tree{"port": float64(81)}}, "status", "ports")
		write("drift beside it", 1, wanting("2"))
		if list, _, _ := unstructured.NestedSlice(server.object.Object, "status", "ports"); list[0].(tree)["port"] != float64(80) {
			t.Errorf("drift was not put back: %v", list)
		}
		write("after the drift", 0, wanting("2"))
		write("nothing wanted", 0, dsl.NewPatch())
		write("what was forgotten meanwhile", 1, wanting("2"))
	}
}
