// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// wants asks for another image.
func (s *etcdStage) wants(t *testing.T, image string) {
	t.Helper()
	s.objects.Patch(t, "db", fmt.Sprintf(`{"spec":{"image":%q}}`, image))
}

// runs waits until the Pods of all members have an image, and the cluster is steady.
func (s *etcdStage) runs(t *testing.T, image string, names ...string) {
	t.Helper()
	pods := plane.Objects("pods.v1", s.ns)
	eventually(t, "all Pods to have image "+image, func() (bool, string) {
		var images []string
		for _, name := range names {
			containers, _, _ := unstructured.NestedSlice(pods.Get(t, name).Object, "spec", "containers")
			images = append(images, fmt.Sprint(containers[0].(map[string]any)["image"]))
		}
		return !slices.ContainsFunc(images, func(i string) bool { return i != image }), fmt.Sprint(images)
	})
	s.settles(t, names...)
}

// away waits until one member has an image that cannot be pulled.
func (s *etcdStage) away(t *testing.T) {
	t.Helper()
	s.objects.Await(t, "db", "state Restarting with one member away", func(o *unstructured.Unstructured) bool {
		away := slices.DeleteFunc(membersOf(t, o), func(m member) bool { return m.Healthy })
		return field(o, "status", "state") == "Restarting" && len(away) == 1 && away[0].Restarting
	})
}

// TestEtcdSampleRestartsMembersOneByOne changes the image of a cluster to which somebody writes: with the operator killed when the
// first member has its new image and is away, to an image that cannot be pulled, and back. Never is more than one member away.
func TestEtcdSampleRestartsMembersOneByOne(t *testing.T) {
	t.Parallel()
	s := newEtcdStage(t)
	names := []string{"db-0", "db-1", "db-2"}
	s.objects.Create(t, etcdCluster(3))
	s.settles(t, names...)
	s.writer.start(t.Context())
	s.kubelet.restarted()

	s.writing(t, "its members restarted, with a crash in between", func() {
		s.kubelet.lacks("etcd:next")
		crashed := s.kubelet.crashAtChange(s.program.Kill)
		s.wants(t, "etcd:next")
		<-crashed
		s.program = plane.Operator(t, s.launch)
		s.away(t)
		s.kubelet.lacks("")
		s.runs(t, "etcd:next", names...)
	})
	changes := s.restartedOneByOne(t)
	var who []string
	for i, c := range changes {
		who = append(who, c.pod)
		if c.led && i < len(changes)-1 {
			t.Errorf("the leader, %s, was restarted before others: %v", c.pod, changes)
		}
	}
	if slices.Sort(who); !slices.Equal(who, names) {
		t.Errorf("restarted were %v, want each member once", changes)
	}

	s.writing(t, "it got an image that is not there, and the one before", func() {
		s.kubelet.lacks("etcd:broken")
		s.wants(t, "etcd:broken")
		s.away(t)
		s.wants(t, "etcd:next")
		s.runs(t, "etcd:next", names...)
	})
	if changes := s.restartedOneByOne(t); len(changes) != 2 || changes[0].pod != changes[1].pod {
		t.Errorf("restarted were %v, want one member with the image that is not there, and back", changes)
	}

	acknowledged := s.writer.stop()
	s.holds(t, acknowledged)
	if changes, _ := s.network.made(); !slices.Equal(changes, []string{"add", "promote", "add", "promote"}) {
		t.Errorf("members were changed: %v", changes)
	}
	if exit := s.program.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	mustLogNoError(t, s.program.Lines)
}

// restartedOneByOne holds that at most one of three members was away at a time, and returns which got an image.
func (s *etcdStage) restartedOneByOne(t *testing.T) []etcdChange {
	t.Helper()
	changes, fewest := s.kubelet.restarted()
	if fewest < 2 {
		t.Errorf("only %d of three members have been well at a time: %v", fewest, changes)
	}
	return changes
}

// TestEtcdSampleMendsItsFirstMember holds that a cluster whose first member has an image that is not there starts when the object has
// another one.
func TestEtcdSampleMendsItsFirstMember(t *testing.T) {
	t.Parallel()
	s := newEtcdStage(t)
	s.kubelet.lacks("etcd:broken")
	db := etcdCluster(1)
	db.Object["spec"].(map[string]any)["image"] = "etcd:broken"
	s.objects.Create(t, db)
	plane.Objects("pods.v1", s.ns).Await(t, "db-0", "its Pod", func(*unstructured.Unstructured) bool { return true })
	s.wants(t, "etcd:next")
	s.runs(t, "etcd:next", "db-0")
	if o := s.objects.Get(t, "db"); cluster.Condition(o, "Ready") != "True" {
		t.Errorf("it is not ready: %s", asJSON(t, field(o, "status")))
	}
}
