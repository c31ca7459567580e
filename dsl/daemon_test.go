// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func idles(context.Context, *DaemonRequest) error { return nil }

// TestWhatADaemonCannotHave holds that all faults of a daemon or a delay are reported at once.
func TestWhatADaemonCannotHave(t *testing.T) {
	daemon := func(options ...Option) func(*Resource) {
		return func(r *Resource) { r.Daemon("d", idles, options...) }
	}
	tests := map[string]struct {
		declare func(*Resource)
		want    []string
	}{
		"filters, retries and a delay are for daemons": {
			daemon(Label("a", "b"), AnnotationExists("c"), Retries(3), WithBackoff(time.Second, time.Minute), NoFinalizer(), InitialDelay(0), StopWithin(time.Minute)), nil,
		},
		"options of handlers are refused, and all of them are reported": {
			daemon(byTime(), Field("spec.a"), Timeout(time.Minute), After("x"), Was("y"), Release(), NoOld()),
			[]string{"field: is not for daemons", "timeout: is not for daemons", "after: is not for daemons", "was: is not for daemons",
				"onFailure: is not for daemons", "old: is not for daemons", "every: is not for daemons", "causes: is not for daemons"},
		},
		"times are not negative": {
			daemon(InitialDelay(-1), StopWithin(-1), Retries(-2)),
			[]string{"stopWithin: must not be negative", "initialDelay: must not be negative", "and back-off must not be negative"},
		},
		"ids are unique among handlers and daemons": {
			func(r *Resource) {
				r.OnCreate("d", nothing)
				daemon()(r)
			}, []string{"the id is used twice"},
		},
		"the time to stop is for daemons alone": {
			func(r *Resource) { r.OnCreate("h", nothing, StopWithin(time.Minute)) }, []string{"stopWithin: is only for daemons"},
		},
		"a delay is for what runs by time": {
			func(r *Resource) { r.OnCreate("h", nothing, InitialDelay(time.Minute)) }, []string{"initialDelay: is only for daemons and timers"},
		},
		"and cannot be worked out where there is no object": {
			func(r *Resource) {
				r.Schedule(Timing{Every: time.Minute}, "h", nothing, InitialDelayFrom(func(*Subject) time.Duration { return 0 }))
			}, []string{"initialDelay: cannot be worked out from the object in a schedule"},
		},
		"a pause is no period": {
			func(r *Resource) {
				r.Pausing(time.Minute, "h", nothing, At(Timing{Pause: time.Minute, Every: time.Minute}))
			},
			[]string{"pause: excludes every and cron"},
		},
		"a timer has a pause, and a delay": {
			func(r *Resource) {
				r.Pausing(time.Minute, "h", nothing, InitialDelay(0))
				r.Schedule(Timing{Pause: time.Minute}, "s", nothing, InitialDelay(time.Second))
			}, nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			op := New("test")
			op.Resource("foos.v1.example.com", tt.declare)
			err := op.Validate()
			if err == nil {
				if len(tt.want) > 0 {
					t.Errorf("no fault is reported, want %v", tt.want)
				}
				return
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not reported:\n%v", want, err)
				}
			}
			if len(tt.want) == 0 {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// byTime has a handler run by time.
func byTime() Option { return At(Timing{Every: time.Minute}) }

// played is what a daemon of a test has of the engine.
type played struct {
	Live
	object *unstructured.Unstructured
	sent   []map[string]any
	err    error
}

func (p *played) Current() *unstructured.Unstructured { return p.object.DeepCopy() }

func (p *played) Send(_ context.Context, patch *Patch) error {
	p.sent = append(p.sent, patch.Status)
	return p.err
}

// TestWhatIsLeftOfAPatch holds what Flush sends, and what is left for the next time.
func TestWhatIsLeftOfAPatch(t *testing.T) {
	lost := errors.New("connection reset")
	tests := map[string]struct {
		err  error
		want []map[string]any
	}{
		"what was sent is not sent again": {nil, []map[string]any{{"a": int64(1)}, {"b": int64(2)}}},
		"what got lost is":                {lost, []map[string]any{{"a": int64(1)}, {"a": int64(1), "b": int64(2)}}},
		"what the server does not take is not": {
			apierrors.NewInvalid(schema.GroupKind{Kind: "Foo"}, "web", nil), []map[string]any{{"a": int64(1)}, {"b": int64(2)}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			live := &played{err: tt.err}
			r := &DaemonRequest{Live: live, Patch: NewPatch()}
			if err := r.Flush(t.Context()); err != nil || len(live.sent) > 0 {
				t.Fatalf("an empty patch is sent: %v, %v", live.sent, err)
			}
			r.Patch.SetStatus("a", 1)
			if err := r.Flush(t.Context()); !errors.Is(err, tt.err) {
				t.Errorf("Flush() = %v, want %v", err, tt.err)
			}
			live.sent[0] = map[string]any{"a": live.sent[0]["a"]} // as it was then
			r.Patch.SetStatus("b", 2)
			_ = r.Flush(t.Context())
			if diff := cmp.Diff(tt.want, live.sent); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
	r := &DaemonRequest{Live: &played{}, Patch: NewPatch()}
	r.Patch.Set("spec..a", 1)
	if err := r.Flush(t.Context()); !IsPermanent(err) || r.Patch.Err() != nil {
		t.Errorf("Flush() of a wrong path = %v, and leaves %v", err, r.Patch.Err())
	}
}

// TestATypedDaemon holds what of a typed object is sent.
func TestATypedDaemon(t *testing.T) {
	type foo struct {
		Spec   struct{ Size int }         `json:"spec"`
		Status struct{ Twice, Other int } `json:"status"`
	}
	live := &played{object: &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"Size": int64(4)}, "status": map[string]any{"Other": int64(1), "more": "x"},
	}}}
	daemon := TypedDaemon(func(ctx context.Context, r *TypedDaemonRequest[foo]) error {
		if r.Object.Spec.Size != 4 {
			t.Errorf("it finds %+v", r.Object)
		}
		return r.Change(ctx, func(f *foo) { f.Status.Twice = 2 * f.Spec.Size })
	})
	r := &DaemonRequest{Live: live, Object: live.object, Patch: NewPatch()}
	if err := daemon(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]map[string]any{{"Twice": int64(8)}}, live.sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	r.Object = &unstructured.Unstructured{Object: map[string]any{"spec": "text"}}
	if err := daemon(t.Context(), r); err == nil || !strings.Contains(err.Error(), "spec") {
		t.Errorf("an object that does not fit: %v", err)
	}
}
