// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

func TestAClaimGoesAfterThePodsThatUseIt(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		user := func(name string) string {
			return strings.Replace(pod(name), "spec: {", "spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data}}], ", 1)
		}
		s.create(claim + "\n---\n" + user("a"))
		s.shows("Pod", "a phase=Running Ready:True Current")
		s.plan.Set(workloads.Rule{Kind: "Pod", Name: "waits", Fail: "Unschedulable"})
		s.create(user("waits"))
		s.delete("PersistentVolumeClaim", "data")
		s.shows("PersistentVolumeClaim", "data phase=Bound ending Terminating")
		s.delete("Pod", "a")
		s.shows("PersistentVolumeClaim")
		s.shows("PersistentVolume")
	})
}

func TestAClaimWaitsForTheVolumeThatItNames(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(strings.Replace(claim, "spec: {", "spec: {volumeName: disk, ", 1))
		s.shows("PersistentVolumeClaim", "data phase=Pending InProgress")
		s.create("apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /disk}}")
		s.shows("PersistentVolumeClaim", "data phase=Bound Current")
		s.shows("PersistentVolume", "disk phase=Bound Current")
	})
}

func TestAVolumeGoesAfterItsClaim(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create("apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, persistentVolumeReclaimPolicy: Retain, hostPath: {path: /disk}}")
		s.create(strings.Replace(claim, "spec: {", "spec: {volumeName: disk, ", 1))
		s.shows("PersistentVolume", "disk phase=Bound Current")
		s.delete("PersistentVolume", "disk")
		s.shows("PersistentVolume", "disk phase=Bound ending Terminating")
		s.delete("PersistentVolumeClaim", "data")
		s.shows("PersistentVolumeClaim")
		s.shows("PersistentVolume")
	})
}

func TestWhatNothingUsesGoesAtOnce(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(strings.Replace(claim, "metadata: {", "metadata: {finalizers: [example.com/f], ", 1))
		s.shows("PersistentVolumeClaim", "data phase=Bound Current")
		if got := strings.Join(s.get("PersistentVolumeClaim", "data").GetFinalizers(), " "); got != "example.com/f kubernetes.io/pvc-protection" {
			t.Errorf("the finalizers are %s", got)
		}
		s.delete("PersistentVolumeClaim", "data")
		s.shows("PersistentVolumeClaim", "data phase=Bound ending Terminating")
		s.patch("PersistentVolumeClaim", "data", `{"metadata":{"finalizers":null}}`)
		s.shows("PersistentVolumeClaim")
		s.shows("PersistentVolume")
	})
}
