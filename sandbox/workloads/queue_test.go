// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/clock"
)

func TestKeysTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(table(), clock.Real{})
		add := func(kinds ...string) {
			for _, kind := range kinds {
				q.add(key{kind: kind})
			}
		}
		next := func(n int) string {
			var out []string
			for range n {
				if k, found := q.next(); found {
					out = append(out, k.kind)
				}
			}
			return strings.Join(out, " ")
		}
		add("Deployment", "PodDisruptionBudget", "ReplicaSet", "Pod", "PersistentVolumeClaim", "Pod")
		if got, want := next(6), "Pod PersistentVolumeClaim PodDisruptionBudget ReplicaSet Deployment"; got != want {
			t.Errorf("at one instant the keys come as %s, want %s", got, want)
		}
		add("Deployment", "Pod")
		time.Sleep(moment - time.Nanosecond)
		add("PersistentVolume")
		if got := next(1); got != "Pod" {
			t.Errorf("before a moment is over, %s comes first", got)
		}
		time.Sleep(time.Nanosecond)
		add("Node")
		if got, want := next(4), "Deployment PersistentVolume Node"; got != want {
			t.Errorf("after a moment the keys come as %s, want %s", got, want)
		}
		add("Pod")
		time.Sleep(time.Nanosecond)
		add("Deployment")
		time.Sleep(moment)
		if got, want := next(2), "Pod Deployment"; got != want {
			t.Errorf("after a moment the keys come as %s, want %s", got, want)
		}
	})
}
