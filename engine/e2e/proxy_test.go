// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

func TestProxyHoldsStreams(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	proxy := cluster.NewProxy(t, plane.Config())
	early := watchFoos(t, proxy, ns)
	hold := proxy.HoldWatches(cluster.On("watch", "foos"))
	late := watchFoos(t, proxy, ns)
	proxy.Await(t, 2, func(r cluster.Request) bool { return r.Verb == "watch" && r.Code == 200 })
	for _, name := range []string{"a", "b", "c"} {
		plane.Objects(foos, ns).Create(t, foo(name, 1))
	}
	hold.Await(t, 2)
	for _, w := range []watch.Interface{early, late} {
		select {
		case e := <-w.ResultChan():
			t.Errorf("an event came while the stream was held: %v", e)
		default:
		}
	}
	hold.Release()
	for _, w := range []watch.Interface{early, late} {
		for _, want := range []string{"ADDED a", "ADDED b", "ADDED c"} {
			if got := nextEvent(t, w); got != want {
				t.Errorf("event is %q, want %q", got, want)
			}
		}
	}
}

func TestProxyEndsStreams(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		end  func(*cluster.Proxy) int
		want string
	}{
		"cut":     {func(p *cluster.Proxy) int { return p.CutWatches(cluster.On("watch", "foos")) }, "closed"},
		"expired": {func(p *cluster.Proxy) int { return p.ExpireWatches(cluster.On("*", "*")) }, "ERROR 410"},
		"of another resource": {func(p *cluster.Proxy) int {
			defer p.CutWatches(cluster.On("watch", "*"))
			return 1 + p.CutWatches(cluster.On("watch", "bars"))
		}, "closed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := cluster.NewProxy(t, plane.Config())
			w := watchFoos(t, proxy, plane.Namespace(t))
			if n := test.end(proxy); n != 1 {
				t.Errorf("%d streams were ended, want 1", n)
			}
			if got := nextEvent(t, w); got != test.want {
				t.Errorf("event is %q, want %q", got, test.want)
			}
		})
	}
}

func TestProxyInjectsFaults(t *testing.T) {
	t.Parallel()
	gr := schema.GroupResource{Group: "samplecontroller.k8s.io", Resource: "foos"}
	tests := map[string]struct {
		fault cluster.Fault
		check func(error) bool
		made  bool // whether the API server handled the request
	}{
		"conflict":          {cluster.Answer(apierrors.NewConflict(gr, "x", errors.New("no"))), apierrors.IsConflict, false},
		"too many requests": {cluster.Answer(apierrors.NewTooManyRequestsError("no")), apierrors.IsTooManyRequests, false},
		"expired":           {cluster.Answer(apierrors.NewResourceExpired("no")), apierrors.IsResourceExpired, false},
		"refused":           {cluster.Refuse, isBroken, false},
		"answer lost":       {cluster.LoseAnswer, isBroken, true},
		"delayed":           {cluster.Delay(time.Millisecond), func(err error) bool { return err == nil }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, proxy := plane.Namespace(t), cluster.NewProxy(t, plane.Config())
			proxy.Inject(cluster.When{Match: cluster.On("create", "foos"), Skip: 1, Times: 1}, test.fault)
			client := dynamic.NewForConfigOrDie(proxy.Config()).Resource(foosGVR).Namespace(ns)
			for i, want := range []bool{true, test.made, true} {
				_, err := client.Create(t.Context(), foo(fmt.Sprint(i), 1), metav1.CreateOptions{})
				if i != 1 && err != nil || i == 1 && !test.check(err) {
					t.Errorf("request %d got %v", i, err)
				}
				if made := plane.Objects(foos, ns).Get(t, fmt.Sprint(i)) != nil; made != want {
					t.Errorf("object %d was made: %t, want %t", i, made, want)
				}
			}
		})
	}
}

func TestProxyBlocksAndReports(t *testing.T) {
	t.Parallel()
	ns, proxy := plane.Namespace(t), cluster.NewProxy(t, plane.Config())
	gate := make(chan struct{})
	var order []string
	report := func(what string) func(cluster.Request) {
		return func(r cluster.Request) { order = append(order, what+" "+r.Name) }
	}
	patches := cluster.When{Match: cluster.On("patch", "foos/status")}
	proxy.Inject(patches, cluster.Block(gate))
	proxy.Inject(patches, cluster.Before(report("before")))
	proxy.Inject(patches, cluster.After(report("after")))
	plane.Objects(foos, ns).Create(t, foo("a", 1))

	done := make(chan error)
	go func() {
		client := dynamic.NewForConfigOrDie(proxy.Config()).Resource(foosGVR).Namespace(ns)
		_, err := client.Patch(t.Context(), "a", "application/merge-patch+json", []byte(`{"status":{"availableReplicas":3}}`), metav1.PatchOptions{}, "status")
		done <- err
	}()
	proxy.Await(t, 1, patches.Match)
	if n := available(plane.Objects(foos, ns).Get(t, "a")); n != 0 {
		t.Errorf("blocked patch was handled: %d", n)
	}
	close(gate)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := available(plane.Objects(foos, ns).Get(t, "a")); n != 3 {
		t.Errorf("patch was not handled: %d", n)
	}
	proxy.Await(t, 1, func(r cluster.Request) bool { return patches.Match(r) && r.Code == 200 })
	if diff := cmp.Diff([]string{"before a", "after a"}, order); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
}

func TestProxyCrashesAtTheNthWrite(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		crash func(p *cluster.Proxy, kill func()) <-chan struct{}
		want  []string
	}{
		"before the third": {func(p *cluster.Proxy, kill func()) <-chan struct{} { return p.CrashBefore(3, kill) }, []string{"0", "1"}},
		"after the third":  {func(p *cluster.Proxy, kill func()) <-chan struct{} { return p.CrashAfter(3, kill) }, []string{"0", "1", "2"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, proxy := plane.Namespace(t), cluster.NewProxy(t, plane.Config())
			stream := watchFoos(t, proxy, plane.Namespace(t))
			ctx, kill := context.WithCancel(t.Context())
			crashed := test.crash(proxy, kill)
			client := dynamic.NewForConfigOrDie(proxy.Config()).Resource(foosGVR).Namespace(ns)
			made := 0
			for i := range 5 {
				if _, err := client.Create(context.WithoutCancel(ctx), foo(fmt.Sprint(i), 1), metav1.CreateOptions{}); err == nil {
					made++
				} else if !isBroken(err) {
					t.Errorf("creating %d: %v", i, err)
				}
			}
			<-crashed
			if ctx.Err() == nil || made != 2 {
				t.Errorf("killed: %v; %d creations were answered, want 2", ctx.Err(), made)
			}
			var got []string
			for _, o := range plane.Objects(foos, ns).List(t) {
				got = append(got, o.GetName())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if got := nextEvent(t, stream); got != "closed" {
				t.Errorf("the watch went on: %s", got)
			}
			proxy.Restore()
			if _, err := client.Create(t.Context(), foo("restored", 1), metav1.CreateOptions{}); err != nil {
				t.Errorf("creating after Restore: %v", err)
			}
		})
	}
}

// isBroken says whether a request got no answer.
func isBroken(err error) bool {
	var status *apierrors.StatusError
	return err != nil && !errors.As(err, &status) && !errors.Is(err, context.Canceled)
}

func watchFoos(t *testing.T, proxy *cluster.Proxy, ns string) watch.Interface {
	t.Helper()
	w, err := dynamic.NewForConfigOrDie(proxy.Config()).Resource(foosGVR).Namespace(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func nextEvent(t *testing.T, w watch.Interface) string {
	t.Helper()
	select {
	case e, open := <-w.ResultChan():
		if !open {
			return "closed"
		}
		if status, ok := e.Object.(*metav1.Status); ok {
			return fmt.Sprintf("%s %d", e.Type, status.Code)
		}
		return fmt.Sprintf("%s %s", e.Type, e.Object.(*unstructured.Unstructured).GetName())
	case <-time.After(cluster.Patience):
		t.Fatal("no event came")
		return ""
	}
}

// TestProxyKnowsTornRequests holds that of a request that its sender breaks off nothing comes, and that it is known
// from others.
func TestProxyKnowsTornRequests(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	proxy := cluster.NewProxy(t, plane.Config())
	body := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "torn"}}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.Config().Host+"/api/v1/namespaces/"+ns+"/configmaps",
		io.MultiReader(strings.NewReader(body[:20]), iotest.ErrReader(errors.New("no more"))))
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = int64(len(body))
	if response, err := http.DefaultClient.Do(request); err == nil {
		_ = response.Body.Close()
		t.Errorf("half a request was answered: %s", response.Status)
	}
	proxy.Await(t, 1, func(r cluster.Request) bool { return r.Torn && r.Resource == "configmaps" })
	plane.Objects("configmaps.v1", ns).Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "torn"},
	}}) // nothing is there
	if whole := proxy.Requests(func(r cluster.Request) bool { return !r.Torn }); len(whole) > 0 {
		t.Errorf("other requests came: %+v", whole)
	}
}
