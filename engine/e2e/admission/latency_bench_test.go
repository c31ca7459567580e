// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/cluster/webhook"
)

// BenchmarkLatency measures what a webhook adds to a request, at a rate of 200 requests a second. Run it with -benchtime=2000x.
func BenchmarkLatency(b *testing.B) {
	for _, with := range []bool{false, true} {
		name := "without a webhook"
		if with {
			name = "with a webhook"
		}
		b.Run(name, func(b *testing.B) {
			o := &operator{namespace: plane.Namespace(b)}
			if with {
				o = start(b, 1, webhook.Options{Reviews: map[string]webhook.Review{"/validate": allow}}, 0,
					func(o *operator, bundle string) []*unstructured.Unstructured {
						return []*unstructured.Unstructured{o.configuration("ValidatingWebhookConfiguration", "v", bundle, hook{"v", o.replicas[0].url("/validate"), "Fail", 10})}
					})
			}
			measure(b, o)
		})
	}
}

// measure sends requests at the rate, whether or not earlier ones were answered.
func measure(b *testing.B, o *operator) {
	took := make([]time.Duration, b.N)
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range took {
		<-tick.C
		wg.Go(func() {
			began := time.Now()
			if _, err := o.create(context.WithoutCancel(b.Context()), plane.Dynamic(), fmt.Sprint("load-", i), metav1.DryRunAll); err != nil {
				b.Error(err)
			}
			took[i] = time.Since(began)
		})
	}
	wg.Wait()
	b.StopTimer()
	slices.Sort(took)
	milliseconds := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	b.ReportMetric(milliseconds(took[len(took)/2]), "ms-p50")
	b.ReportMetric(milliseconds(took[len(took)*99/100]), "ms-p99")
}
