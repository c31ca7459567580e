// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"github.com/handwerk-dev/handwerk/sandbox/server"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}`

// image is the patch that rolls out another image.
const image = `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`

const done = "web wanted=2 replicas=2 updated=2 ready=2 available=2 Available:True Progressing:True/NewReplicaSetAvailable Current"

func TestADeploymentBecomesReadyAtOnce(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(web)
		s.shows("Deployment", done)
		s.shows("ReplicaSet", "web-cb5d95cc5 wanted=2 replicas=2 ready=2 available=2 Current")
		s.shows("Pod", "web-cb5d95cc5- phase=Running Ready:True Current", "web-cb5d95cc5- phase=Running Ready:True Current")
	})
}

func TestADeploymentIsRolledOutStepByStep(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(web)
		s.shows("Deployment", "web wanted=2 replicas=2 updated=2 Available:False Progressing:True/ReplicaSetUpdated InProgress")
		s.advance(20 * time.Second)
		s.shows("Deployment", done)
		s.patch("Deployment", "web", image)
		s.shows("Deployment", "web wanted=2 replicas=3 updated=1 ready=2 available=2 Available:True Progressing:True/ReplicaSetUpdated InProgress")
		s.shows("ReplicaSet", "web-859687bffd wanted=1 replicas=1 InProgress", "web-cb5d95cc5 wanted=2 replicas=2 ready=2 available=2 Current")
		s.advance(20 * time.Second)
		s.shows("Deployment", "web wanted=2 replicas=3 updated=2 ready=2 available=2 Available:True Progressing:True/ReplicaSetUpdated InProgress")
		s.shows("ReplicaSet", "web-859687bffd wanted=2 replicas=2 ready=1 available=1 InProgress", "web-cb5d95cc5 wanted=1 replicas=1 ready=1 available=1 Current")
		s.advance(40 * time.Second)
		s.shows("Deployment", done)
		s.shows("ReplicaSet", "web-859687bffd wanted=2 replicas=2 ready=2 available=2 Current", "web-cb5d95cc5 wanted=0 replicas=0 Current")
		if got := s.get("Deployment", "web").GetAnnotations()["deployment.kubernetes.io/revision"]; got != "2" {
			t.Errorf("the revision is %s", got)
		}
	}, workloads.Rule{Kind: "Deployment", Name: "web", Delay: 20 * time.Second})
}

func TestWhatADeploymentDoes(t *testing.T) {
	for name, c := range map[string]struct {
		patch      string
		deployment string
		sets       []string
	}{
		"another size": {`{"spec":{"replicas":3}}`,
			"web wanted=3 replicas=3 updated=3 ready=3 available=3 Available:True Progressing:True/NewReplicaSetAvailable Current",
			[]string{"web-cb5d95cc5 wanted=3 replicas=3 ready=3 available=3 Current"}},
		"no replicas": {`{"spec":{"replicas":0}}`,
			"web wanted=0 Available:True Progressing:True/NewReplicaSetAvailable Current",
			[]string{"web-cb5d95cc5 wanted=0 replicas=0 Current"}},
		"paused, it keeps its template and takes a size": {`{"spec":{"paused":true,"replicas":3,"template":{"metadata":{"labels":{"tier":"x"}}}}}`,
			"web wanted=3 replicas=3 ready=3 available=3 Available:True Progressing:Unknown/DeploymentPaused InProgress",
			[]string{"web-cb5d95cc5 wanted=3 replicas=3 ready=3 available=3 Current"}},
		"Recreate": {`{"spec":{"strategy":{"type":"Recreate"},"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`, done,
			[]string{"web-859687bffd wanted=2 replicas=2 ready=2 available=2 Current", "web-cb5d95cc5 wanted=0 replicas=0 Current"}},
		"no history": {`{"spec":{"revisionHistoryLimit":0,"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`, done,
			[]string{"web-859687bffd wanted=2 replicas=2 ready=2 available=2 Current"}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, s stage) {
				s.create(web)
				s.advance(time.Second)
				s.patch("Deployment", "web", c.patch)
				s.advance(time.Second)
				s.shows("Deployment", c.deployment)
				s.shows("ReplicaSet", c.sets...)
			})
		})
	}
}

func TestAnEarlierTemplateIsTheNewestRevision(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(web)
		s.advance(time.Second)
		for i, tag := range []string{"web:2", "web:1"} {
			s.patch("Deployment", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"`+tag+`"}]}}}}`)
			s.advance(time.Second)
			if got, want := s.get("Deployment", "web").GetAnnotations()["deployment.kubernetes.io/revision"], []string{"2", "3"}[i]; got != want {
				t.Errorf("with %s the revision is %s, want %s", tag, got, want)
			}
		}
		s.shows("ReplicaSet", "web-859687bffd wanted=0 replicas=0 Current", "web-cb5d95cc5 wanted=2 replicas=2 ready=2 available=2 Current")
	})
}

func TestADeploymentThatDoesNotProgressSaysSo(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(web)
		s.shows("Deployment", "web wanted=2 replicas=2 updated=2 Available:False Progressing:True/ReplicaSetUpdated InProgress")
		s.advance(601 * time.Second)
		s.shows("Deployment", "web wanted=2 replicas=2 updated=2 Available:False Progressing:False/ProgressDeadlineExceeded Failed")
		s.plan.Set(workloads.Rule{Kind: "deployments", Name: "web"})
		s.shows("Deployment", done)
	}, workloads.Rule{Kind: "Deployment", Name: "web", Fail: "ImagePullBackOff"})
}

func TestARolloutGetsPastPodsThatHaveFailed(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(web)
		s.advance(time.Second)
		s.shows("Deployment", "web wanted=2 replicas=2 updated=2 Available:False Progressing:True/ReplicaSetUpdated InProgress")
		s.patch("Deployment", "web", image)
		s.advance(time.Second)
		s.shows("Deployment", done)
	}, workloads.Rule{Kind: "ReplicaSet", Name: "web-cb5d95cc5", Fail: "CrashLoopBackOff"})
}

func TestAReplicaSetThatGoesAtOnceIsMadeAgain(t *testing.T) {
	for _, strategy := range []string{"RollingUpdate", "Recreate"} {
		t.Run(strategy, func(t *testing.T) {
			run(t, func(t *testing.T, s stage) {
				gone := 0
				answered := func(r server.Request) {
					if r.Verb != "create" || r.Resource.Resource != "replicasets" {
						return
					}
					if gone++; gone == 1 { // its end is seen before the answer
						s.delete("ReplicaSet", s.list("ReplicaSet")[0].GetName())
						time.Sleep(time.Second)
					}
				}
				s.answered.Store(&answered)
				s.create(web + "\n  strategy: {type: " + strategy + "}")
				s.advance(time.Minute)
				s.shows("Deployment", done)
				if gone != 2 {
					t.Errorf("%d ReplicaSets were made", gone)
				}
			})
		})
	}
}
