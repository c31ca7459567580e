// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/handwerk-dev/handwerk/engine/fence"
	"github.com/handwerk-dev/handwerk/engine/gone"
	"github.com/handwerk-dev/handwerk/engine/ops"
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
		"the process does not lead":       {fmt.Errorf("sending: %w", fence.ErrNotLeading), 2},
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
					Client: client, Operator: "op", Log: logr.Discard(), Dropped: func(ops.Reporter) {}, Failed: func(error) {}, Ending: &gone.Namespaces{},
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
