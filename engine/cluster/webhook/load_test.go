// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
)

// TestAFloodOfANamespaceLeavesRoomForOthers holds fairness end to end.
func TestAFloodOfANamespaceLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, func(o *Options) {
			o.AtOnce, o.Waiting = 4, 8
			o.Reviews["/slow"] = func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				<-time.After(time.Second)
				return &admissionv1.AdmissionResponse{Allowed: true}
			}
		})
		var wg sync.WaitGroup
		codes := make([]int, 100)
		for i := range codes {
			wg.Go(func() { codes[i] = send(t.Context(), s, "/slow", review("flood", "x")).Code })
		}
		synctest.Wait()
		for range 3 {
			began := time.Now()
			if w := send(t.Context(), s, "/slow", review("shop", "web")); w.Code != http.StatusOK || time.Since(began) != time.Second {
				t.Errorf("the other namespace: %d after %v", w.Code, time.Since(began))
			}
		}
		wg.Wait()
		count := map[int]int{}
		for _, code := range codes {
			count[code]++
		}
		if want := map[int]int{200: 3 + 8, 429: 89}; !cmp.Equal(want, count) {
			t.Errorf("the flood: %v, want %v", count, want)
		}
	})
}

// TestABurstOfLargeReviewsTakesLittleMemory holds the bound on bytes end to end: hundreds of large reviews of a namespace, which run,
// wait and are read, have a bounded sum, and another namespace has its answer.
func TestABurstOfLargeReviewsTakesLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		s, _ := newServer(t, func(o *Options) {
			o.Reviews["/slow"] = func(_ context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				size := int64(len(r.Name))
				most.Store(max(most.Load(), running.Add(size)))
				<-time.After(time.Second)
				running.Add(-size)
				return &admissionv1.AdmissionResponse{Allowed: true}
			}
		})
		gate := s.routes["/slow"].lane.gate
		large := review("flood", strings.Repeat("x", 2<<20))
		var wg sync.WaitGroup
		codes := make([]int, 200)
		for i := range codes {
			wg.Go(func() { codes[i] = send(t.Context(), s, "/slow", large).Code })
		}
		synctest.Wait()
		if held := gate.held; held > heldBytes || held < runningBytes { // how full it is depends on who reads at once
			t.Errorf("%d bytes are held, want %d to %d", held, runningBytes, heldBytes)
		}
		if w := send(t.Context(), s, "/slow", review("shop", "web")); w.Code != http.StatusOK {
			t.Errorf("the other namespace: %d %s", w.Code, w.Body)
		}
		wg.Wait()
		count := map[int]int{}
		for _, code := range codes {
			count[code]++
		}
		if most.Load() > runningBytes || count[200] < 8 || count[200]+count[429] != len(codes) {
			t.Errorf("%d bytes ran at once, answers %v", most.Load(), count)
		}
		if gate.held != 0 || gate.all != (load{}) || gate.free != DefaultAtOnce {
			t.Errorf("what is left: %+v", gate)
		}
	})
}
