// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// noStorms denies works whose status forecasts a storm, as a webhook does that gives no reason: with a 403.
const noStorms = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NS}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [e2e.example.com], apiVersions: [v1], operations: [UPDATE], resources: [works, works/status]}]
  validations: [{expression: "!has(object.status) || !('forecast' in object.status) || object.status.forecast != 'storm'", message: no storms here, reason: Forbidden}]
`

// calm puts the policy in force in the stage's namespace.
func (s *stage) calm(t *testing.T) {
	t.Helper()
	s.works.Create(t, work("probe", "a"))
	inForce(t, s.ns, noStorms, func() bool {
		_, err := plane.Dynamic().Resource(schema.GroupVersionResource{Group: "e2e.example.com", Version: "v1", Resource: "works"}).Namespace(s.ns).
			Patch(t.Context(), "probe", types.MergePatchType, []byte(`{"status":{"forecast":"storm"}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
		return apierrors.IsForbidden(err)
	})
	s.works.Delete(t, "probe")
}

// foretells wants a field of the status.
func foretells(field, value string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		r.Patch.SetStatus(field, value)
		return nil
	}
}

// TestMachineIsRefused holds that an action whose wish the API server refuses has failed, and says so with its words, and that time-outs,
// budgets and people take the object away all the same.
func TestMachineIsRefused(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		field  string
		policy bool
		words  string
	}{
		"by the schema":              {"weather", false, "status.weather: Unsupported value"},
		"by what admits its request": {"forecast", true, "no storms here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			if one.policy {
				s.calm(t)
			}
			s.play(t, func(r *dsl.Resource) {
				bad := s.Note("bad", foretells(one.field, "storm"))
				r.Machine(dsl.Machine{AllowCycles: true, States: []dsl.State{
					{Name: "Pending", Transitions: []dsl.Transition{
						{To: "Timed", When: valueIs("timed")}, {To: "Counted", When: valueIs("counted")}, {To: "Asked", When: valueIs("asked")},
					}},
					{Name: "Timed", Enter: bad, Stay: &dsl.Stay{AtMost: 5 * time.Second, Then: "Left"}},
					{Name: "Counted", Enter: bad, Retries: &dsl.Budget{AtMost: 1, Then: "Left"}},
					{Name: "Asked", During: bad, Transitions: []dsl.Transition{{To: "Left", Manual: true}}},
					{Name: "Left", Terminal: true},
				}}, dsl.WithBackoff(500*time.Millisecond, time.Second))
			})
			for _, way := range []string{"timed", "counted", "asked"} {
				s.works.Create(t, work(way, way))
			}
			reasons := map[string]string{"timed": "EnterFailed enter of state Timed", "asked": "DuringFailed during of state Asked"}
			for way, want := range reasons {
				s.works.Await(t, way, "the words of the server", func(o *unstructured.Unstructured) bool {
					said := readyOf(o)
					return strings.HasPrefix(said, "False "+want+": changing the object: writing status: ") && strings.Contains(said, one.words)
				})
			}
			s.works.Patch(t, "asked", `{"metadata":{"annotations":{"law.handwerk.dev/goto":"Left"}}}`)
			for _, way := range []string{"timed", "counted", "asked"} {
				s.works.Await(t, way, "leaving", stands("Left"))
			}
			if n := len(s.Of("bad", "counted")); n != 2 {
				t.Errorf("Enter with a budget of one failure was called %d times", n)
			}
			if way := wayOf(s.works.Get(t, "counted")); !strings.HasPrefix(way[1], "Counted Left enter failed 2 times: ") {
				t.Errorf("the way is %q", way)
			}
		})
	}
}

// readyOf is the condition Ready: status, reason and message.
func readyOf(o *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		if c := item.(map[string]any); c["type"] == dsl.Ready {
			return strings.Join([]string{c["status"].(string), c["reason"].(string), c["message"].(string)}, " ")
		}
	}
	return ""
}

// TestMachineGoesOnWithAnotherLeader holds that a leader that is cut off leaves its objects to the next one as they are: no
// transition is taken twice, and times go on.
func TestMachineGoesOnWithAnotherLeader(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.user.AllowIn(t, s.ns, lockRules("law-leader")...)
	const most = 14 * time.Second
	process := func(name string) *dsl.Operator {
		op := s.operator(func(r *dsl.Resource) {
			r.Machine(dsl.Machine{States: []dsl.State{
				{Name: "Pending", Transitions: []dsl.Transition{{To: "Running", When: valueIs("b"), Why: "it is b"}}},
				{Name: "Running", Enter: s.Note(name, nil), Stay: &dsl.Stay{AtMost: most, Then: "Late"}, Transitions: []dsl.Transition{{To: "Done", When: valueIs("done")}}},
				{Name: "Done", Terminal: true}, {Name: "Late", Terminal: true, Failed: true},
			}})
		})
		op.Settings.LeaderElection = dsl.LeaderElection{
			Mode: dsl.LeaderLease, Namespace: s.ns, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		}
		return op
	}
	s.begin(t, process("first"))
	s.works.Create(t, work("w", "b"))
	began := s.works.Await(t, "w", "its beginning", stands("Running"))
	settings := settingsOf(s)
	settings.Config = s.user.Config()
	second := cluster.Run(t, process("second"), settings)
	s.proxy.Sever()
	defer s.proxy.Restore()
	second.AwaitReady(t)
	late := s.works.Await(t, "w", "its end", stands("Late"))
	if took := moment(t, late).Sub(moment(t, began)); took < most || took > most+6*time.Second {
		t.Errorf("it was in the state for %v, want %v", took, most)
	}
	if way := wayOf(late); len(way) != 2 || way[0] != "Pending Running it is b" {
		t.Errorf("the way is %q", way)
	}
	if n, m := len(s.Of("first", "w")), len(s.Of("second", "w")); n != 1 || m != 0 {
		t.Errorf("it was entered %d times by the first and %d times by the second", n, m)
	}
}

// moment is when the object entered its state.
func moment(t *testing.T, o *unstructured.Unstructured) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, status(o, "stateSince"))
	if err != nil {
		t.Fatal(err)
	}
	return at
}
