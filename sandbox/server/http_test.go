// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func TestTypedClientsAndInformersWorkOverTheNetwork(t *testing.T) {
	web := httptest.NewServer(server.New(server.Settings{}).Handler())
	defer web.Close()
	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: web.URL, QPS: -1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().ConfigMaps().Informer()
	seen := make(chan string, 10)
	name := func(o any) string { return o.(*corev1.ConfigMap).Name + " " + o.(*corev1.ConfigMap).Data["k"] }
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { seen <- "add " + name(o) }, UpdateFunc: func(_, o any) { seen <- "update " + name(o) },
		DeleteFunc: func(o any) { seen <- "delete " + name(o) },
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	defer func() { cancel(); factory.Shutdown() }()
	factory.WaitForCacheSync(ctx.Done()) // the watch is open: its header has come without an event

	configMaps := client.CoreV1().ConfigMaps("default")
	made, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "1"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Data["k"] = "2"
	if _, err := configMaps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := configMaps.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version gets %v", err)
	}
	if err := configMaps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"add a 1", "update a 2", "delete a 2"} {
		if got := <-seen; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAResponseOverTheNetworkHasItsHeaders(t *testing.T) {
	web := httptest.NewServer(server.New(server.Settings{}).Handler())
	defer web.Close()
	for path, want := range map[string]int{"/api/v1/pods": http.StatusOK, "/nope": http.StatusNotFound} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		out.Body.Close()
		if out.StatusCode != want || out.Header.Get("Cache-Control") != "no-cache, private" {
			t.Errorf("%s: %d %v", path, out.StatusCode, out.Header)
		}
	}
}

func TestLongBodiesAreCompressedForClientsThatTakeIt(t *testing.T) {
	s := server.New(server.Settings{})
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	long := strings.Repeat("x", 200_000)
	for name, data := range map[string]string{"long": long, "short": "x"} {
		s.Load(schema.GroupResource{Resource: "configmaps"}, &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": name, "namespace": "default"}, "data": map[string]any{"k": data}}})
	}
	for path, c := range map[string]struct{ takes, want string }{
		inDefault + "/long": {"gzip", "gzip"}, inDefault: {"deflate, gzip", "gzip"}, inDefault + "/short": {"gzip", ""}, inDefault + "/long?x": {"identity", ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", c.takes)
		out, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body := io.Reader(out.Body)
		if c.want != "" {
			if body, err = gzip.NewReader(out.Body); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		data, err := io.ReadAll(body)
		out.Body.Close()
		if err != nil || !json.Valid(data) || out.Header.Get("Content-Encoding") != c.want || strings.Contains(path, "long") != strings.Contains(string(data), long) && path != inDefault {
			t.Errorf("%s: %d bytes, %v, %v", path, len(data), out.Header, err)
		}
	}
}

func TestAWatchOverTheNetworkEndsWithItsClient(t *testing.T) {
	ended := make(chan struct{})
	handler := server.New(server.Settings{}).Handler()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		close(ended)
	}))
	defer web.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+inDefault+"?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := web.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-ended
	if _, err := out.Body.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("the client reads %v", err)
	}
	out.Body.Close()
}
