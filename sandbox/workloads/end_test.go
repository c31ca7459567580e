// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWorkloadsEndWithTheirOwners(t *testing.T) {
	for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(propagation), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStageOn(t, server.New(server.Settings{Controllers: true}), 1)
				s.create(web)
				s.create(db)
				s.create(job("completions: 1"))
				s.advance(time.Minute)
				for kind, name := range map[string]string{"Deployment": "web", "StatefulSet": "db", "Job": "work"} {
					if err := s.of(kind, apiVersions[kind]).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &propagation}); err != nil {
						t.Fatal(err)
					}
				}
				s.advance(time.Minute)
				for _, kind := range []string{"Deployment", "StatefulSet", "Job", "ReplicaSet", "Pod"} {
					s.shows(kind)
				}
				s.shows("PersistentVolumeClaim", "data-db-0 phase=Bound Current", "data-db-1 phase=Bound Current")
			})
		})
	}
}

func TestWorkloadsEndWithTheirNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStageOn(t, server.New(server.Settings{Controllers: true}), 1, workloads.Rule{Kind: "Pod", Delay: 5 * time.Second})
		s.create(everything())
		s.advance(time.Minute)
		if err := s.of("Namespace", "v1").Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.advance(time.Minute)
		if _, err := s.of("Namespace", "v1").Get(t.Context(), "default", metav1.GetOptions{}); err == nil {
			t.Error("the namespace is still there")
		}
		s.shows("PersistentVolume")
		before := s.writes.Load()
		s.advance(time.Hour)
		if n := s.writes.Load() - before; n != 0 {
			t.Errorf("%d requests were written for what is gone", n)
		}
	})
}
