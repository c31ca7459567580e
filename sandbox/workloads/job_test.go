// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

// job returns a Job with these fields in its spec.
func job(spec string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  %s
  template:
    spec: {restartPolicy: Never, containers: [{name: work, image: work}]}`, spec)
}

// moment is what a Job is like after a while.
type moment struct {
	after time.Duration
	job   string
}

func TestTheWayOfAJob(t *testing.T) {
	for name, c := range map[string]struct {
		spec  string
		rules []workloads.Rule
		way   []moment
	}{
		"it completes": {"completions: 1", []workloads.Rule{{Delay: 10 * time.Second}}, []moment{
			{0, "work active=1 Current"},
			{9 * time.Second, "work active=1 Current"},
			{time.Second, "work succeeded=1 Complete:True/CompletionsReached Current"},
		}},
		"two at a time": {"completions: 3\n  parallelism: 2", []workloads.Rule{{Delay: 10 * time.Second}}, []moment{
			{0, "work active=2 Current"},
			{10 * time.Second, "work active=1 succeeded=2 Current"},
			{10 * time.Second, "work succeeded=3 Complete:True/CompletionsReached Current"},
		}},
		"of another controller": {"completions: 1\n  managedBy: example.com/queue", nil, []moment{
			{time.Minute, "work InProgress"},
		}},
		"of the controller of Jobs by name": {"completions: 1\n  managedBy: kubernetes.io/job-controller", nil, []moment{
			{0, "work succeeded=1 Complete:True/CompletionsReached Current"},
		}},
		"by indexes": {"completions: 4\n  completionMode: Indexed", nil, []moment{
			{0, "work succeeded=4 completedIndexes=0-3 Complete:True/CompletionsReached Current"},
		}},
		"a rule for the Job fails it at once": {"completions: 1", []workloads.Rule{{Kind: "Job", Fail: "DeadlineExceeded"}}, []moment{
			{0, "work failed=1 Failed:True/DeadlineExceeded Failed"},
		}},
		"a rule for its Pods fails it after its retries": {"completions: 1\n  backoffLimit: 2", []workloads.Rule{{Kind: "Pod", Fail: "Error"}}, []moment{
			{0, "work failed=1 Current"},
			{10 * time.Second, "work failed=2 Current"},
			{20 * time.Second, "work failed=3 Failed:True/BackoffLimitExceeded Failed"},
		}},
		"a deadline": {"completions: 1\n  activeDeadlineSeconds: 5", []workloads.Rule{{Kind: "Pod", Delay: time.Minute}}, []moment{
			{4 * time.Second, "work active=1 Current"},
			{31 * time.Second, "work Failed:True/DeadlineExceeded Failed"},
		}},
		"suspended": {"completions: 1\n  suspend: true", nil, []moment{
			{time.Hour, "work Suspended:True/JobSuspended InProgress"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, s stage) {
				s.create(job(c.spec))
				for _, m := range c.way {
					s.advance(m.after)
					s.shows("Job", m.job)
				}
			}, c.rules...)
		})
	}
}

func TestASuspendedJobGoesOn(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(job("completions: 1"))
		s.shows("Job", "work active=1 Current")
		s.patch("Job", "work", `{"spec":{"suspend":true}}`)
		s.advance(10 * time.Second)
		s.shows("Job", "work Suspended:True/JobSuspended InProgress")
		s.shows("Pod")
		s.patch("Job", "work", `{"spec":{"suspend":false}}`)
		s.advance(10 * time.Second)
		s.shows("Job", "work succeeded=1 Suspended:False/JobResumed Complete:True/CompletionsReached Current")
	}, workloads.Rule{Delay: 10 * time.Second})
}

func TestAJobGoesAfterItsTime(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(job("ttlSecondsAfterFinished: 100"))
		s.advance(99 * time.Second)
		s.shows("Job", "work succeeded=1 Complete:True/CompletionsReached Current")
		s.advance(time.Second)
		s.shows("Job")
	})
}

func TestACronJobMakesJobsOnTime(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(`
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "*/10 * * * *"
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: work, image: work}]}`)
		s.shows("Job")
		s.advance(10 * time.Minute)
		s.shows("Job", "tick-15778090 succeeded=1 Complete:True/CompletionsReached Current")
		s.patch("CronJob", "tick", `{"spec":{"suspend":true}}`)
		s.advance(time.Hour)
		s.shows("Job", "tick-15778090 succeeded=1 Complete:True/CompletionsReached Current")
		s.patch("CronJob", "tick", `{"spec":{"suspend":false}}`)
		s.advance(time.Hour)
		if got := s.list("Job"); len(got) != 3 || got[2].GetName() != "tick-15778210" {
			t.Errorf("the Jobs that are kept are %d, the last one %s", len(got), got[len(got)-1].GetName())
		}
		if got := fmt.Sprint(s.get("CronJob", "tick").Object["status"]); got != "map[lastScheduleTime:2000-01-01T02:10:00Z lastSuccessfulTime:2000-01-01T02:10:00Z]" {
			t.Errorf("the status is %s", got)
		}
	})
}

func TestACronJobDoesNotOverlapWhereItMayNot(t *testing.T) {
	for policy, want := range map[string][]string{
		"Allow":   {"tick-15778081", "tick-15778082"},
		"Forbid":  {"tick-15778081"},
		"Replace": {"tick-15778082"},
	} {
		t.Run(policy, func(t *testing.T) {
			run(t, func(t *testing.T, s stage) {
				s.create(`
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "* * * * *"
  concurrencyPolicy: ` + policy + `
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: work, image: work}]}`)
				s.advance(2*time.Minute + time.Second)
				var got []string
				for _, j := range s.list("Job") {
					got = append(got, j.GetName())
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("the Jobs are %v, want %v", got, want)
				}
			}, workloads.Rule{Delay: time.Hour})
		})
	}
}
