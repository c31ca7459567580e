// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// byOwner is what an index has of a ConfigMap: its value v under each of the names in its data "for".
func byOwner(o *unstructured.Unstructured) ([]dsl.Entry, error) {
	data, _, _ := unstructured.NestedStringMap(o.Object, "data")
	switch data["v"] {
	case "broken":
		return nil, errAgain
	case "panic":
		panic("no")
	}
	var out []dsl.Entry
	for owner := range strings.FieldsSeq(data["for"]) {
		out = append(out, dsl.Entry{Key: owner, Value: map[string]any{"v": data["v"]}})
	}
	o.Object["data"] = "spoilt"
	return out, nil
}

// valued is a value of that index.
type valued struct {
	V string `json:"v"`
}

// looksUp notes what an index has under the key spec.ref of its object.
func looksUp(causes ...dsl.Cause) func(foo *dsl.Resource, j *journal) {
	return func(foo *dsl.Resource, j *journal) {
		foo.On(causes, "see", func(_ ctx, r *dsl.Request) error {
			line, err := lookUp(r)
			j.Add(line)
			return err
		}, dsl.WithBackoff(24*time.Hour, 24*time.Hour))
	}
}

func lookUp(r *dsl.Request) (line string, err error) {
	line = r.Object.GetName() + " " + string(r.Cause) + ":"
	owners, err := dsl.Index[string, valued](r, "owners")
	if err != nil {
		return line + " error", err
	}
	ref, _, _ := unstructured.NestedString(r.Object.Object, "spec", "ref")
	found, err := owners.Get(ref)
	for _, one := range found {
		line += " " + one.V
	}
	return line, err
}

// indexed has the operator keep the index of ConfigMaps, and launches it.
func (s *stage) indexed(options ...dsl.Option) {
	s.t.Helper()
	s.Operator.Index("owners", configMaps, byOwner, options...)
	s.Launch()
}

// indexHealth checks what /readyz has to say of the index.
func (s *stage) indexHealth(check, want string) {
	s.t.Helper()
	for _, c := range s.Process.Engine().Ready() {
		if c.Name == check+"/owners" && want != "" && strings.Contains(c.Message, want) {
			return
		}
		if c.Name == check+"/owners" && c.Message != "" && want == "" {
			s.t.Errorf("%s says %q", c.Name, c.Message)
		}
	}
	if want != "" {
		s.t.Errorf("health %+v, want %q of the index", s.Process.Engine().Ready(), want)
	}
}

// TestIndexes holds that handlers see what an index has, and that those run again that have read what changes.
func TestIndexes(t *testing.T) {
	scenarios(t, map[string]scenario{
		"readers of the key are woken, also where there was nothing, and no others": {looksUp(dsl.Reconcile), func(s *stage) {
			s.Create(settingsMap("a", "", "x", "1"))
			s.indexed()
			s.Create(foo("one", "x"))
			s.Create(foo("two", "u"))
			s.CalledInAnyOrder("one create: 1", "two create:")
			s.Create(settingsMap("other/b", "", "x", "2"))
			s.Called("one index: 1 2")
			s.Create(settingsMap("c", "", "z u", "3"))
			s.Called("two index: 3")
			s.give("c", "for", "z")
			s.Called("two index:")
			s.give("a", "v", "9")
			s.Called("one index: 9 2")
			s.Delete(configMaps, "default", "a")
			s.Called("one index: 2")
			s.Wrote()
		}},
		"an equal value wakes nobody": {looksUp(dsl.Reconcile), func(s *stage) {
			s.Create(settingsMap("a", "", "x", "1"))
			s.indexed()
			s.Create(foo("one", "x"))
			s.Called("one create: 1")
			s.give("a", "app", "red")
			s.give("a", "for", "x z")
			s.Called()
			s.HoldWatches(configMaps)
			s.Delete(configMaps, "default", "a")
			s.Create(settingsMap("a", "", "x", "1"))
			s.ExpireWatches(configMaps)
			s.ReleaseWatches(configMaps)
			s.Advance(time.Minute)
			s.Called() // made anew under the name while nobody looked, with the same value
		}},
		"a key that is read no more wakes nobody": {looksUp(dsl.Reconcile), func(s *stage) {
			s.indexed()
			s.Create(foo("web", "x"))
			s.Called("web create:")
			s.set("u", "spec", "ref")
			s.Called("web update:")
			s.Create(settingsMap("a", "", "x", "1"))
			s.Called()
			s.Create(settingsMap("b", "", "u", "1"))
			s.Called("web index: 1")
			s.remove()
			s.Settle()
			s.give("b", "v", "2")
			s.Called()
			s.Create(foo("web", "u"))
			s.Called("web create: 2")
		}},
		"edge-triggered handlers read, and are not woken": {looksUp(dsl.Create, dsl.Update), func(s *stage) {
			s.indexed()
			s.Create(foo("web", "x"))
			s.Called("web create:")
			s.Forget()
			s.Create(settingsMap("a", "", "x", "1"))
			s.Called()
			s.Wrote()
			s.set("new", "spec", "color")
			s.Called("web update: 1")
		}},
		"unless they ask for the cause": {looksUp(dsl.Create, dsl.IndexChange), func(s *stage) {
			s.indexed()
			s.Create(foo("web", "x"))
			s.Called("web create:")
			s.Create(settingsMap("a", "", "x", "1"))
			s.Called("web index: 1")
		}},
		"a restart brings no news, and loses none": {looksUp(dsl.IndexChange, dsl.Create), func(s *stage) {
			s.indexed()
			s.Create(foo("web", "x"))
			s.Forget()
			s.Process.Restart()
			s.Called()
		}},
		"level-triggered handlers look anew after a restart": {looksUp(dsl.Reconcile), func(s *stage) {
			s.indexed()
			s.Create(foo("web", "x"))
			s.Called("web create:")
			s.Process.Kill()
			s.Create(settingsMap("a", "", "x", "1"))
			s.Process.Restart()
			s.Called("web resume: 1")
		}},
		"handling waits for the first listing, with one worker": {
			func(foo *dsl.Resource, j *journal) { foo.Workers = 1; looksUp(dsl.Reconcile)(foo, j) }, func(s *stage) {
				for i := range 20 {
					s.Create(settingsMap(fmt.Sprint("c", i), "", "x", "1"))
					s.Create(foo(fmt.Sprint("web-", i), "x"))
				}
				s.DelayNext("watch", configMaps, time.Minute)
				s.indexed()
				s.Called()
				s.Advance(2 * time.Minute)
				for _, line := range s.Take() {
					if strings.Count(line, " 1") != 20 {
						s.t.Errorf("call %q, want one that sees all", line)
					}
				}
			}},
		"an index over the handlers' own resource": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("count", func(_ ctx, r *dsl.Request) error {
					foos, err := dsl.Index[string, string](r, "foos")
					if err != nil {
						return err
					}
					all, err := foos.Get("all")
					keys, err2 := foos.Keys()
					j.Add(fmt.Sprintf("%s %s %v %v %d", r.Object.GetName(), r.Cause, all, keys, foos.Len()))
					r.Patch.SetStatus("count", len(all))
					return errors.Join(err, err2)
				})
			}, func(s *stage) {
				s.Operator.Index("foos", foos, func(o *unstructured.Unstructured) ([]dsl.Entry, error) {
					return []dsl.Entry{{Key: "all", Value: o.GetName()}}, nil
				})
				s.Launch()
				s.Create(foo("one", ""))
				s.Called("one create [one] [all] 1")
				s.Create(foo("two", ""))
				s.CalledInAnyOrder("two create [one two] [all] 1", "one index [one two] [all] 1")
				s.Forget()
				s.Delete(foos, "default", "one")
				s.Called("two index [two] [all] 1")
				s.Wrote("patch foos/status default/two")
			}},
		"filters read, and are asked again": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("see", j.Note("see"), dsl.When(func(s *dsl.Subject) (bool, error) {
					owners, err := dsl.Index[string, any](s, "owners")
					if err != nil {
						return false, err
					}
					found, err := owners.Get("x")
					return len(found) > 0, err
				}))
			}, func(s *stage) {
				s.indexed()
				s.Create(web)
				s.Called()
				s.Create(settingsMap("a", "", "x", "1"))
				s.Called("see create")
				s.Delete(configMaps, "default", "a")
				s.Called()
				s.Create(settingsMap("a", "", "x", "2"))
				s.Called("see update") // its filter held, and did not: nobody knows what happened meanwhile
			}},
		"news of a pass that failed are told to the next": {
			func(foo *dsl.Resource, j *journal) {
				foo.On([]dsl.Cause{dsl.IndexChange, dsl.Create}, "see", func(_ ctx, r *dsl.Request) error {
					line, err := lookUp(r)
					j.Add(line)
					r.Patch.SetStatus("seen", line)
					return err
				})
			}, func(s *stage) {
				s.indexed()
				s.Create(foo("web", "x"))
				s.Forget()
				s.FailNext("patch", foos+"/status", errors.New("connection refused"))
				s.Create(settingsMap("a", "", "x", "1"))
				s.Advance(time.Second)
				s.Called("web index: 1", "web index: 1")
			}},
		"a change cuts a retry short": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("see", func(_ ctx, r *dsl.Request) error {
					line, err := lookUp(r)
					j.Add(line)
					if err == nil && !strings.HasSuffix(line, " 1") {
						err = dsl.Temporary(errAgain, time.Hour)
					}
					return err
				})
			}, func(s *stage) {
				s.indexed()
				s.Create(foo("web", "x"))
				s.Called("web create:")
				s.Create(settingsMap("a", "", "x", "1"))
				s.Called("web create: 1")
			}},
		"also that of a handler which has not the cause": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("see", func(_ ctx, r *dsl.Request) error {
					line, err := lookUp(r)
					j.Add(line)
					if err == nil && !strings.HasSuffix(line, " 1") {
						err = dsl.Waiting("for it", time.Hour)
					}
					return err
				})
			}, func(s *stage) {
				s.indexed()
				s.Create(foo("web", "x"))
				s.Called("web create:")
				s.Create(settingsMap("a", "", "x", "1"))
				s.Called("web create: 1")
				s.give("a", "v", "2")
				s.Called()
			}},
		"a schedule reads": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("none", succeeds)
				foo.Schedule(dsl.Timing{Every: time.Hour}, "count", func(_ ctx, r *dsl.Request) error {
					owners, err := dsl.Index[string, any](r, "owners")
					if err == nil {
						j.Add(fmt.Sprint(owners.Len()))
					}
					return err
				})
			}, func(s *stage) {
				s.Create(settingsMap("a", "", "x", "1"))
				s.indexed()
				s.Advance(59 * time.Minute)
				s.Forget()
				s.Create(settingsMap("b", "", "u", "1"))
				s.Advance(3 * time.Hour)
				last(s, "2")
			}},
	})
}
