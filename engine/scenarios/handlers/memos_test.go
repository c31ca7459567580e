// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// remembers notes how often it was called for the object, and for any, as far as the memos know.
func remembers(j *kit.Journal) dsl.Func {
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

// TestAMemoLastsAsLongAsItsObjectAndProcess holds that an object's memo lasts as long as the object, its process and its
// leadership, and the operator's as long as the process.
func TestAMemoLastsAsLongAsItsObjectAndProcess(t *testing.T) {
	operator := func(foo *dsl.Resource, j *kit.Journal) {
		foo.On(append(scene.CreateAndUpdate(), dsl.Resume), "count", remembers(j))
		foo.OnDelete("farewell", remembers(j))
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"an object's": {Operator: operator, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("web create 1 1 of 1")
			s.Resize(2)
			s.Called("web update 2 2 of 2")
			s.Process.Restart()
			s.Called("web resume 1 1 of 1")
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: other}}`)
			s.Called("other create 1 1 of 2")
			s.Remove()
			s.Called("web delete 2 2 of 3")
			s.Create(scene.Web)
			s.Called("web create 1 1 of 4")
		}},
		"after leadership": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			op := dsl.New("op")
			op.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
			op.Resource(scene.Foos, func(foo *dsl.Resource) { operator(foo, &s.Journal) })
			s.Start(op)
			s.Advance(time.Second)
			s.Create(scene.Web)
			s.Called("web create 1 1 of 1")
			scene.TakeLock(s, dsl.LeaderLease)
			s.Advance(2 * time.Minute)
			s.Called("web resume 1 1 of 2")
		}},
	})
}
