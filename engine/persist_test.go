// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
)

// kept returns what the state annotation holds, nil when there is none.
func (s *stage) kept() map[string]any {
	s.t.Helper()
	s.Settle()
	text := s.web().GetAnnotations()[state]
	if text == "" {
		return nil
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// keeps compares the keys of the state annotation.
func (s *stage) keeps(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(s.kept()))); diff != "" {
		s.t.Errorf("the state's keys (-want +got):\n%s", diff)
	}
}

// olds notes what a handler gets as old and diff.
func olds(j *journal) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		var changes []string
		for _, c := range r.Diff {
			changes = append(changes, fmt.Sprint(c.Op, " ", c.Path, " ", c.Old, " ", c.New))
		}
		j.Add(fmt.Sprint(r.Cause, " ", r.Old, " ", changes))
		return nil
	}
}

// large is a spec whose JSON is larger than what is kept as it is.
func large(n int) string { return strings.Repeat("x", n) }

func TestStateOnTheObject(t *testing.T) {
	scenarios(t, map[string]scenario{
		"nothing for level-triggered handlers": {level, func(s *stage) {
			s.begin()
			s.size(2)
			s.Settle()
			if keys := s.web().GetAnnotations(); len(keys) > 0 {
				s.t.Errorf("annotations %v", keys)
			}
		}},
		"a digest where nobody wants to see what was": {
			func(foo *dsl.Resource, j *journal) { foo.On(both(), "made", olds(j), dsl.NoOld()) },
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.keeps("generation", "handlers", "handwerk", "uid")
				s.size(2)
				s.Called("create map[] []", "update map[] []")
			},
		},
		"a digest where handlers run for create alone": {
			func(foo *dsl.Resource, j *journal) { foo.OnCreate("made", j.Note("made")) },
			func(s *stage) {
				s.begin()
				s.keeps("generation", "handlers", "handwerk", "uid")
			},
		},
		"the essence where a handler wants to see what was": {
			func(foo *dsl.Resource, j *journal) { foo.On(both(), "made", olds(j)) },
			func(s *stage) {
				s.begin()
				s.keeps("generation", "handlers", "handwerk", "old", "uid")
				s.size(2)
				s.Called("update map[spec:map[color:red size:1]] [change spec.size 1 2]")
				s.set("x", "metadata", "labels", "tier")
				s.Called("update map[spec:map[color:red size:2]] [add metadata <nil> map[labels:map[tier:x]]]")
				s.Process.Restart()
				s.set("y", "metadata", "labels", "tier")
				s.Called("update map[metadata:map[labels:map[tier:x]] spec:map[color:red size:2]] [change metadata.labels.tier x y]")
			},
		},
		"the fields that handlers name where all of them name some": {
			func(foo *dsl.Resource, j *journal) { foo.OnField("spec.size", "sized", olds(j)) },
			func(s *stage) {
				s.begin()
				if diff := cmp.Diff(map[string]any{"spec": map[string]any{"size": 1.0}}, s.kept()["old"]); diff != "" {
					s.t.Errorf("old (-want +got):\n%s", diff)
				}
				s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
					o.Object["spec"] = map[string]any{"size": int64(2), "color": "blue"}
				})
				s.Called("update map[spec:map[size:1]] [change spec.size 1 2]")
			},
		},
		"a large essence is compressed, and is old all the same": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnUpdate("changed", j.Note("changed", func(_ context.Context, r *dsl.Request) error {
					was, _ := dsl.MustParsePath("spec.text").In(r.Old)
					j.Add(fmt.Sprint("old has ", len(was.(string))))
					return nil
				}))
			},
			func(s *stage) {
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {text: ` + large(2000) + `}}`)
				s.keeps("generation", "handlers", "handwerk", "packed", "uid")
				if n := len(s.web().GetAnnotations()[state]); n > 220 {
					s.t.Errorf("%d bytes are stored", n)
				}
				s.Process.Restart()
				s.size(2)
				s.Called("changed update", "old has 2000")
			},
		},
		"what is too large even so is a digest, and the object is handled": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnUpdate("changed", j.Note("changed", func(_ context.Context, r *dsl.Request) error {
					if r.Old != nil {
						j.Add("old is there")
					}
					return nil
				}))
			},
			func(s *stage) {
				s.Launch()
				o := s.Create(web)
				o.Object["spec"] = map[string]any{"noise": noise(400_000)}
				s.Settle()
				s.Update(foos, "default", "web", func(now *unstructured.Unstructured) { now.Object["spec"] = o.Object["spec"] })
				s.Called("changed update", "old is there")
				s.keeps("generation", "handlers", "handwerk", "uid")
				s.size(1)
				s.Called("changed update")
			},
		},
		"handlers that are not finished, with what went wrong, and nothing when all are": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("made", j.Note("made", temporary(late), succeeds))
				foo.OnCreate("other", j.Note("other"))
			},
			func(s *stage) {
				s.begin()
				s.keeps("generation", "handlers", "handwerk", "uid")
				handlers := s.kept()["handlers"].(map[string]any)
				made := handlers["made"].(map[string]any)["try"].(map[string]any)
				if made["message"] != errAgain.Error() || made["attempts"] != 1.0 || made["due"] == nil {
					s.t.Errorf("the failing handler's record is %v", made)
				}
				s.Advance(late)
				s.keeps("generation", "handlers", "handwerk", "uid")
			},
		},
		"a handler that failed for good, for people to read": {
			func(foo *dsl.Resource, j *journal) { foo.OnCreate("made", fails(dsl.Permanent(errAgain))) },
			func(s *stage) {
				s.begin()
				s.keeps("generation", "handlers", "handwerk", "uid")
			},
		},
		"an annotation where the schema has no observedGeneration, though it was asked for": {
			func(foo *dsl.Resource, j *journal) {
				foo.ObservedGeneration = true
				foo.On(both(), "made", j.Note("made"), dsl.Field("spec"), dsl.NoOld())
			},
			func(s *stage) {
				s.begin()
				s.keeps("generation", "handlers", "handwerk", "uid")
				s.size(2)
				s.Called("made update")
			},
		},
		"what somebody has spoilt is put right while the process lives, and is handled as new by another": {
			func(foo *dsl.Resource, j *journal) { foo.OnCreate("made", j.Note("made")) },
			func(s *stage) {
				s.begin()
				s.set("spoilt", "metadata", "annotations", state)
				s.Called()
				s.Wrote("patch foos default/web")
				s.keeps("generation", "handlers", "handwerk", "uid")
				stop(s)
				s.set("spoilt", "metadata", "annotations", state)
				s.Process.Restart()
				s.Called("made create")
				s.keeps("generation", "handlers", "handwerk", "uid")
			},
		},
		"the marks of an operator with a domain of its own": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("made", j.Note("made"))
				foo.OnDelete("left", j.Note("left"))
			},
			func(s *stage) {
				s.Operator.Domain = "example.org"
				s.begin()
				s.finalizers("op.example.org/finalizer")
				if s.web().GetAnnotations()["op.example.org/state"] == "" {
					s.t.Errorf("annotations %v", s.web().GetAnnotations())
				}
				s.size(2)
				s.remove()
				s.gone()
			},
		},
	})
}

// noise is text that does not compress well.
func noise(n int) string {
	x, out := uint32(1), make([]byte, n)
	for i := range out {
		x = x*1664525 + 1013904223
		out[i] = 'a' + byte(x>>24)%26
	}
	return string(out)
}

// TestTwoOperators holds that two operators on one object do not answer each other.
func TestTwoOperators(t *testing.T) {
	perform(t, scenario{edges, func(s *stage) {
		other := dsl.New("other")
		other.Domain = "example.org"
		theirs := &journal{}
		other.Resource(foos, func(foo *dsl.Resource) { edges(foo, theirs) })
		s.Start(other)
		s.Launch()
		s.Create(web)
		s.Advance(time.Minute)
		s.Called("made create")
		s.size(2)
		s.Advance(time.Minute)
		s.Called("changed update", "sized update")
		s.remove()
		s.gone()
		s.Called("left delete")
		if n := len(theirs.Take()); n != 4 {
			s.t.Errorf("the other operator's handlers were called %d times, want 4", n)
		}
	}})
}

// TestSecretsAreKept holds that values of Secrets are never copied: into annotations, logs or
// Events.
func TestSecretsAreKept(t *testing.T) {
	const value = "aHVzaA=="
	perform(t, scenario{level, func(s *stage) {
		var mu sync.Mutex
		var logged []string
		log := funcr.New(func(prefix, args string) {
			mu.Lock()
			defer mu.Unlock()
			logged = append(logged, prefix+args)
		}, funcr.Options{Verbosity: 9})
		s.Operator.Resource("secrets.v1", func(secret *dsl.Resource) {
			secret.On(both(), "changed", s.Note("changed", temporary(late), succeeds))
			secret.OnDelete("left", s.Note("left"))
		})
		s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Log = log })
		s.Create(`{apiVersion: v1, kind: Secret, metadata: {name: web}, data: {key: ` + value + `}}`)
		s.Advance(time.Hour)
		s.Called("changed create", "changed create 2")
		s.Update("secrets.v1", "default", "web", func(o *unstructured.Unstructured) {
			o.Object["data"] = map[string]any{"key": value, "more": value}
		})
		s.Called("changed update")
		secret := s.Get("secrets.v1", "default", "web")
		if text := fmt.Sprint(secret.GetAnnotations()); strings.Contains(text, value) || !strings.Contains(text, "seen") {
			s.t.Errorf("annotations %s", text)
		}
		s.Delete("secrets.v1", "default", "web")
		s.Called("left delete")
		mu.Lock()
		defer mu.Unlock()
		if text := strings.Join(logged, "\n") + fmt.Sprint(s.Events()); strings.Contains(text, value) {
			s.t.Errorf("the value is in logs or Events: %s", text)
		}
	}})
}
