// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/notfound"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// TestEventsThatCannotBeSent holds which Events are tried again: those that the API server may take later, and not those of
// a process that does not lead, nor those of a namespace that is being deleted.
func TestEventsThatCannotBeSent(t *testing.T) {
	ending := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "a", errors.New("it is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tests := map[string]struct {
		err  error
		want int // requests for the Events of two objects in one namespace
	}{
		"they can be sent":                {nil, 2},
		"no server answers the first one": {errors.New("connection refused"), 3},
		"the process does not lead":       {fmt.Errorf("sending: %w", transport.ErrNotLeading), 2},
		"the namespace is being deleted":  {ending, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, sent := fake.NewClientset(), 0
				client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
					sent++
					return sent == 1 && tt.err != nil, nil, tt.err
				})
				r := New(Settings{
					Client: client, Operator: "op", Log: logr.Discard(), Metrics: ops.NewMetrics(), Access: access(func(error) {}), Ending: &notfound.Namespaces{},
				})
				if err := r.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"web", "shop"} {
					o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"namespace": "default", "name": name}}}
					r.Warn(o, "sync", "Failing", "it fails")
					synctest.Wait()
				}
				time.Sleep(time.Minute)
				r.Stop()
				if sent != tt.want {
					t.Errorf("%d requests were sent, want %d", sent, tt.want)
				}
			})
		})
	}
}

// access is a function that gets the errors of requests.
type access func(error)

func (a access) OnError(err error) { a(err) }

// TestEventsOfOneMoment holds that Events about one object get lost neither when they are reported in the same nanosecond, of
// which client-go makes their names, nor when they are repeated.
func TestEventsOfOneMoment(t *testing.T) {
	longest := strings.Repeat("a", 236) // client-go adds 17 characters, and there may be 253
	for _, name := range []string{"web", longest, longest + "a"} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset()
			start := func(operator string) *Recorder {
				r := New(Settings{
					Client: client, Operator: operator, Log: logr.Discard(), Metrics: ops.NewMetrics(), Ending: &notfound.Namespaces{},
					Access: access(func(err error) {
						if err != nil {
							t.Errorf("sending an Event: %v", err)
						}
					}),
				})
				if err := r.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				return r
			}
			a, b := start("a"), start("b")
			web := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"namespace": "default", "name": name}}}
			for range 3 {
				a.Warn(web, "sync", "Stuck", "it is stuck")
				a.Warn(web, "sync", "DeletionHeld", "deletion is held")
				a.Warn(web, "copy", "Stuck", "the copy is stuck")
				a.Send(ops.ByHandler, web, "sync", dsl.Normal, "Stuck", "it may be")
				b.Warn(web, "sync", "Stuck", "it is stuck here, too")
				time.Sleep(time.Minute)
			}
			a.Stop()
			b.Stop()
			found, err := client.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range found.Items {
				if errs := validation.IsDNS1123Subdomain(e.Name); len(errs) > 0 {
					t.Errorf("an Event is named %s: %v", e.Name, errs)
				}
				got = append(got, fmt.Sprintf("%s: %d times", e.Note, e.Series.Count))
			}
			slices.Sort(got)
			want := []string{"deletion is held: 2 times", "it is stuck here, too: 2 times", "it is stuck: 2 times", "it may be: 2 times", "the copy is stuck: 2 times"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
		})
	}
}
