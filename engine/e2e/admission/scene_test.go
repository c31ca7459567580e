// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/engine/cluster/certificate"
	"github.com/handwerk-dev/handwerk/engine/cluster/registration"
	"github.com/handwerk-dev/handwerk/engine/cluster/webhook"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// secretName is the Secret that the replicas of an operator share.
const secretName = "webhooks-tls"

// replica is a process with webhooks.
type replica struct {
	server *webhook.Server
	keeper *certificate.Keeper
	counts *counts
	stop   func()
	// handshakes counts connections.
	handshakes atomic.Int64
}

// url returns the address of a path.
func (r *replica) url(path string) string { return "https://" + r.server.Address() + path }

// operator is a group of replicas in a namespace, the first of which leads. It is wired as the engine does it.
type operator struct {
	namespace    string
	replicas     []*replica
	registration *registration.Keeper
	// configure returns the wanted objects for a bundle in base64.
	configure func(bundle string) []*unstructured.Unstructured
	// behind is by how much the clocks of the keepers are behind, in nanoseconds. Nudge has them look again.
	behind atomic.Int64
	nudge  chan struct{}
}

// start starts replicas, and returns when the API server has all objects. Before that, configure gets the operator to name the replicas' addresses.
func start(t testing.TB, replicas int, set webhook.Options, behind time.Duration, configure func(*operator, string) []*unstructured.Unstructured) *operator {
	t.Helper()
	o := &operator{namespace: plane.Namespace(t), nudge: make(chan struct{}, 1)}
	o.behind.Store(int64(behind))
	o.configure = func(bundle string) []*unstructured.Unstructured { return configure(o, bundle) }
	for i := range replicas {
		o.replicas = append(o.replicas, o.replica(t, set, i == 0))
	}
	var err error
	o.registration, err = registration.New(registration.Settings{
		Client: plane.Dynamic(), Manager: "webhooks", Labels: map[string]string{"app.kubernetes.io/managed-by": o.namespace}, Log: testLog(t, "registration"),
	})
	if err != nil {
		t.Fatal(err)
	}
	settled := make(chan struct{})
	background(t, func(ctx context.Context) { _ = o.registration.Run(ctx) }, func(ctx context.Context) { o.wire(ctx, settled) })
	t.Cleanup(func() { o.forget(t) })
	select {
	case <-settled:
	case <-time.After(cluster.Patience):
		t.Fatalf("the objects are not as wanted: %v", o.registration.Settled())
	}
	for path := range set.Reviews {
		o.awaitCalls(t, path)
	}
	return o
}

// awaitCalls returns when the API server calls a path. It learns of configurations by watching them, and gives no sign.
func (o *operator) awaitCalls(t testing.TB, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Patience)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, _ = o.create(ctx, plane.Dynamic(), "ready", metav1.DryRunAll) // the answer says nothing
		return !slices.ContainsFunc(o.replicas, func(r *replica) bool { return r.counts.of(path, "") == 0 }), nil
	})
	if err != nil {
		t.Fatalf("the API server does not call %s: %v", path, err)
	}
}

// replica starts a process. The Secret's Hosts are the loopback addresses.
func (o *operator) replica(t testing.TB, set webhook.Options, leads bool) *replica {
	t.Helper()
	r := &replica{counts: &counts{results: map[[2]string]int{}}, keeper: certificate.New(certificate.Settings{
		Client: plane.Dynamic(), Namespace: o.namespace, Name: secretName, Manager: "webhooks", Log: testLog(t, "certificate"),
		Hosts: certificate.Hosts{Names: certificate.ServiceNames(o.namespace, "webhooks"), IPs: []net.IP{net.IPv4(127, 0, 0, 1)}},
		Now:   func() time.Time { return time.Now().Add(-time.Duration(o.behind.Load())) },
	})}
	set.Certificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		r.handshakes.Add(1)
		return r.keeper.Certificate(hello)
	}
	set.Address, set.Log = "127.0.0.1:0", testLog(t, "webhook")
	set.Metrics = r.counts
	var err error
	if r.server, err = webhook.New(set); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := []func(context.Context){
		func(ctx context.Context) { _ = r.keeper.Follow(ctx) },
		func(ctx context.Context) {
			if err := r.server.Serve(ctx); err != nil {
				t.Errorf("Serve: %v", err)
			}
		},
	}
	if leads {
		run = append(run, func(ctx context.Context) { _ = r.keeper.Lead(ctx) })
	}
	r.stop = background(t, run...)
	return r
}

// wire brings bundles to the configurations, and tells the leader's keeper when they have them.
func (o *operator) wire(ctx context.Context, settled chan struct{}) {
	var bundle []byte
	leader := o.replicas[0].keeper
	for {
		select {
		case <-ctx.Done():
			return
		case <-leader.Changes():
			if next := leader.Bundle(); !bytes.Equal(next, bundle) {
				bundle = next
				_ = o.registration.Set(o.configure(base64.StdEncoding.EncodeToString(bundle)))
			}
		case <-o.registration.Changes():
		case <-o.nudge:
		}
		if o.registration.Settled() != nil || bundle == nil {
			leader.Confirm(nil)
			continue
		}
		leader.Confirm(bundle)
		select {
		case <-settled:
		default:
			close(settled)
		}
	}
}

// forward sets the clocks of the keepers forward.
func (o *operator) forward(d time.Duration) {
	o.behind.Add(-int64(d))
	o.nudge <- struct{}{}
}

// forget deletes the objects, which the end of the namespace does not.
func (o *operator) forget(t testing.TB) {
	ctx := context.WithoutCancel(t.Context())
	for _, object := range o.configure("") {
		if object.GetKind() == "CustomResourceDefinition" {
			continue
		}
		if err := resource(object).Delete(ctx, object.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Errorf("deleting %s: %v", object.GetName(), err)
		}
	}
}

func resource(object *unstructured.Unstructured) dynamic.ResourceInterface {
	plural := map[string]string{"ValidatingWebhookConfiguration": "validatingwebhookconfigurations", "MutatingWebhookConfiguration": "mutatingwebhookconfigurations", "ValidatingAdmissionPolicy": "validatingadmissionpolicies"}
	return plane.Dynamic().Resource(object.GroupVersionKind().GroupVersion().WithResource(plural[object.GetKind()]))
}

// background runs functions until the test ends, or stop is called, and waits for them.
func background(t testing.TB, run ...func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	for _, each := range run {
		wg.Go(func() { each(ctx) })
	}
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}

func testLog(t testing.TB, name string) logr.Logger {
	return funcr.New(func(_, line string) { t.Log(name, line) }, funcr.Options{})
}

// hook is a webhook for ConfigMaps that are created in the operator's namespace.
type hook struct {
	name, url, failure string
	seconds            int64
}

// configuration returns an object with webhooks.
func (o *operator) configuration(kind, name, bundle string, hooks ...hook) *unstructured.Unstructured {
	var webhooks []any
	for _, h := range hooks {
		webhooks = append(webhooks, map[string]any{
			"name": h.name + ".example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
			"clientConfig": map[string]any{"url": h.url, "caBundle": bundle}, "failurePolicy": h.failure, "timeoutSeconds": h.seconds,
			"rules":             []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE", "UPDATE"}, "resources": []any{"configmaps"}}},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": o.namespace}},
		})
	}
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "webhooks": webhooks}}
	out.SetName(name + "-" + o.namespace)
	registration.ExceptNamespaces(out, "kube-system")
	return out
}

// create creates a ConfigMap.
func (o *operator) create(ctx context.Context, client dynamic.Interface, name string, dryRun ...string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"}}}
	object.SetName(name)
	ctx, cancel := context.WithTimeoutCause(ctx, cluster.Patience, errors.New("no answer"))
	defer cancel()
	return client.Resource(configMaps).Namespace(o.namespace).Create(ctx, object, metav1.CreateOptions{DryRun: dryRun})
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// counts are the metrics of a server: requests by path and result.
type counts struct {
	mu      sync.Mutex
	results map[[2]string]int
}

func (c *counts) Reviewed(path, result string, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results[[2]string{path, result}]++
	c.results[[2]string{path, ""}]++
}

func (c *counts) Reviewing(string, int) {}

// of returns the number of requests with a result; an empty one means all.
func (c *counts) of(path, result string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.results[[2]string{path, result}]
}
