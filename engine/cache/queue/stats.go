// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// Stats is a queue at one moment.
type Stats struct {
	// Waiting is the number of keys that a worker could take, by their class, and Oldest is when the first of them came;
	// zero if there are none.
	Waiting map[Class]int
	Oldest  time.Time
	// Working is the number of keys that workers have, and Longest is when the first of them was taken.
	Working int
	Longest time.Time
	// Later is the number of keys that are delayed.
	Later int
}

// String returns the name of a class.
func (c Class) String() string {
	return [classes]string{"fresh", "due", "backlog", "resync"}[c]
}

// Stats counts the keys. It looks at each of them.
func (q *Queue[K]) Stats() Stats {
	out := q.order.tenants.stats()
	q.mu.Lock()
	defer q.mu.Unlock()
	out.Later = len(q.later)
	return out
}

func (t *tenants[K]) stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := Stats{Waiting: map[Class]int{}, Working: len(t.work)}
	earlier := func(at *time.Time, than time.Time) {
		if at.IsZero() || than.Before(*at) {
			*at = than
		}
	}
	for _, job := range t.work {
		earlier(&out.Longest, job.since)
	}
	for _, of := range t.all {
		for class, line := range of.lines {
			if len(line) > 0 {
				out.Waiting[Class(class)] += len(line)
			}
			for _, p := range line {
				earlier(&out.Oldest, p.came)
			}
		}
	}
	return out
}
