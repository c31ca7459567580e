// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
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
	"github.com/handwerk-dev/handwerk/engine/ops"
)

const crdsOf = "customresourcedefinitions.v1.apiextensions.k8s.io"

// reasons are the Events about web, as "reason action type: note".
func reasons(s *stage) []string {
	s.t.Helper()
	s.Settle()
	var out []string
	for _, e := range s.Events() {
		out = append(out, e.Type+" "+e.Reason+" "+e.Action+": "+e.Note)
	}
	return out
}

// TestFailuresAreSaidOnTheObject holds that who looks at an object sees what fails for it.
func TestFailuresAreSaidOnTheObject(t *testing.T) {
	tests := map[string]struct {
		define func(foo *dsl.Resource, j *journal)
		play   func(s *stage)
		want   []string
	}{
		"a handler that failed twice is nothing to speak of": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("vain", j.Note("vain", fails(errAgain), fails(errAgain), nil))
			}, func(s *stage) { s.Advance(time.Hour) }, nil,
		},
		"one that keeps failing is told once, however often it fails": {
			func(foo *dsl.Resource, _ *journal) { foo.OnReconcile("vain", fails(errAgain)) },
			func(s *stage) { s.Advance(time.Hour) },
			[]string{"Warning HandlerFailing vain: Handler vain keeps failing, and is tried again: not yet"},
		},
		"one that warns in words of its own is not told in others": {
			func(foo *dsl.Resource, _ *journal) {
				foo.OnReconcile("vain", func(_ ctx, r *dsl.Request) error {
					r.Events.Event(dsl.Warning, "Stuck", "no luck")
					return errAgain
				})
			},
			func(s *stage) { s.Advance(time.Hour) },
			[]string{"Warning Stuck vain: no luck"},
		},
		"a filter that fails is told": {
			func(foo *dsl.Resource, _ *journal) {
				foo.OnReconcile("picky", succeeds, dsl.When(func(*dsl.Subject) (bool, error) { return false, errors.New("no such key") }))
			}, func(s *stage) { s.size(2); s.size(3) },
			[]string{"Warning FilterFailed picky: Handler picky does not see this object, for its filter failed: no such key"},
		},
		"a deletion that is held up by one that keeps failing": {
			func(foo *dsl.Resource, _ *journal) { foo.OnDelete("farewell", fails(errAgain)) },
			func(s *stage) { s.remove(); s.Advance(time.Hour) },
			[]string{"Warning DeletionHeld farewell: Deletion is held: handler farewell keeps failing, and is tried again: not yet"},
		},
		"one that holds nothing only fails": {
			func(foo *dsl.Resource, _ *journal) {
				foo.OnDelete("farewell", fails(dsl.Permanent(errAgain)), dsl.Release())
			}, func(s *stage) { s.remove() },
			[]string{"Warning HandlerFailed farewell: Handler farewell failed for good after 1 attempt: not yet"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			perform(t, scenario{tt.define, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Settle()
				tt.play(s)
				if diff := cmp.Diff(tt.want, reasons(s)); diff != "" {
					t.Errorf("Events (-want +got):\n%s", diff)
				}
			}})
		})
	}
}

// TestAnOperatorThatWorksSaysSo holds the lines of writes to children, and the Events where they are asked for.
func TestAnOperatorThatWorksSaysSo(t *testing.T) {
	for _, mode := range []dsl.EventsMode{"", dsl.EventsChanges} {
		t.Run("events "+string(mode), func(t *testing.T) {
			perform(t, scenario{
				func(foo *dsl.Resource, _ *journal) {
					foo.Owns(deployments)
					foo.OnReconcile("child", func(ctx ctx, r *dsl.Request) error {
						if size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size"); size == 9 {
							return r.Children.Delete(ctx, deployments, "web")
						}
						return keepsChild(ctx, r)
					})
				},
				func(s *stage) {
					s.Operator.Settings.Events = mode
					log := overheard(s, "Deployment default/web")
					said := func(want string) {
						s.t.Helper()
						got := log()
						if len(got) != 1 || !strings.Contains(got[0], `"msg"="`+want) || !strings.Contains(got[0], `"name"="web" "handler"="child"`) {
							s.t.Errorf("the log says %q, want %q", got, want)
						}
					}
					s.Create(web)
					said(`created Deployment default/web"`)
					s.size(2)
					said(`updated Deployment default/web: spec.replicas"`)
					s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) {
						_ = unstructured.SetNestedField(o.Object, int64(7), "spec", "replicas")
					})
					said(`put back Deployment default/web: spec.replicas changed`)
					s.set("blue", "spec", "color")
					if got := log(); len(got) > 0 {
						s.t.Errorf("nothing was written, and the log says %q", got)
					}
					s.Advance(time.Second) // Events are named after their time
					s.size(9)
					said(`deleted Deployment default/web"`)
					var want []string
					if mode == dsl.EventsChanges {
						want = []string{"Normal ChildCreated child: created Deployment default/web", "Normal ChildDeleted child: deleted Deployment default/web"}
					}
					if diff := cmp.Diff(want, reasons(s)); diff != "" {
						t.Errorf("Events (-want +got):\n%s", diff)
					}
				},
			})
		})
	}
}

// TestAServerThatIsAwayIsSaidOnce holds that a minute without the API server is a few lines, however many
// objects there are, and that they say how it began and ended.
func TestAServerThatIsAwayIsSaidOnce(t *testing.T) {
	perform(t, scenario{
		func(foo *dsl.Resource, _ *journal) {
			foo.Owns(deployments)
			foo.Resync = 10 * time.Second
			foo.OnReconcile("child", keepsChild)
			foo.OnReconcile("status", func(_ ctx, r *dsl.Request) error {
				r.Patch.SetStatus("at", time.Now().Unix())
				r.Events.Event(dsl.Normal, "Seen", "at %s", time.Now())
				return nil
			})
			foo.OnReconcile("ask", func(ctx ctx, r *dsl.Request) error {
				_, err := r.Client.Get(ctx, "configmaps.v1", "default", "none")
				if apierrors.IsNotFound(err) {
					return nil
				}
				return err
			})
		},
		func(s *stage) {
			log := overheard(s, "")
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				s.Create(strings.Replace(web, "name: web", "name: "+name, 1))
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
			s.t.Logf("%d lines:\n%s", len(got), strings.Join(got, "\n"))
			if len(got) != 2 {
				s.t.Errorf("there are %d lines", len(got))
			}
			all := strings.Join(got, "\n")
			if !strings.Contains(all, "requests fail; what needs them waits") || !regexp.MustCompile(`requests get through again.*"failed"=\d\d`).MatchString(all) {
				s.t.Error("they do not say when it began and ended")
			}
			if strings.Contains(all, `"logger"`) || strings.Contains(all, "<") {
				s.t.Error("there is more in them than words")
			}
		},
	})
}

// TestHowObjectsStand holds the numbers of handwerk_objects.
func TestHowObjectsStand(t *testing.T) {
	perform(t, scenario{
		func(foo *dsl.Resource, _ *journal) {
			foo.OnReconcile("depends", func(_ ctx, r *dsl.Request) error {
				switch r.Object.GetName() {
				case "failing":
					return errAgain
				case "waiting":
					return dsl.Waiting("others", time.Hour)
				}
				return nil
			})
			foo.OnReconcile("picky", succeeds, dsl.When(func(r *dsl.Subject) (bool, error) {
				if r.Object.GetName() == "puzzling" {
					return false, errors.New("no such key")
				}
				return true, nil
			}))
			foo.OnDelete("farewell", fails(dsl.Permanent(errAgain)))
		},
		func(s *stage) {
			metrics := ops.NewMetrics()
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
			for _, name := range []string{"ready", "good", "failing", "puzzling", "waiting", "held"} {
				s.Create(strings.Replace(web, "name: web", "name: "+name, 1))
			}
			s.Settle()
			s.Delete(foos, "default", "held")
			s.Settle()
			got := objectsBy(s.t, metrics)
			if diff := cmp.Diff(map[string]float64{"ready": 2, "failing": 2, "waiting": 1, "held": 1}, got); diff != "" {
				s.t.Errorf("objects (-want +got):\n%s", diff)
			}
		},
	})
}

// TestObjectsAreCountedWhileTheyAreHandled holds that a scrape takes nothing from passes that run: it is
// the race detector that tells.
func TestObjectsAreCountedWhileTheyAreHandled(t *testing.T) {
	metrics := ops.NewMetrics()
	perform(t, scenario{
		func(foo *dsl.Resource, _ *journal) {
			foo.Workers = 4
			foo.OnReconcile("count", func(_ ctx, r *dsl.Request) error {
				if sum := total(objectsBy(t, metrics)); sum > 20 {
					t.Errorf("%v objects are counted, and there are 20", sum)
				}
				if name := r.Object.GetName(); name[len(name)-1]%2 == 0 {
					return errAgain
				}
				return nil
			})
		},
		func(s *stage) {
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
			for i := range 20 {
				s.Create(strings.Replace(web, "name: web", fmt.Sprintf("name: web-%d", i), 1))
			}
			s.Advance(time.Minute)
			if diff := cmp.Diff(map[string]float64{"ready": 10, "failing": 10, "waiting": 0, "held": 0}, objectsBy(t, metrics)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			for i := range 20 {
				s.Delete(foos, "default", fmt.Sprintf("web-%d", i))
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
	families, err := metrics.Registry().Gather()
	if err != nil {
		t.Error(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "handwerk_objects" {
				out[m.GetLabel()[1].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

func total(counts map[string]float64) (sum float64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
