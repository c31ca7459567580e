// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TakeLock gives the Lease to another holder, as a person does with an editor.
func TakeLock(s *Stage, mode dsl.LeaderMode) {
	s.T.Helper()
	s.Update(Leases, "default", "op-leader", func(o *unstructured.Unstructured) {
		if mode == dsl.LeaderLife {
			pod := s.Get("pods.v1", "default", "op-1")
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.GetName(), UID: pod.GetUID()}})
		}
		if err := unstructured.SetNestedField(o.Object, "usurper", "spec", "holderIdentity"); err != nil {
			s.T.Error(err)
		}
	})
}

// Replica returns an operator named op with leader election, whose handlers note calls under the id.
func Replica(j *kit.Journal, id string, mode dsl.LeaderMode, then ...dsl.Func) *dsl.Operator {
	op := dsl.New("op")
	op.Settings.LeaderElection = dsl.LeaderElection{Mode: mode, Namespace: "default"}
	op.Resource(Foos, func(foo *dsl.Resource) {
		foo.On(append(CreateAndUpdate(), dsl.Resume), id, j.Note(id, then...))
		foo.OnReconcile(id+"-status", Reports)
	})
	return op
}

// StartReplicas starts two replicas, first and second. The first one leads.
func StartReplicas(s *Stage, mode dsl.LeaderMode, then ...dsl.Func) (first, second *kit.Process) {
	s.T.Helper()
	if mode == dsl.LeaderLife {
		for _, name := range []string{"op-0", "op-1"} {
			s.Create(`{apiVersion: v1, kind: Pod, metadata: {name: ` + name + `}}`)
		}
	}
	first = s.Start(Replica(&s.Journal, "first", mode, then...))
	s.Advance(time.Second)
	second = s.Start(Replica(&s.Journal, "second", mode))
	s.Advance(time.Second)
	return first, second
}

// AwaitTakeover lets time pass until the second replica handles something, and returns how long it took.
func AwaitTakeover(s *Stage) time.Duration {
	s.T.Helper()
	begun := time.Now()
	for time.Since(begun) < 10*time.Minute {
		if slices.ContainsFunc(s.Take(), func(line string) bool { return strings.HasPrefix(line, "second ") }) {
			return time.Since(begun)
		}
		s.Advance(100 * time.Millisecond)
	}
	s.T.Error("the second replica never took over")
	return 0
}
