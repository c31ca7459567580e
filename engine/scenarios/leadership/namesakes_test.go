// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leadership_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const refusedToLead = "an operator of this name holds its Lease in another namespace, and the scopes overlap; this process does not lead"

// namesakes are deployments of one operator, and what they log.
type namesakes struct {
	*scene.Stage
	log scene.Log
}

// refusals are the lines by which processes say that they do not lead.
func (s *namesakes) refusals() []string {
	s.Settle()
	return slices.DeleteFunc(s.log.Take(), func(line string) bool { return !strings.Contains(line, refusedToLead) })
}

// start starts a process of the operator whose Lease and pod are in a namespace.
func (s *namesakes) start(ns string, mode dsl.LeaderMode, adjust func(*dsl.Operator)) *kit.Process {
	s.T.Helper()
	if s.Get("namespaces.v1", "", ns) == nil {
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + ns + `}}`)
		s.Create(`{apiVersion: v1, kind: Pod, metadata: {name: pod, namespace: ` + ns + `}}`)
	}
	op := scene.Replica(&s.Journal, ns, mode)
	op.Settings.LeaderElection.Namespace = ns
	if adjust != nil {
		adjust(op)
	}
	p := s.Start(op, func(set *engine.Settings) { set.PodName, set.Log = "pod", s.log.Logger() })
	s.Advance(time.Second)
	return p
}

func scoped(namespaces ...string) func(*dsl.Operator) {
	return func(op *dsl.Operator) { op.Scope.Namespaces = namespaces }
}

// TestOneOfTwoNamesakesWorksWhereTheirScopesOverlap holds that of two deployments of one operator whose Leases are in two
// namespaces, one alone works where their scopes overlap.
func TestOneOfTwoNamesakesWorksWhereTheirScopesOverlap(t *testing.T) {
	// alone fails the test unless the process of the first namespace alone works.
	alone := func(s *namesakes, first, second *kit.Process) {
		s.T.Helper()
		s.Create(scene.Web)
		s.Advance(10 * time.Minute)
		s.Called("one create")
		if writes := second.Writes(); len(writes) > 0 {
			s.T.Errorf("the second one wrote %v", writes)
		}
		said := s.refusals()
		if len(said) != 1 || !strings.Contains(said[0], "one/op-leader") || !strings.Contains(said[0], "two/op-leader") {
			s.T.Errorf("the log says %q", said)
		}
	}
	// follows fails the test unless the second one works soon.
	follows := func(s *namesakes) {
		s.T.Helper()
		s.Advance(2 * time.Minute)
		s.Called("two resume")
		s.Resize(2)
		s.Called("two update")
	}
	both := func(s *namesakes) {
		s.T.Helper()
		s.Create(scene.Web)
		s.Advance(time.Minute)
		if one, two := s.Of("one", "web"), s.Of("two", "web"); len(one) == 0 || len(two) == 0 {
			s.T.Errorf("the first one called %v, the second one %v", one, two)
		}
		if said := s.refusals(); len(said) > 0 {
			s.T.Errorf("the log says %q", said)
		}
	}
	tests := map[string]func(*namesakes){
		"the second one waits, and leads when the first one has stopped": func(s *namesakes) {
			first, second := s.start("one", dsl.LeaderLease, nil), s.start("two", dsl.LeaderLease, nil)
			alone(s, first, second)
			if err := first.Stop(); err != nil {
				s.T.Error(err)
			}
			follows(s)
		},
		"the second one leads when the Lease of a first one that died is over": func(s *namesakes) {
			first, second := s.start("one", dsl.LeaderLease, nil), s.start("two", dsl.LeaderLease, nil)
			alone(s, first, second)
			first.Kill()
			follows(s)
		},
		"in mode life the second one leads when the pod of the first one is gone": func(s *namesakes) {
			first, second := s.start("one", dsl.LeaderLife, nil), s.start("two", dsl.LeaderLife, nil)
			alone(s, first, second)
			if s.Get("leases.v1.coordination.k8s.io", "two", "op-leader") != nil {
				s.T.Error("the second one keeps its lock")
			}
			if err := first.Stop(); err != nil {
				s.T.Error(err)
			}
			s.Delete("pods.v1", "one", "pod")
			s.Delete("leases.v1.coordination.k8s.io", "one", "op-leader") // as the garbage collector does
			follows(s)
		},
		"one that was left by a process long ago holds up no process": func(s *namesakes) {
			first := s.start("one", dsl.LeaderLease, nil)
			first.Kill()
			s.Advance(time.Hour)
			s.start("two", dsl.LeaderLease, nil)
			s.Create(scene.Web)
			s.Called("two create")
		},
		"two that begin at the same time are one in the end": func(s *namesakes) {
			s.start("two", dsl.LeaderLife, nil).Kill() // makes the namespaces
			s.Delete("leases.v1.coordination.k8s.io", "two", "op-leader")
			s.start("one", dsl.LeaderLife, nil).Kill()
			s.Delete("leases.v1.coordination.k8s.io", "one", "op-leader")
			for _, ns := range []string{"one", "two"} {
				op := scene.Replica(&s.Journal, ns, dsl.LeaderLease)
				op.Settings.LeaderElection.Namespace = ns
				s.Start(op)
			}
			s.Advance(10 * time.Minute)
			s.Create(scene.Web)
			s.Advance(time.Minute)
			if called := s.Take(); len(called) != 1 {
				s.T.Errorf("called %v", called)
			}
		},
		"one that works in all namespaces is a rival of one that works in one": func(s *namesakes) {
			first, second := s.start("one", dsl.LeaderLease, nil), s.start("two", dsl.LeaderLease, scoped("default"))
			alone(s, first, second)
		},
		"scopes without a common namespace let both work": func(s *namesakes) {
			s.start("one", dsl.LeaderLease, scoped("default"))
			s.start("two", dsl.LeaderLease, scoped("other"))
			s.Create(strings.Replace(scene.Web, "metadata: {", "metadata: {namespace: other, ", 1))
			both(s)
		},
		"labels that no namespace has together let both work": func(s *namesakes) {
			tenant := func(name string) func(*dsl.Operator) {
				return func(op *dsl.Operator) { op.Scope.NamespaceSelector = "tenant=" + name }
			}
			for ns, name := range map[string]string{"default": "gold", "other": "iron"} {
				if s.Get("namespaces.v1", "", ns) == nil {
					s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + ns + `}}`)
				}
				s.Update("namespaces.v1", "", ns, scene.SetField(map[string]any{"tenant": name}, "metadata", "labels"))
			}
			s.start("one", dsl.LeaderLease, tenant("gold"))
			s.start("two", dsl.LeaderLease, tenant("iron"))
			s.Create(strings.Replace(scene.Web, "metadata: {", "metadata: {namespace: other, ", 1))
			both(s)
		},
		"labels that a namespace may have together make rivals": func(s *namesakes) {
			s.start("one", dsl.LeaderLease, nil)
			s.start("two", dsl.LeaderLease, func(op *dsl.Operator) { op.Scope.NamespaceSelector = "tenant" })
			if said := s.refusals(); len(said) != 1 {
				s.T.Errorf("the log says %q", said)
			}
		},
		"operators of two domains are two": func(s *namesakes) {
			s.start("one", dsl.LeaderLease, nil)
			s.start("two", dsl.LeaderLease, func(op *dsl.Operator) { op.Domain = "example.com" })
			both(s)
		},
		"without the right to list Leases nothing is looked at": func(s *namesakes) {
			s.Forbid("list", "leases.coordination.k8s.io")
			s.start("one", dsl.LeaderLease, nil)
			s.start("two", dsl.LeaderLease, nil)
			both(s)
		},
		"while the Leases cannot be listed it does not lead": func(s *namesakes) {
			end := s.FailWhile("list", "leases.coordination.k8s.io", apierrors.NewServiceUnavailable("down"))
			s.start("one", dsl.LeaderLease, nil)
			s.Create(scene.Web)
			s.Advance(time.Minute)
			s.Called()
			if end() == 0 {
				s.T.Error("no Lease was looked at")
			}
			s.Advance(time.Minute)
			s.Called("one resume")
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) { play(&namesakes{Stage: s}) }})
		})
	}
}
