// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

const probes = "probes.v1alpha1.samples.handwerk.dev"

// site is an address whose answer a test decides, and which knows how many questions have no answer yet.
type site struct {
	*httptest.Server
	down, slow atomic.Bool
	asked      atomic.Int64
	open       atomic.Int64
}

func newSite(t *testing.T) *site {
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		s.open.Add(1)
		defer s.open.Add(-1)
		if s.slow.Load() {
			<-r.Context().Done()
		}
		if s.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestDaemonSample holds that a daemon begins with its object, sees its changes, stops with its filters, and has ended
// when its object goes.
func TestDaemonSample(t *testing.T) {
	t.Parallel()
	one, other := newSite(t), newSite(t)
	ns, user := plane.Namespace(t), plane.User("daemon")
	user.AllowIn(t, ns, cluster.Rule("samples.handwerk.dev", "probes", "get", "list", "watch", "patch"),
		cluster.Rule("samples.handwerk.dev", "probes/status", "patch"), eventRule())
	objects := plane.Objects(probes, ns)
	text, err := os.ReadFile("../../samples/daemon/operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	program := plane.Operator(t, cluster.Launch{Main: "samples/daemon", Config: user.Config(), Args: []string{"run", "--config", write(t, string(text)), "-n", ns}})
	awaitReadyz(t, program, "[+]resource/"+probes+" ok")
	is := func(state string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			found, _, _ := unstructured.NestedString(o.Object, "status", "state")
			return found == state
		}
	}
	objects.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "samples.handwerk.dev/v1alpha1", "kind": "Probe", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"url": one.URL, "period": "50ms"},
	}})
	up := objects.Await(t, "web", "state Up", is("Up"))
	if len(up.GetFinalizers()) != 1 {
		t.Errorf("its finalizers are %v", up.GetFinalizers())
	}
	one.down.Store(true)
	objects.Await(t, "web", "state Down", is("Down"))

	objects.Patch(t, "web", `{"spec":{"url":"`+other.URL+`"}}`)
	objects.Await(t, "web", "state Up", is("Up"))

	objects.Patch(t, "web", `{"spec":{"suspend":true}}`)
	objects.Await(t, "web", "no finalizer", func(o *unstructured.Unstructured) bool { return len(o.GetFinalizers()) == 0 })
	asked := other.asked.Load()
	objects.Patch(t, "web", `{"spec":{"suspend":false,"period":"1h"}}`)
	objects.Await(t, "web", "a finalizer", func(o *unstructured.Unstructured) bool { return len(o.GetFinalizers()) == 1 })
	for end := time.Now().Add(time.Minute); other.asked.Load() == asked; {
		if time.Now().After(end) {
			t.Fatal("it does not begin again")
		}
		<-time.After(10 * time.Millisecond)
	}

	other.slow.Store(true)
	objects.Patch(t, "web", `{"spec":{"url":"`+other.URL+`/slow"}}`)
	for end := time.Now().Add(time.Minute); other.open.Load() == 0; {
		if time.Now().After(end) {
			t.Fatal("it does not see the other address")
		}
		<-time.After(10 * time.Millisecond)
	}
	objects.Delete(t, "web")
	objects.AwaitGone(t, "web")
	if exit := program.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	mustLogNoError(t, program.Lines)
}
