// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
)

// noting is a server that notes for which version each patch is, and answers with another one.
type noting struct {
	dynamic.ResourceInterface
	versions []any
}

func (n *noting) Patch(_ context.Context, _ string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*unstructured.Unstructured, error) {
	var sent struct{ Metadata map[string]any }
	if err := json.Unmarshal(data, &sent); err != nil {
		return nil, err
	}
	n.versions = append(n.versions, sent.Metadata["resourceVersion"])
	return &unstructured.Unstructured{Object: tree{"metadata": tree{"name": "a", "uid": "u", "resourceVersion": "2"}}}, nil
}

// TestEachWriteIsForTheVersionThatItWasWorkedOutFrom holds that no write lands on a state of the object that nobody has looked at.
func TestEachWriteIsForTheVersionThatItWasWorkedOutFrom(t *testing.T) {
	label := func(p *dsl.Patch) { p.Label("a", "b") }
	status := func(p *dsl.Patch) { p.SetStatus("a", "b") }
	none := func(*dsl.Patch) {}
	tests := map[string]struct {
		wants func(p *dsl.Patch)
		marks Marks
		want  []any
	}{
		"a handler's change":                      {label, Marks{}, []any{"1"}},
		"a handler's change of the status":        {status, Marks{}, []any{"1"}},
		"both, the status first":                  {func(p *dsl.Patch) { label(p); status(p) }, Marks{}, []any{"1", "2"}},
		"the finalizer":                           {none, Marks{Finalizer: "f", Add: true}, []any{"1"}},
		"the state annotation":                    {none, Marks{Annotation: "op.dev/state", State: "s"}, []any{"1"}},
		"the removal of the state annotation":     {none, Marks{Annotation: "op.dev/old"}, []any{"1"}},
		"the inventory, by itself":                {none, Marks{Annotations: map[string]Note{"op.dev/children": {Text: "c", Alone: true}}}, []any{"1"}},
		"the inventory, along with the state":     {none, Marks{Annotation: "op.dev/state", State: "s", Annotations: map[string]Note{"op.dev/children": {Text: "c"}}}, []any{"1"}},
		"the removal of an inventory with others": {none, Marks{Annotation: "op.dev/state", State: "s", Annotations: map[string]Note{"op.dev/old": {Was: "o"}}}, []any{"1"}},
		"an annotation that is spent":             {none, Marks{RemoveAnnotations: map[string]string{"op.dev/old": "o"}}, []any{"1"}},
		"the observed generation":                 {none, Marks{Observed: 3, ObservedAlone: true}, []any{"1"}},
		"a condition of the engine":               {none, Marks{Conditions: []metav1.Condition{{Type: "Failing", Status: "True"}}}, []any{"1"}},
		"nothing":                                 {none, Marks{}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server, p := &noting{}, dsl.NewPatch()
			test.wants(p)
			o := &unstructured.Unstructured{Object: tree{"metadata": tree{
				"name": "a", "uid": "u", "resourceVersion": "1", "annotations": tree{"op.dev/old": "o"},
			}}}
			to := Target{Client: server, Object: o, Subresource: true, Manager: "op"}
			if _, err := Write(t.Context(), to, p, test.marks); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, server.versions); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
		})
	}
}
