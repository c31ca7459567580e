// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

// random are the letters that the server adds to the name of a Pod.
var random = regexp.MustCompile(`(web-cb5d95cc5|agent|work-\d+|work)-[a-z0-9]{5}\b`)

// events returns the Events of a cluster in lines, sorted.
func (s stage) events() (out []string) {
	s.t.Helper()
	synctest.Wait()
	for _, u := range s.list("Event") {
		var e corev1.Event
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &e); err != nil {
			s.t.Fatal(err)
		}
		count := e.Count
		if e.Series != nil {
			count = e.Series.Count
		}
		line := fmt.Sprintf("%s %s/%s %s by %s: %s %d", e.Type, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.ReportingController, e.Message, count)
		out = append(out, random.ReplaceAllString(line, "$1-x"))
	}
	slices.Sort(out)
	return out
}

func TestControllersRecordEvents(t *testing.T) {
	for name, test := range map[string]struct {
		create string
		then   func(s stage)
		want   []string
	}{
		"of a Deployment that is scaled": {web, func(s stage) { s.patch("Deployment", "web", `{"spec":{"replicas":1}}`) }, []string{
			"Normal Deployment/web ScalingReplicaSet by deployment-controller: Scaled down replica set web-cb5d95cc5 from 2 to 1 1",
			"Normal Deployment/web ScalingReplicaSet by deployment-controller: Scaled up replica set web-cb5d95cc5 from 0 to 2 1",
			"Normal Pod/web-cb5d95cc5-x Killing by kubelet: Stopping container web 1",
			"Normal Pod/web-cb5d95cc5-x Scheduled by default-scheduler: Successfully assigned default/web-cb5d95cc5-x to node-0 0",
			"Normal Pod/web-cb5d95cc5-x Scheduled by default-scheduler: Successfully assigned default/web-cb5d95cc5-x to node-0 0",
			"Normal Pod/web-cb5d95cc5-x Started by kubelet: Container started 1",
			"Normal Pod/web-cb5d95cc5-x Started by kubelet: Container started 1",
			"Normal ReplicaSet/web-cb5d95cc5 SuccessfulCreate by replicaset-controller: Created pod: web-cb5d95cc5-x 1",
			"Normal ReplicaSet/web-cb5d95cc5 SuccessfulCreate by replicaset-controller: Created pod: web-cb5d95cc5-x 1",
			"Normal ReplicaSet/web-cb5d95cc5 SuccessfulDelete by replicaset-controller: Deleted pod: web-cb5d95cc5-x 1",
		}},
		"of a schedule that never comes": {`
apiVersion: batch/v1
kind: CronJob
metadata: {name: never}
spec: {schedule: "59 23 31 2 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}}}`, func(s stage) { s.patch("CronJob", "never", `{"metadata":{"labels":{"a":"b"}}}`) }, []string{
			"Warning CronJob/never InvalidSchedule by cronjob-controller: invalid schedule: 59 23 31 2 * : time difference between two schedules is less than 1 second 2",
		}},
		"of a Job that completes": {`
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec: {completions: 1, template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}`, func(stage) {}, []string{
			"Normal Job/work Completed by job-controller: Job completed 1",
			"Normal Job/work SuccessfulCreate by job-controller: Created pod: work-x 1",
			"Normal Pod/work-x Scheduled by default-scheduler: Successfully assigned default/work-x to node-0 0",
			"Normal Pod/work-x Started by kubelet: Container started 1",
		}},
		"of a Pod that gets no node": {`
apiVersion: v1
kind: Pod
metadata: {name: lost}
spec: {nodeSelector: {no: such}, containers: [{name: c, image: c}]}`, func(s stage) { s.patch("Pod", "lost", `{"metadata":{"labels":{"a":"b"}}}`) }, []string{
			"Warning Pod/lost FailedScheduling by default-scheduler: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. 0",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStageWith(t, server.New(server.Settings{}), workloads.Settings{Events: true})
				s.create(test.create)
				synctest.Wait()
				test.then(s)
				if diff := cmp.Diff(test.want, s.events()); diff != "" {
					t.Errorf("the Events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestEventsStayForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStageWith(t, server.New(server.Settings{}), workloads.Settings{Events: true})
		s.create(web)
		s.advance(time.Hour)
		s.patch("Deployment", "web", `{"spec":{"replicas":0}}`)
		for _, line := range s.events() {
			if !regexp.MustCompile("Scaled down|Deleted pod|Killing").MatchString(line) {
				t.Errorf("%s has stayed", line)
			}
		}
		if n := len(s.events()); n != 5 {
			t.Errorf("%d Events are there, want 5", n)
		}
	})
}
