// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// parallel is how many requests the loader has under way at once.
	parallel = 16
	// size is about how large the JSON of a Foo is without managedFields, in bytes.
	size = 1500
	api  = "/apis/samplecontroller.k8s.io/v1alpha1/namespaces/"
)

// foos are the objects that everything is about, and the loader that makes and changes them. It
// does not decode answers, as it shares the machine with what is measured.
type foos struct {
	client rest.Interface
	count  int
	// path is where they are.
	path string
	// asked is how many replicas each Foo asks for.
	asked []int64
}

func newFoos(kubeconfig, namespace string, count int) (*foos, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.GroupVersion, config.NegotiatedSerializer = &schema.GroupVersion{Version: "v1"}, scheme.Codecs
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &foos{client: client, count: count, path: api + namespace + "/foos", asked: make([]int64, count)}, nil
}

func nameOf(i int) string { return fmt.Sprintf("foo-%05d", i) }

// create makes all Foos. What a Foo does not need it has in annotations, as real objects do.
func (f *foos) create(ctx context.Context) error {
	filler := strings.Repeat("What this Foo is for, who asked for it and whom to call when it does not work. ", size)
	annotations := map[string]string{}
	for i := range 4 {
		annotations[fmt.Sprintf("docs.example.com/part-%d", i)] = filler[i : i+(size-500)/4]
	}
	return f.each(ctx, func(ctx context.Context, i int) error {
		data, err := json.Marshal(map[string]any{
			"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
			"metadata": map[string]any{
				"name": nameOf(i), "annotations": annotations,
				"labels": map[string]string{"app.kubernetes.io/name": nameOf(i), "app.kubernetes.io/managed-by": "bench"},
			},
			"spec": map[string]any{"deploymentName": nameOf(i), "replicas": 1},
		})
		if err != nil {
			return err
		}
		return f.client.Post().AbsPath(f.path).SetHeader("Content-Type", "application/json").Body(data).Do(ctx).Error()
	})
}

// scale asks for that many replicas of every Foo, as fast as the server takes it.
func (f *foos) scale(ctx context.Context, replicas int64) error {
	return f.each(ctx, func(ctx context.Context, i int) error { return f.scaleOne(ctx, i, replicas) })
}

func (f *foos) scaleOne(ctx context.Context, i int, replicas int64) error {
	f.asked[i] = replicas
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	return f.client.Patch(types.MergePatchType).AbsPath(f.path, nameOf(i)).Body(patch).Do(ctx).Error()
}

// each calls do for all Foos, several at once, and returns the first error.
func (f *foos) each(ctx context.Context, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan int)
	var wg sync.WaitGroup
	for range parallel {
		wg.Go(func() {
			for i := range work {
				if err := do(ctx, i); err != nil {
					cancel(fmt.Errorf("loading %s: %w", nameOf(i), err))
				}
			}
		})
	}
	for i := range f.count {
		select {
		case work <- i:
		case <-ctx.Done():
		}
	}
	close(work)
	wg.Wait()
	return context.Cause(ctx)
}

// writes counts the requests that the server got so far to change Foos, what operators make for
// them, and Events.
func (f *foos) writes(ctx context.Context) (int, error) {
	data, err := f.client.Get().AbsPath("/metrics").Do(ctx).Raw()
	if err != nil {
		return 0, fmt.Errorf("reading the server's metrics: %w", err)
	}
	sum := 0
	for line := range strings.Lines(string(data)) {
		name, value, found := strings.Cut(strings.TrimSpace(line), "} ")
		if !found || !strings.HasPrefix(name, "apiserver_request_total{") || !watched(name) {
			continue
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, "APPLY", "DELETECOLLECTION"} {
			if strings.Contains(name, `verb="`+method+`"`) {
				var n float64
				if _, err := fmt.Sscan(value, &n); err != nil {
					return 0, fmt.Errorf("reading the server's metrics: %w", err)
				}
				sum += int(n)
			}
		}
	}
	return sum, nil
}

func watched(series string) bool {
	for _, resource := range []string{"foos", "deployments", "configmaps", "services", "serviceaccounts", "horizontalpodautoscalers", "events"} {
		if strings.Contains(series, `resource="`+resource+`"`) {
			return true
		}
	}
	return false
}
