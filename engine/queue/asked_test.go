// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"testing"
	"time"
)

// TestAQuestionGoesFirst asks about one of many keys that wait.
func TestAQuestionGoesFirst(t *testing.T) {
	for name, class := range map[string]Class{"with others that changed": Fresh, "with a first list": Backlog} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *Queue[string]) {
				for n := range 20_000 {
					q.Add(fmt.Sprint(n), class)
				}
				time.Sleep(time.Minute)
				q.Add("19999", Asked)
				for taken := range share {
					key, _ := q.Get()
					if q.Done(key); key == "19999" {
						t.Logf("it was taken after %d others", taken)
						return
					}
				}
				t.Errorf("the key is not among the first %d of 20000", share)
			})
		})
	}
}
