// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package deletion_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// deletePodAgain deletes the Pod once more with so many seconds of grace; its node does that with none when the Pod
// has come to its end.
func deletePodAgain(s *scene.Stage, grace int64) {
	s.T.Helper()
	client, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		s.T.Fatal(err)
	}
	pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("default")
	if err := pods.Delete(context.Background(), "web", metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		s.T.Error(err)
	}
}

// TestTheEndOfAPodIsNoOtherDeletion is law 2 for what takes its time to be deleted: the API server moves the
// deletion timestamp when it is deleted once more, to now where its grace period is over.
func TestTheEndOfAPodIsNoOtherDeletion(t *testing.T) {
	waits := scene.Fails(dsl.Waiting("rain", time.Hour))
	onPods := func(define func(pods *dsl.Resource, j *kit.Journal), play func(s *scene.Stage)) scene.Scenario {
		return scene.Scenario{Operator: func(*dsl.Resource, *kit.Journal) {}, Play: func(s *scene.Stage) {
			s.Operator = dsl.New("op")
			s.Operator.Resource("pods.v1", func(pods *dsl.Resource) { define(pods, &s.Journal) })
			s.Launch()
			s.Create(`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeName: here}}`)
			s.Settle()
			s.Delete("pods.v1", "default", "web")
			play(s)
			if s.Get("pods.v1", "default", "web") != nil {
				s.T.Error("the Pod is still there")
			}
		}}
	}
	for name, later := range map[string]time.Duration{"in its grace period": 15 * time.Second, "when that is over": 40 * time.Second} {
		scene.PlayAll(t, map[string]scene.Scenario{
			name + ", of one that no finalizer holds": onPods(func(pods *dsl.Resource, j *kit.Journal) {
				pods.OnDelete("left", j.Note("left"), dsl.NoFinalizer())
			}, func(s *scene.Stage) {
				s.Called("left delete")
				s.Advance(later)
				deletePodAgain(s, 1)
				s.Called()
				s.Advance(time.Second)
				deletePodAgain(s, 0)
				s.Called()
			}),
			name + ", while another handler waits": onPods(func(pods *dsl.Resource, j *kit.Journal) {
				pods.OnDelete("one", j.Note("one"))
				pods.OnDelete("two", j.Note("two", waits, waits, scene.Succeeds))
			}, func(s *scene.Stage) {
				s.Called("one delete", "two delete")
				s.Advance(later)
				deletePodAgain(s, 0)
				s.Advance(11 * time.Second) // in which it is stored
				s.Called()
				s.Process.Restart()
				s.Called("two delete")
				s.Process.Restart()
				s.Called("two delete")
			}),
			name + ", while the second of its steps waits": onPods(func(pods *dsl.Resource, j *kit.Journal) {
				pods.OnDelete("steps", dsl.Steps(j.Note("one"), j.Note("two", waits, waits, scene.Succeeds)))
			}, func(s *scene.Stage) {
				s.Called("one delete", "two delete")
				s.Advance(later)
				deletePodAgain(s, 0)
				s.Advance(11 * time.Second) // in which it is stored
				s.Called()
				s.Process.Restart()
				s.Called("two delete")
				s.Process.Restart()
				s.Called("two delete")
			}),
			name + ", of one that failed for good and is held": onPods(func(pods *dsl.Resource, j *kit.Journal) {
				pods.OnDelete("one", j.Note("one", scene.Fails(dsl.Permanent(scene.ErrAgain)), scene.Succeeds))
			}, func(s *scene.Stage) {
				s.Called("one delete")
				s.Advance(later)
				deletePodAgain(s, 0)
				s.Called()
				s.Process.Restart()
				s.Called()
				s.Forget()
				s.Advance(time.Hour)
				s.Wrote()
				s.Update("pods.v1", "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"mended": "yes"}) })
				s.Called("one delete")
			}),
			name + ", while no process runs: it cannot be distinguished from another one": onPods(func(pods *dsl.Resource, j *kit.Journal) {
				pods.OnDelete("one", j.Note("one"))
				pods.OnDelete("two", j.Note("two", waits, scene.Succeeds))
			}, func(s *scene.Stage) {
				s.Called("one delete", "two delete")
				s.Advance(later)
				if err := s.Process.Stop(); err != nil {
					s.T.Error(err)
				}
				deletePodAgain(s, 0)
				s.Process.Restart()
				s.Called("one delete", "two delete")
			}),
		})
	}
}

// TestADeletionThatMovesAfterALostResponseIsRecorded holds that the progress with the new moment is written where the text on the
// object, which got there although its answer did not come back, has the earlier one.
func TestADeletionThatMovesAfterALostResponseIsRecorded(t *testing.T) {
	const pods = "pods.v1"
	scene.Play(t, scene.Scenario{Operator: func(*dsl.Resource, *kit.Journal) {}, Play: func(s *scene.Stage) {
		s.Operator = dsl.New("op")
		s.Operator.Resource(pods, func(r *dsl.Resource) {
			r.OnDelete("one", s.Note("one", func(context.Context, *dsl.Request) error {
				s.LoseNext("patch", pods)
				s.HoldWatches(pods)
				return nil
			}, scene.Succeeds))
			r.OnDelete("two", s.Note("two", scene.RetriesAfter(10*time.Minute)))
		})
		s.Launch()
		s.Create(`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeName: here}}`)
		s.Settle()
		s.Delete(pods, "default", "web")
		s.Called("one delete", "two delete")
		end := s.FailWhile("patch", pods, scene.ErrAgain)
		s.Advance(40 * time.Second)
		deletePodAgain(s, 0)
		if text := s.Get(pods, "default", "web").GetAnnotations()[scene.StateAnnotation]; text == "" {
			t.Fatal("the write whose answer was lost is not there")
		}
		s.ExpireWatches(pods) // so that the write and the move are seen at once
		s.ReleaseWatches(pods)
		s.Advance(time.Minute)
		if failed := end(); failed == 0 {
			t.Fatal("no request failed")
		}
		s.Advance(6 * time.Minute)
		s.Called()
		s.Process.Restart()
		s.Called()
	}})
}

// TestASuccessCountsForOneDeletion is law 2 for deletions that are taken back by a restored backup, and come again.
func TestASuccessCountsForOneDeletion(t *testing.T) {
	leaving := func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnDelete("first", j.Note("first"))
		foo.OnDelete("second", j.Note("second", scene.RetriesAfter(10*time.Minute)))
	}
	twice := func(s *scene.Stage) {
		s.Process.Restart()
		s.Settle()
		if n := len(s.Of("first", "web")); n != 2 {
			s.T.Errorf("there were two deletions, and the handler that succeeds was called %d times", n)
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a process sees the object alive in between": {Operator: leaving, Play: func(s *scene.Stage) {
			s.Begin()
			restore := s.Snapshot()
			s.Remove()
			s.Advance(20 * time.Second)
			restore()
			s.Advance(5 * time.Minute)
			if text := s.Web().GetAnnotations()[scene.StateAnnotation]; text != "" {
				s.T.Errorf("the object lives, and has %s", text)
			}
			s.Process.Kill()
			s.Remove()
			twice(s)
		}},
		"no process sees it": {Operator: leaving, Play: func(s *scene.Stage) {
			s.Begin()
			restore := s.Snapshot()
			s.Remove()
			s.Settle()
			s.Process.Kill()
			restore()
			s.Advance(time.Hour)
			s.Remove()
			twice(s)
		}},
		"somebody puts the text back that was on the object in its deletion": {Operator: leaving, Play: func(s *scene.Stage) {
			s.Begin()
			restore := s.Snapshot()
			s.Remove()
			s.Settle()
			text := s.Web().GetAnnotations()[scene.StateAnnotation]
			s.Process.Kill()
			restore()
			s.Set(text, "metadata", "annotations", scene.StateAnnotation)
			s.Advance(time.Hour)
			s.Remove()
			twice(s)
		}},
	})
}

// TestALevelTriggeredHandlerResumesAnUndoneDeletion holds that a new process resumes the object with a handler that is
// level-triggered and sees it off, too, whatever the text says of what it had seen when the object was deleted.
func TestALevelTriggeredHandlerResumesAnUndoneDeletion(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.On([]dsl.Cause{dsl.Reconcile, dsl.Delete}, "h", j.Note("h", scene.Succeeds, scene.RetriesAfter(10*time.Minute), scene.Succeeds))
	}, Play: func(s *scene.Stage) {
		s.Begin()
		restore := s.Snapshot()
		s.Remove()
		s.Called("h delete")
		text := s.Web().GetAnnotations()[scene.StateAnnotation]
		if text == "" {
			t.Fatal("that it has begun is not stored")
		}
		s.Process.Kill()
		restore()
		s.Set(text, "metadata", "annotations", scene.StateAnnotation)
		s.Process.Restart()
		s.Called("h resume")
	}})
}

// TestAChangedChildRunsADeleteHandlerAtOnce holds that a delete handler that reads its children looks at once when one
// changes, also when it is failing.
func TestAChangedChildRunsADeleteHandlerAtOnce(t *testing.T) {
	scene.PlayYAML(t, backup(`apply: {job: {readyWhen: int(child.metadata.annotations.code) > 0, template:
		{apiVersion: batch/v1, kind: Job, metadata: {name: "${self.metadata.name}-backup"}, spec: {parallelism: 1}}}}`), func(s *scene.Stage) {
		s.Begin()
		s.Remove()
		s.Settle()
		code := func(text string) {
			s.Update(scene.Jobs, "default", "web-backup", func(o *unstructured.Unstructured) {
				notes := o.GetAnnotations()
				notes["code"] = text
				o.SetAnnotations(notes)
			})
		}
		code("x")
		s.Advance(time.Hour)
		code("1")
		s.Settle()
		if s.Web() != nil {
			s.T.Error("the Job is ready, and no handler looks")
		}
	})
}

// TestAnObjectThatWentWithAWriteIsNotWrittenAgain is law 6 for the end of an object: what the cache shows of it between the
// write of its status and its deletion starts no reconcile.
func TestAnObjectThatWentWithAWriteIsNotWrittenAgain(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"of many objects": {
			Operator: func(foo *dsl.Resource, _ *kit.Journal) {
				foo.Limits = &dsl.Limits{Deletions: dsl.DeletionLimits{PerMinute: dsl.Unlimited, Share: dsl.Unlimited}}
				foo.OnDelete("left", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus("left", true)
					return nil
				})
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				for i := range 40 {
					s.Create(fmt.Sprintf("{apiVersion: example.com/v1, kind: Foo, metadata: {name: web-%d}}", i))
				}
				s.Settle()
				for i := range 40 {
					s.Delete(scene.Foos, "default", fmt.Sprint("web-", i))
				}
				s.Settle()
				writes := map[int]int{}
				for _, w := range s.Writes() {
					writes[w.Code]++
				}
				if diff := cmp.Diff(map[int]int{200: 120}, writes); diff != "" {
					s.T.Errorf("writes by code (-want +got):\n%s", diff)
				}
			},
		},
	})
}
