// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/handwerk-dev/handwerk/bench/wire"
)

const (
	// parallel is how many requests the loader has under way at once.
	parallel = 16
	api      = "/apis/samplecontroller.k8s.io/v1alpha1/namespaces/"
	// most is the largest number of replicas that a Foo may ask for.
	most = 10
)

// foos are the objects that everything is about, and the loader that makes and changes them. It does not decode
// answers, as it shares the machine with what is measured.
type foos struct {
	client    *wire.Client
	namespace string
	// path is where they are, configs where the ConfigMaps of the same names are.
	path, configs string
	// asked is how many replicas each Foo asks for. There are as many as it is long.
	asked []int64
}

func newFoos(client *wire.Client, namespace string) *foos {
	return &foos{
		client: client, namespace: namespace, path: api + namespace + "/foos",
		configs: "/api/v1/namespaces/" + namespace + "/configmaps",
	}
}

func nameOf(i int) string { return fmt.Sprintf("foo-%06d", i) }

// fresh takes away everything in a namespace and makes new Foos there, so that each subject finds the same, and no trace of
// another one. The follower must be closed in the end.
func (s *session) fresh(ctx context.Context, namespace string, count int) (*foos, *follower, error) {
	f := newFoos(s.client, namespace)
	if err := f.clear(ctx); err != nil {
		return nil, nil, err
	}
	if err := f.fill(ctx, count, s.size); err != nil {
		return nil, nil, err
	}
	w, err := follow(ctx, s.client, f.path, availableCell, f.all())
	return f, w, err
}

// clear takes away everything, finalizers and all, and makes the namespace if there is none.
func (f *foos) clear(ctx context.Context) error {
	body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, f.namespace)
	err := f.client.Send(ctx, http.MethodPost, "/api/v1/namespaces", wire.JSON, body)
	if err != nil && wire.Code(err) != http.StatusConflict {
		return err
	}
	for _, path := range []string{f.path, f.configs} {
		if err := f.empty(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// empty deletes everything at a path, one by one: the server gives up a deletion of ten thousands in one request.
func (f *foos) empty(ctx context.Context, path string) error {
	left, err := f.listed(ctx, path)
	if err != nil {
		return err
	}
	send := func(ctx context.Context, method, path, contentType string, body []byte) error {
		err := f.client.Send(ctx, method, path, contentType, body)
		if wire.Code(err) == http.StatusNotFound {
			return nil
		}
		return err
	}
	return f.some(ctx, len(left), func(ctx context.Context, i int) error {
		one := path + "/" + left[i].Metadata.Name
		if len(left[i].Metadata.Finalizers) > 0 {
			if err := send(ctx, http.MethodPatch, one, wire.Merge, []byte(`{"metadata":{"finalizers":null}}`)); err != nil {
				return err
			}
		}
		return send(ctx, http.MethodDelete, one, "", nil)
	})
}

// fill makes so many Foos. Their JSON without managedFields is about size bytes long: what a Foo does
// not need it has in annotations, as real objects do, in words that differ from one to the other.
func (f *foos) fill(ctx context.Context, count, size int) error {
	f.asked = slices.Repeat([]int64{1}, count)
	return f.some(ctx, count, func(ctx context.Context, i int) error {
		return f.client.Send(ctx, http.MethodPost, f.path, wire.JSON, newFoo(i, size))
	})
}

var words = strings.Fields(`what this one is for and who asked it whom to call when does not work team storage network
	account budget region zone cluster owner contact pager runbook dashboard alert review release stage production
	approved deprecated migrated internal external public private shared default legacy ticket since until version`)

// newFoo is the JSON of a new Foo.
func newFoo(i, size int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(i)))
	annotations := map[string]string{}
	for part := range 4 {
		var text strings.Builder
		for text.Len() < (size-600)/4 {
			if r.IntN(6) == 0 {
				fmt.Fprintf(&text, "%08x ", r.Uint32())
			}
			text.WriteString(words[r.IntN(len(words))] + " ")
		}
		annotations[fmt.Sprintf("docs.example.com/part-%d", part)] = text.String()
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
		"metadata": map[string]any{
			"name": nameOf(i), "annotations": annotations,
			"labels": map[string]string{"app.kubernetes.io/name": nameOf(i), "app.kubernetes.io/managed-by": "bench"},
		},
		"spec": map[string]any{"deploymentName": nameOf(i), "replicas": 1},
	})
	if err != nil {
		panic(err) // maps of text and numbers
	}
	return data
}

// all are the numbers of all Foos.
func (f *foos) all() int { return len(f.asked) }

// scale asks for that many replicas of the first Foos, as fast as the server takes it.
func (f *foos) scale(ctx context.Context, count int, replicas int64) error {
	return f.some(ctx, count, func(ctx context.Context, i int) error { return f.scaleOne(ctx, i, replicas) })
}

func (f *foos) scaleOne(ctx context.Context, i int, replicas int64) error {
	f.asked[i] = replicas
	body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	return f.client.Send(ctx, http.MethodPatch, f.path+"/"+nameOf(i), wire.Merge, body)
}

// remove deletes Foos, or the ConfigMaps of their names.
func (f *foos) remove(ctx context.Context, path string, count int) error {
	return f.some(ctx, count, func(ctx context.Context, i int) error {
		return f.client.Send(ctx, http.MethodDelete, path+"/"+nameOf(i), "", nil)
	})
}

// some calls do for the first ones, several at once, and returns the first error.
func (f *foos) some(ctx context.Context, count int, do func(context.Context, int) error) error {
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
	for i := range count {
		select {
		case work <- i:
		case <-ctx.Done():
		}
	}
	close(work)
	wg.Wait()
	return context.Cause(ctx)
}
