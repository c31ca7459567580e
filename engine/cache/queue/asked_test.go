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

// TestAKeyThatIsOnlyAskedAbout holds when a worker learns that nothing but questions has queued its key.
func TestAKeyThatIsOnlyAskedAbout(t *testing.T) {
	for name, tt := range map[string]struct {
		queue func(q *Queue[string])
		want  bool
	}{
		"two questions":                    {func(q *Queue[string]) { q.Add("a", Asked); q.Add("a", Asked) }, true},
		"a change":                         {func(q *Queue[string]) { q.Add("a", Fresh) }, false},
		"a question after a change":        {func(q *Queue[string]) { q.Add("a", Fresh); q.Add("a", Asked) }, false},
		"a change after a question":        {func(q *Queue[string]) { q.Add("a", Asked); q.Add("a", Fresh) }, false},
		"a question before its time comes": {func(q *Queue[string]) { q.AddAfter("a", Due, time.Minute); q.Add("a", Asked) }, true},
		"a question, and then its time comes": {func(q *Queue[string]) {
			q.Add("a", Asked)
			q.AddAfter("a", Due, time.Second)
			time.Sleep(2 * time.Second)
		}, false},
		"a question and a change while a worker has it": {func(q *Queue[string]) {
			q.Add("a", Fresh)
			q.Get()
			q.Add("a", Asked)
			q.Add("a", Fresh)
			q.Done("a")
		}, false},
		"a question while a worker has it": {func(q *Queue[string]) {
			q.Add("a", Fresh)
			q.Get()
			q.Add("a", Asked)
			q.Done("a")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *Queue[string]) {
				tt.queue(q)
				key, _ := q.Get()
				if got := q.OnlyAsked(key); got != tt.want {
					t.Errorf("only asked: %t, want %t", got, tt.want)
				}
				q.Done(key)
				q.Add(key, Fresh)
				if key, _ = q.Get(); q.OnlyAsked(key) {
					t.Error("the next turn is for the earlier question")
				}
				q.Done(key)
			})
		})
	}
}
