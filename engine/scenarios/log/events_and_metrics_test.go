// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// eventTexts are the Events about web, as "reason action type: note".
func eventTexts(s *scene.Stage) []string {
	s.T.Helper()
	s.Settle()
	var out []string
	for _, e := range s.Events() {
		out = append(out, e.Type+" "+e.Reason+" "+e.Action+": "+e.Note)
	}
	return out
}

// TestFailuresAreEventsOfTheirObject holds that who looks at an object sees what fails for it.
func TestFailuresAreEventsOfTheirObject(t *testing.T) {
	tests := map[string]struct {
		define func(foo *dsl.Resource, j *kit.Journal)
		play   func(s *scene.Stage)
		want   []string
	}{
		"a handler that failed twice is nothing to speak of": {
			func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("vain", j.Note("vain", scene.Fails(scene.ErrAgain), scene.Fails(scene.ErrAgain), nil))
			}, func(s *scene.Stage) { s.Advance(time.Hour) }, nil,
		},
		"one that keeps failing is reported once, however often it fails": {
			func(foo *dsl.Resource, _ *kit.Journal) { foo.OnReconcile("vain", scene.Fails(scene.ErrAgain)) },
			func(s *scene.Stage) { s.Advance(time.Hour) },
			[]string{"Warning HandlerFailing vain: Handler vain keeps failing, and is tried again: not yet"},
		},
		"one that warns in words of its own is not reported in others": {
			func(foo *dsl.Resource, _ *kit.Journal) {
				foo.OnReconcile("vain", func(_ context.Context, r *dsl.Request) error {
					r.Events.Event(dsl.Warning, "Stuck", "no luck")
					return scene.ErrAgain
				})
			},
			func(s *scene.Stage) { s.Advance(time.Hour) },
			[]string{"Warning Stuck vain: no luck"},
		},
		"a filter that fails is reported": {
			func(foo *dsl.Resource, _ *kit.Journal) {
				foo.OnReconcile("picky", scene.Succeeds, dsl.When(func(*dsl.Subject) (bool, error) { return false, errors.New("no such key") }))
			}, func(s *scene.Stage) { s.Resize(2); s.Resize(3) },
			[]string{"Warning FilterFailed picky: Handler picky does not see this object, for its filter failed: no such key"},
		},
		"a deletion that is held up by one that keeps failing": {
			func(foo *dsl.Resource, _ *kit.Journal) { foo.OnDelete("farewell", scene.Fails(scene.ErrAgain)) },
			func(s *scene.Stage) { s.Remove(); s.Advance(time.Hour) },
			[]string{"Warning DeletionHeld farewell: Deletion is held: handler farewell keeps failing, and is tried again: not yet"},
		},
		"one that holds nothing only fails": {
			func(foo *dsl.Resource, _ *kit.Journal) {
				foo.OnDelete("farewell", scene.Fails(dsl.Permanent(scene.ErrAgain)), dsl.Release())
			}, func(s *scene.Stage) { s.Remove() },
			[]string{"Warning HandlerFailed farewell: Handler farewell failed for good after 1 attempt: not yet"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: tt.define, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Settle()
				tt.play(s)
				if diff := cmp.Diff(tt.want, eventTexts(s)); diff != "" {
					t.Errorf("Events (-want +got):\n%s", diff)
				}
			}})
		})
	}
}

// TestWritesToChildrenAreLogged holds the lines of writes to children, and the Events where they are asked for.
func TestWritesToChildrenAreLogged(t *testing.T) {
	for _, mode := range []dsl.EventsMode{"", dsl.EventsChanges} {
		t.Run("events "+string(mode), func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, _ *kit.Journal) {
					foo.Owns(scene.Deployments)
					foo.OnReconcile("child", func(ctx context.Context, r *dsl.Request) error {
						if size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size"); size == 9 {
							return r.Children.Delete(ctx, scene.Deployments, "web")
						}
						return scene.KeepsDeployment(ctx, r)
					})
				},
				Play: func(s *scene.Stage) {
					s.Operator.Settings.Events = mode
					log := scene.LaunchWithLog(s, "Deployment default/web")
					said := func(want string) {
						s.T.Helper()
						got := log()
						if len(got) != 1 || !strings.Contains(got[0], `"msg"="`+want) || !strings.Contains(got[0], `"name"="web" "handler"="child"`) {
							s.T.Errorf("the log says %q, want %q", got, want)
						}
					}
					s.Create(scene.Web)
					said(`created Deployment default/web"`)
					s.Resize(2)
					said(`updated Deployment default/web: spec.replicas"`)
					s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) {
						_ = unstructured.SetNestedField(o.Object, int64(7), "spec", "replicas")
					})
					said(`put back Deployment default/web: spec.replicas changed`)
					s.Set("blue", "spec", "color")
					if got := log(); len(got) > 0 {
						s.T.Errorf("nothing was written, and the log says %q", got)
					}
					s.Advance(time.Second) // Events are named after their time
					s.Resize(9)
					said(`deleted Deployment default/web"`)
					var want []string
					if mode == dsl.EventsChanges {
						want = []string{"Normal ChildCreated child: created Deployment default/web", "Normal ChildDeleted child: deleted Deployment default/web"}
					}
					if diff := cmp.Diff(want, eventTexts(s)); diff != "" {
						t.Errorf("Events (-want +got):\n%s", diff)
					}
				},
			})
		})
	}
}

// TestAnOutageIsLoggedOnce holds that a minute without the API server is a few lines, however many
// objects there are, and that they say how it began and ended.
func TestAnOutageIsLoggedOnce(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.Resync = 10 * time.Second
			foo.OnReconcile("child", scene.KeepsDeployment)
			foo.OnReconcile("status", func(_ context.Context, r *dsl.Request) error {
				r.Patch.SetStatus("at", time.Now().Unix())
				r.Events.Event(dsl.Normal, "Seen", "at %s", time.Now())
				return nil
			})
			foo.OnReconcile("ask", func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Client.Get(ctx, "configmaps.v1", "default", "none")
				if apierrors.IsNotFound(err) {
					return nil
				}
				return err
			})
		},
		Play: func(s *scene.Stage) {
			log := scene.LaunchWithLog(s, "")
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				s.Create(strings.Replace(scene.Web, "name: web", "name: "+name, 1))
			}
			log()
			for range 6 { // it comes and goes
				s.Process.Sever()
				s.Advance(9 * time.Second)
				s.Process.Restore()
				s.Advance(time.Second)
			}
			s.Advance(time.Minute)
			got := log()
			s.T.Logf("%d lines:\n%s", len(got), strings.Join(got, "\n"))
			if len(got) != 2 {
				s.T.Errorf("there are %d lines", len(got))
			}
			all := strings.Join(got, "\n")
			if !strings.Contains(all, "requests fail; what needs them waits") || !regexp.MustCompile(`requests get through again.*"failed"=\d\d`).MatchString(all) {
				s.T.Error("they do not say when it began and ended")
			}
			if strings.Contains(all, `"logger"`) || strings.Contains(all, "<") {
				s.T.Error("there is more in them than words")
			}
		},
	})
}

// TestMetricsCountObjectsByTheirProgress holds the numbers of handwerk_objects.
func TestMetricsCountObjectsByTheirProgress(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("depends", func(_ context.Context, r *dsl.Request) error {
				switch r.Object.GetName() {
				case "failing":
					return scene.ErrAgain
				case "waiting":
					return dsl.Waiting("others", time.Hour)
				}
				return nil
			})
			foo.OnReconcile("picky", scene.Succeeds, dsl.When(func(r *dsl.Subject) (bool, error) {
				if r.Object.GetName() == "puzzling" {
					return false, errors.New("no such key")
				}
				return true, nil
			}))
			foo.OnDelete("farewell", scene.Fails(dsl.Permanent(scene.ErrAgain)))
		},
		Play: func(s *scene.Stage) {
			metrics := ops.NewMetrics()
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
			for _, name := range []string{"ready", "good", "failing", "puzzling", "waiting", "held"} {
				s.Create(strings.Replace(scene.Web, "name: web", "name: "+name, 1))
			}
			s.Create(strings.Replace(scene.Web, "name: web", "name: paused, annotations: {op.handwerk.dev/paused: x}", 1))
			s.Settle()
			s.Delete(scene.Foos, "default", "held")
			s.Settle()
			got := objectsBy(s.T, metrics)
			if diff := cmp.Diff(map[string]float64{"ready": 2, "failing": 2, "waiting": 1, "held": 1, "paused": 1}, got); diff != "" {
				s.T.Errorf("objects (-want +got):\n%s", diff)
			}
		},
	})
}

// TestObjectsAreCountedWhileTheyAreHandled holds that a scrape takes nothing from reconciles that run: it is
// the race detector that reports.
func TestObjectsAreCountedWhileTheyAreHandled(t *testing.T) {
	metrics := ops.NewMetrics()
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Workers = 4
			foo.OnReconcile("count", func(_ context.Context, r *dsl.Request) error {
				if sum := total(objectsBy(t, metrics)); sum > 20 {
					t.Errorf("%v objects are counted, and there are 20", sum)
				}
				if name := r.Object.GetName(); name[len(name)-1]%2 == 0 {
					return scene.ErrAgain
				}
				return nil
			})
		},
		Play: func(s *scene.Stage) {
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
			for i := range 20 {
				s.Create(strings.Replace(scene.Web, "name: web", fmt.Sprintf("name: web-%d", i), 1))
			}
			s.Advance(time.Minute)
			if diff := cmp.Diff(map[string]float64{"ready": 10, "failing": 10, "waiting": 0, "held": 0, "paused": 0}, objectsBy(t, metrics)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			for i := range 20 {
				s.Delete(scene.Foos, "default", fmt.Sprintf("web-%d", i))
			}
			s.Settle()
			if sum := total(objectsBy(t, metrics)); sum != 0 {
				t.Errorf("%v objects are counted, and all are gone", sum)
			}
		},
	})
}

// objectsBy is handwerk_objects by state.
func objectsBy(t *testing.T, metrics *ops.Metrics) map[string]float64 {
	t.Helper()
	return scene.Gauges(t, metrics, "handwerk_objects", "state")
}

func total(counts map[string]float64) (sum float64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
