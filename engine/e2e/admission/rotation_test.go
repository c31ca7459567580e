// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/engine/cluster/webhook"
)

// allow allows each request. decideSlowly decides after a while: it refuses bad names.
func allow(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true}
}

func decideSlowly(ctx context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	<-time.After(slow)
	if strings.HasPrefix(r.Name, "bad-") {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "a bad name"}}
	}
	return allow(ctx, r)
}

// load sends requests at a rate from several clients until it is stopped. Each tenth must be refused.
type load struct {
	stop         func()
	sent, failed atomic.Int64
	first        atomic.Pointer[error]
}

const (
	// rate is how many requests a second a load has in all, of its clients; fewer if the machine is too slow for them.
	rate    = 200
	clients = 4
	// atOnce is how many requests each client waits for. Together they are more than the 25 connections that an API server keeps for
	// a webhook, so it makes new ones all the time, and each shows whether it trusts the certificate.
	atOnce = 20
	// slow is how long a review takes.
	slow = 150 * time.Millisecond
)

func (o *operator) load(t *testing.T) *load {
	t.Helper()
	l := &load{}
	var run []func(context.Context)
	for range clients {
		client, err := dynamic.NewForConfig(plane.Config())
		if err != nil {
			t.Fatal(err)
		}
		run = append(run, func(ctx context.Context) {
			var wg sync.WaitGroup
			defer wg.Wait()
			places := make(chan struct{}, atOnce)
			tick := time.NewTicker(time.Second * clients / rate)
			defer tick.Stop()
			for ctx.Err() == nil {
				<-tick.C
				places <- struct{}{}
				wg.Go(func() {
					defer func() { <-places }()
					n := l.sent.Add(1)
					if err := o.decided(context.WithoutCancel(ctx), client, n); err != nil {
						l.failed.Add(1)
						l.first.CompareAndSwap(nil, &err)
					}
				})
			}
		})
	}
	l.stop = background(t, run...)
	return l
}

// decided returns an error unless the request of a number is decided as it must be.
func (o *operator) decided(ctx context.Context, client dynamic.Interface, n int64) error {
	if n%10 != 0 {
		_, err := o.create(ctx, client, fmt.Sprint("load-", n), metav1.DryRunAll)
		return err
	}
	if _, err := o.create(ctx, client, fmt.Sprint("bad-", n), metav1.DryRunAll); err == nil || !strings.Contains(err.Error(), "a bad name") {
		return fmt.Errorf("request %d was not refused: %w", n, cmp.Or(err, errors.New("it was admitted")))
	}
	return nil
}

// TestARotationFailsNoRequest renews the certificate of three replicas under load. Each request calls all three. The clocks of the
// keepers begin 61 days behind, so that the API server accepts both certificates.
func TestARotationFailsNoRequest(t *testing.T) {
	const day = 24 * time.Hour
	o := start(t, 3, webhook.Options{Reviews: map[string]webhook.Review{"/validate": decideSlowly}}, 61*day,
		func(o *operator, bundle string) []*unstructured.Unstructured {
			var hooks []hook
			for i, r := range o.replicas {
				hooks = append(hooks, hook{fmt.Sprint("replica", i), r.url("/validate"), "Fail", 30})
			}
			return []*unstructured.Unstructured{o.configuration("ValidatingWebhookConfiguration", "v", bundle, hooks...)}
		})
	serves := func(r *replica) []byte {
		c, err := r.keeper.Certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Certificate[0]
	}
	first, secrets := serves(o.replicas[0]), plane.Objects("secrets.v1", o.namespace)
	data := func(s *unstructured.Unstructured, key string) string {
		out, _, _ := unstructured.NestedString(s.Object, "data", key)
		return out
	}
	began := time.Now()
	l := o.load(t)
	o.forward(61 * day)
	next := secrets.Await(t, secretName, "the next certificate", func(s *unstructured.Unstructured) bool { return data(s, "next-tls.crt") != "" })
	for _, c := range o.configure("") {
		plane.Objects("validatingwebhookconfigurations.v1.admissionregistration.k8s.io", "").Await(t, c.GetName(), "both CAs", func(c *unstructured.Unstructured) bool {
			webhooks, _, _ := unstructured.NestedSlice(c.Object, "webhooks")
			return webhooks[0].(map[string]any)["clientConfig"].(map[string]any)["caBundle"] == data(next, "ca.crt")
		})
	}
	<-time.After(time.Second) // a part of the minute passes in real time, in which the API server learns of the bundle
	for range 2 {             // the first may come before the confirmation
		o.forward(time.Minute)
		<-time.After(time.Second)
	}
	used := secrets.Await(t, secretName, "the use of the next certificate", func(s *unstructured.Unstructured) bool { return data(s, "tls.crt") == data(next, "next-tls.crt") })
	<-time.After(time.Second)
	o.forward(10 * time.Minute)
	secrets.Await(t, secretName, "the end of the first CA", func(s *unstructured.Unstructured) bool { return data(s, "ca.crt") != data(used, "ca.crt") })
	<-time.After(time.Second)
	l.stop()
	for i, r := range o.replicas {
		if bytes.Equal(serves(r), first) {
			t.Errorf("replica %d serves the first certificate", i)
		}
		if n := r.counts.of("/validate", ""); int64(n) < l.sent.Load() {
			t.Errorf("replica %d was asked %d times for %d requests", i, n, l.sent.Load())
		}
	}
	t.Logf("%d requests within %v, each to three replicas, by %d new connections to the first one", l.sent.Load(), time.Since(began), o.replicas[0].handshakes.Load())
	if failed := l.failed.Load(); failed > 0 {
		t.Errorf("%d of %d requests failed, the first with %v", failed, l.sent.Load(), *l.first.Load())
	}
}
