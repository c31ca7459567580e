// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// remembers notes how often it was called for the object, and for any, as far as the memos know.
func remembers(j *journal) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		count := func(m *dsl.Memo) (n int) {
			m.Update("n", func(known any) any { n, _ = known.(int); n++; return n })
			return n
		}
		own := dsl.MemoOf[struct{ n int }](r.Memo)
		own.n++
		j.Add(fmt.Sprintf("%s %s %d %d of %d", r.Object.GetName(), r.Cause, own.n, count(r.Memo), count(r.OperatorMemo)))
		return nil
	}
}

// TestHowLongMemosLast holds that an object's memo lasts as long as the object, its process and its leadership, and the
// operator's as long as the process.
func TestHowLongMemosLast(t *testing.T) {
	operator := func(foo *dsl.Resource, j *journal) {
		foo.On(append(both(), dsl.Resume), "count", remembers(j))
		foo.OnDelete("farewell", remembers(j))
	}
	scenarios(t, map[string]scenario{
		"an object's": {operator, func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Called("web create 1 1 of 1")
			s.size(2)
			s.Called("web update 2 2 of 2")
			s.Process.Restart()
			s.Called("web resume 1 1 of 1")
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: other}}`)
			s.Called("other create 1 1 of 2")
			s.remove()
			s.Called("web delete 2 2 of 3")
			s.Create(web)
			s.Called("web create 1 1 of 4")
		}},
		"after leadership": {level, func(s *stage) {
			op := dsl.New("op")
			op.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
			op.Resource(foos, func(foo *dsl.Resource) { operator(foo, &s.Journal) })
			s.Start(op)
			s.Advance(time.Second)
			s.Create(web)
			s.Called("web create 1 1 of 1")
			takeLock(s, dsl.LeaderLease)
			s.Advance(2 * time.Minute)
			s.Called("web resume 1 1 of 2")
		}},
	})
}
