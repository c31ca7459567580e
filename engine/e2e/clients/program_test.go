// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// program is one that others could have written with client-go: its typed clients send protobuf and take JSON if the
// server answers so. It notes what it sees.
type program struct {
	t         *testing.T
	ctx       context.Context
	config    *rest.Config
	typed     kubernetes.Interface
	dynamic   dynamic.Interface
	namespace string
	plain     names

	mu    sync.Mutex
	notes []string
}

// parts are those of the program, by what they do.
var parts = []struct {
	name string
	run  func(*program)
}{
	{"objects are created, read, updated, patched and deleted by typed clients", typedObjects},
	{"faulty objects are refused to typed clients", typedMistakes},
	{"a write that conflicts is tried again", conflicts},
	{"a long list is read in pages", pages},
	{"typed configurations are applied, and managers conflict", typedApply},
	{"a shared informer sees what happens, and its lister has it", informed},
	{"informers of all forms agree", informedInForms},
	{"a program waits until a Deployment is available", untilAvailable},
	{"a Deployment is scaled by its subresource", scaled},
	{"two processes elect a leader by a Lease", elected},
	{"Events are recorded, and counted when they repeat", recorded},
	{"custom resources are written by the dynamic client", customObjects},
	{"objects with owners and finalizers are deleted in order", deletedInOrder},
	{"the metadata client reads and patches the metadata alone", metadataOnly},
	{"kinds and resources are found by discovery", discovered},
	{"a ServiceAccount may do what its Role says", permitted},
}

// TestAProgramSeesTheSameInBothServers runs each part of the program against the real cluster and against the server in
// memory, and compares its notes.
func TestAProgramSeesTheSameInBothServers(t *testing.T) {
	memory := inMemory(t)
	t.Run("parts", func(t *testing.T) {
		for _, part := range parts {
			t.Run(part.name, func(t *testing.T) {
				t.Parallel()
				want, got := run(t, plane.Config(), part.run), run(t, memory, part.run)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the program sees (-real +memory):\n%s", diff)
				}
			})
		}
	})
}

// run runs a part in a namespace of its own, and returns the notes.
func run(t *testing.T, config *rest.Config, part func(*program)) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Patience)
	defer cancel()
	config = rest.CopyConfig(config) // scale.NewForConfig writes defaults into the config it is given
	p := &program{
		t: t, ctx: ctx, config: config, typed: kubernetes.NewForConfigOrDie(config), dynamic: dynamic.NewForConfigOrDie(config),
		namespace: "program-" + rand.String(6),
	}
	p.plain = newNames(p.namespace, "<dir>")
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}
	_, err := p.typed.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{})
	p.must(err)
	t.Cleanup(func() {
		_ = p.typed.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), p.namespace, metav1.DeleteOptions{})
	})
	p.await("serviceaccounts", "default", func(e watch.Event) bool { return e.Type == watch.Added })
	p.await("configmaps", "kube-root-ca.crt", func(e watch.Event) bool { return e.Type == watch.Added })
	part(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.notes) == 0 {
		t.Error("the program has seen nothing")
	}
	return p.notes
}

// must ends the test if something fails that is not compared.
func (p *program) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// note notes a value, or an error as the program sees it, with stable words for what is different at each run.
func (p *program) note(what string, value any, err error) {
	p.t.Helper()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		value = status.Status()
	} else if err != nil {
		value = err.Error()
	}
	text, err := json.Marshal(value)
	p.must(err)
	var plain any
	p.must(json.Unmarshal(text, &plain))
	sortManagers(plain)
	text, err = json.MarshalIndent(plain, "", "  ")
	p.must(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, p.plain.of(what+": "+strings.Trim(string(text), `"`)))
}

// sortManagers brings the managedFields of objects in an order that does not depend on the second of each write.
func sortManagers(value any) {
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			sortManagers(each)
		}
	case map[string]any:
		for key, each := range value {
			if list, is := each.([]any); is && key == "managedFields" {
				slices.SortFunc(list, func(a, b any) int { return strings.Compare(withoutTime(a), withoutTime(b)) })
			}
			sortManagers(each)
		}
	}
}

// withoutTime is an entry of managedFields without the time of its write.
func withoutTime(entry any) string {
	plain := maps.Clone(entry.(map[string]any))
	delete(plain, "time")
	return fmt.Sprint(plain)
}

// await watches an object of a core resource from its beginning until an event of it is what is waited for.
func (p *program) await(resource, name string, is func(watch.Event) bool) watch.Event {
	p.t.Helper()
	options := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	w, err := p.dynamic.Resource(corev1.SchemeGroupVersion.WithResource(resource)).Namespace(p.namespace).Watch(p.ctx, options)
	p.must(err)
	defer w.Stop()
	for e := range w.ResultChan() {
		if is(e) {
			return e
		}
	}
	p.t.Fatalf("waiting for %s/%s: the watch has ended", resource, name)
	return watch.Event{}
}

// receive returns what comes next on a channel.
func receive[T any](p *program, what string, from <-chan T) T {
	p.t.Helper()
	select {
	case v := <-from:
		return v
	case <-p.ctx.Done():
		p.t.Fatalf("waiting for %s: %v", what, p.ctx.Err())
		panic("not reached")
	}
}

// configMap is one with a label by which the program finds its own.
func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"by": "program"}}, Data: map[string]string{"k": value},
	}
}

// own selects the objects with the label.
var own = metav1.ListOptions{LabelSelector: "by=program"}

// named are the names of some objects.
func named[T any](items []T, name func(*T) string) string {
	var out []string
	for i := range items {
		out = append(out, name(&items[i]))
	}
	return fmt.Sprint(out)
}
