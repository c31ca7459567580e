// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// ConfigMapUIDs returns the UIDs of the ConfigMaps in the default namespace, by name.
func (s *Stage) ConfigMapUIDs() map[string]types.UID {
	out := map[string]types.UID{}
	for _, o := range s.List(ConfigMaps, "default") {
		out[o.GetName()] = o.GetUID()
	}
	return out
}

// WantStatus fails the test unless fields of web's status have these values.
func (s *Stage) WantStatus(want map[string]any) {
	s.T.Helper()
	s.Settle()
	got, _ := s.Web().Object["status"].(map[string]any)
	for field, value := range want {
		if got[field] != value {
			s.T.Errorf("status.%s is %v, want %v", field, got[field], value)
		}
	}
}

// WantField fails the test unless web has this value at a path; nil stands for none.
func (s *Stage) WantField(path string, want any) {
	s.T.Helper()
	s.Settle()
	if got := ValueAt(s.Web(), path); got != want {
		s.T.Errorf("%s is %v, want %v", path, got, want)
	}
}

// WantFinalizers fails the test unless web has these finalizers.
func (s *Stage) WantFinalizers(want ...string) {
	s.T.Helper()
	s.Settle()
	o := s.Web()
	if o == nil {
		s.T.Fatal("the object is gone")
	}
	if diff := cmp.Diff(want, o.GetFinalizers(), cmpopts.EquateEmpty()); diff != "" {
		s.T.Errorf("finalizers (-want +got):\n%s", diff)
	}
}

// WantGone fails the test if web is still there.
func (s *Stage) WantGone() {
	s.T.Helper()
	s.Settle()
	if o := s.Web(); o != nil {
		s.T.Errorf("the object is still there: %v", o.Object["metadata"])
	}
}

// WantFailureCondition fails the test unless the condition HandlersFailing has this message.
func (s *Stage) WantFailureCondition(want string) {
	s.T.Helper()
	s.Settle()
	if got := ConditionMessage(s.Web(), "HandlersFailing"); got != want {
		s.T.Errorf("the condition says %q, want %q", got, want)
	}
}

// MachineState returns the state that web's machine is in. Book is the path of the machine's progress in the status.
func (s *Stage) MachineState(book ...string) string {
	s.T.Helper()
	o := s.Web()
	if o == nil {
		return "gone"
	}
	tree, _, _ := unstructured.NestedMap(o.Object, append([]string{"status"}, book...)...)
	if tree["stateUID"] != string(o.GetUID()) {
		return "of another"
	}
	return tree["state"].(string)
}

// WantState fails the test unless web's machine is in this state.
func (s *Stage) WantState(want string, book ...string) {
	s.T.Helper()
	s.Settle()
	if got := s.MachineState(book...); got != want {
		s.T.Errorf("the state is %s, want %s", got, want)
	}
}

// StoredState returns the content of web's state annotation, nil if there is none.
func (s *Stage) StoredState() map[string]any {
	s.T.Helper()
	s.Settle()
	text := s.Web().GetAnnotations()[StateAnnotation]
	if text == "" {
		return nil
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		s.T.Fatal(err)
	}
	return out
}

// WantStoredState fails the test unless web's state annotation has these keys.
func (s *Stage) WantStoredState(want ...string) {
	s.T.Helper()
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(s.StoredState()))); diff != "" {
		s.T.Errorf("the state's keys (-want +got):\n%s", diff)
	}
}

// WantCondition fails the test unless the condition of web says this: its status, generation, reason and message. A type
// without more says that there is none.
func (s *Stage) WantCondition(kind string, want ...string) {
	s.T.Helper()
	s.Settle()
	var got []string
	if c := Condition(s.Web(), kind); c != nil {
		got = append(got, fmt.Sprintf("%v@%v %v: %v", c["status"], c["observedGeneration"], c["reason"], c["message"]))
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		s.T.Errorf("condition %s (-want +got):\n%s", kind, diff)
	}
}

// ConditionStatus returns status and generation of a condition of web, in the form of "True@1", or none.
func (s *Stage) ConditionStatus(kind string) string {
	s.T.Helper()
	s.Settle()
	c := Condition(s.Web(), kind)
	if c == nil {
		return "none"
	}
	return fmt.Sprint(c["status"], "@", c["observedGeneration"])
}

// CompareLines fails the test unless the lines are these.
func CompareLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
