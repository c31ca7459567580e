// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// four are the names of objects that fail.
var four = []string{"a", "b", "c", "d"}

// makeFour creates them, one after the other.
func makeFour(s *scene.Stage) {
	s.T.Helper()
	for _, name := range four {
		s.Create(fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: %s}, spec: {size: 1}}`, name))
		s.Settle()
	}
}

// patients says what is wrong with objects, until it is mended.
type patients struct {
	mu  sync.Mutex
	ill map[string]string
}

// ails makes objects fail with a text, which is about the object; an empty one mends them.
func (p *patients) ails(text string, names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		if p.ill == nil {
			p.ill = map[string]string{}
		}
		p.ill[name] = text
	}
}

func (p *patients) of(o *unstructured.Unstructured) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text := p.ill[o.GetName()]; text != "" {
		return errors.New("looking at Foo " + o.GetNamespace() + "/" + o.GetName() + ": " + text)
	}
	return nil
}

// lengthy is as long as errors of API servers are.
var lengthy = strings.Repeat("the template is not what it should be, ", 8) + "and this is its end"

// lines are patterns of what the log says of objects that fail.
const tried = `"msg"="handler will be tried again" .*"name"="%s" "handler"="app" .*`

const workAgain = `"msg"="handler works again" .*"name"="%s"`

const wholeText = `"error"="looking at Foo default/%s: .*and this is its end"`

const shortText = `"error"="looking at Foo default/%s: [^"]{1,60}…" "sameAs"="default/%s"`

const still = `"level"=0 "msg"="objects still fail" "resource"="foos.v1.example.com" .*` + wholeText + ` "handler"="app" "line"="handler will be tried again" "objects"=%d "names"=%s "failed"=\d+ "within"="%s"`

// first is how the log says that all four fail with the same text.
func first(line string) []string {
	out := []string{fmt.Sprintf(line+wholeText, "a", "a")}
	for _, name := range four[1:] {
		out = append(out, fmt.Sprintf(line+shortText, name, name, "a"))
	}
	return out
}

// sums are summaries, each of so many minutes.
func sums(object string, objects int, names string, minutes ...int) (out []string) {
	for _, n := range minutes {
		out = append(out, fmt.Sprintf(still, object, objects, names, (time.Duration(n)*time.Minute).String()))
	}
	return out
}

// TestObjectsThatFailAlikeAreLoggedInFullOnce holds that the log says a text once in full, names each object that fails with
// it, and counts then.
func TestObjectsThatFailAlikeAreLoggedInFullOnce(t *testing.T) {
	names := func(n int) string {
		return `\[` + strings.TrimSuffix(strings.Repeat(`"default/[a-d]" `, n), " ") + `\]`
	}
	tests := map[string]func(s *scene.Stage, p *patients, log func() []string){
		"four have a line each, where one has the text, and then a summary ever more seldom": func(s *scene.Stage, _ *patients, log func() []string) {
			s.Advance(7 * time.Second)
			s.WantLines(log, first(tried)...)
			s.Advance(time.Hour)
			s.WantLines(log, sums("[a-d]", 4, names(4), 1, 2, 4, 8, 16)...)
		},
		"one works again": func(s *scene.Stage, p *patients, log func() []string) {
			p.ails("", "a")
			s.Advance(7 * time.Second)
			s.WantLines(log, append(first(tried), fmt.Sprintf(workAgain, "a"))...)
			s.Advance(3 * time.Minute)
			s.WantLines(log, sums("[b-d]", 3, names(3), 1, 2)...)
		},
		"all work again, and fail later": func(s *scene.Stage, p *patients, log func() []string) {
			p.ails("", four...)
			s.Advance(time.Hour)
			s.WantLines(log, slices.Concat(first(tried), slices.Repeat([]string{fmt.Sprintf(workAgain, "[a-d]")}, 4))...)
			p.ails(lengthy, "b")
			s.Update(scene.Foos, "default", "b", biggerYet)
			s.Advance(10 * time.Second)
			s.WantLines(log, fmt.Sprintf(tried+wholeText, "b", "b"))
		},
		"one fails with something else then": func(s *scene.Stage, p *patients, log func() []string) {
			p.ails("another thing", "b")
			s.Advance(7 * time.Second)
			s.WantLines(log, append(first(tried), fmt.Sprintf(tried, "b")+`default/b: another thing" "retryAfter"`)...)
		},
		"the handler does not see them any more": func(s *scene.Stage, _ *patients, log func() []string) {
			s.Advance(7 * time.Second)
			s.WantLines(log, first(tried)...)
			for _, name := range four {
				s.Update(scene.Foos, "default", name, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"skip": "yes"}) })
			}
			s.Advance(time.Hour)
			s.WantLines(log)
		},
		"they are deleted": func(s *scene.Stage, _ *patients, log func() []string) {
			s.Advance(7 * time.Second)
			s.WantLines(log, first(tried)...)
			for _, name := range four {
				s.Delete(scene.Foos, "default", name)
			}
			s.Advance(time.Hour)
			s.WantLines(log)
		},
		"the process stops": func(s *scene.Stage, _ *patients, log func() []string) {
			s.Advance(7 * time.Second)
			s.WantLines(log, first(tried)...)
			if err := s.Process.Stop(); err != nil {
				s.T.Error(err)
			}
			s.Advance(time.Hour)
			if lines := log(); strings.Contains(strings.Join(lines, ""), "fail") {
				s.T.Errorf("the log says %v", lines)
			}
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) {
			p := &patients{}
			p.ails(lengthy, four...)
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, _ *kit.Journal) {
					foo.OnReconcile("app", func(_ context.Context, r *dsl.Request) error { return p.of(r.Object) }, dsl.LabelAbsent("skip"))
				},
				Play: func(s *scene.Stage) {
					log := scene.LaunchWithLog(s, "")
					log()
					makeFour(s)
					play(s, p, log)
				},
			})
		})
	}
}

// biggerYet is a change that makes handlers run.
func biggerYet(o *unstructured.Unstructured) {
	size, _, _ := unstructured.NestedInt64(o.Object, "spec", "size")
	_ = unstructured.SetNestedField(o.Object, size+1, "spec", "size")
}

// TestWhateverFailsIsLoggedInFullOnce holds the same for all that fails for an object: each has a line, one has the text,
// and after a minute it is logged that they fail still, where they do.
func TestWhateverFailsIsLoggedInFullOnce(t *testing.T) {
	const sum = `"level"=0 "msg"="objects still fail" .*"handler"="app%s" "line"="%s" "(objects|subHandlers)"=4 .*"within"="1m0s"`
	const waits = `"msg"="waits for sub-handlers`
	const filter = "filter failed; the handler does not see the object"
	p := &patients{}
	p.ails(lengthy, four...)
	fails := func(_ context.Context, r *dsl.Request) error { return p.of(r.Object) }
	tests := map[string]struct {
		define func(foo *dsl.Resource)
		faults func(s *scene.Stage) (end func() int)
		want   []string
	}{
		"a filter": {func(foo *dsl.Resource) {
			foo.OnReconcile("app", scene.Succeeds, dsl.When(func(r *dsl.Subject) (bool, error) { return false, p.of(r.Object) }))
		}, nil, []string{
			`"msg"="` + filter + `" "error"="looking at Foo default/a: .*and this is its end" .*"name"="a" "handler"="app"$`,
			`"msg"="` + filter + `" "error"="[^"]*…" .*"name"="b" "handler"="app" "sameAs"="default/a"$`,
			`"msg"="` + filter + `" "error"="[^"]*…" .*"name"="c" "handler"="app" "sameAs"="default/a"$`,
			`"msg"="` + filter + `" "error"="[^"]*…" .*"name"="d" "handler"="app" "sameAs"="default/a"$`,
			`^"msg"="objects still fail" "error"="looking at Foo default/a: .*end" .*"handler"="app" "line"="` + filter + `" "objects"=4`,
		}},
		"a write": {func(foo *dsl.Resource) {
			foo.OnReconcile("app", func(_ context.Context, r *dsl.Request) error {
				r.Patch.SetStatus("seen", r.Object.GetGeneration())
				return nil
			})
		}, func(s *scene.Stage) func() int {
			return s.FailWhile("patch", scene.Foos+"/status", apierrors.NewInternalError(errors.New(lengthy)))
		}, []string{
			`"level"=0 "msg"="reconcile could not be finished" .*"name"="a" .*and this is its end"$`,
			`"level"=0 "msg"="reconcile could not be finished" .*"name"="b" .*…" "sameAs"="default/a"$`,
			`"level"=0 "msg"="reconcile could not be finished" .*"name"="c" .*…" "sameAs"="default/a"$`,
			`"level"=0 "msg"="reconcile could not be finished" .*"name"="d" .*…" "sameAs"="default/a"$`,
			`^"msg"="objects still fail" "error"=".*and this is its end" "resource"="foos.v1.example.com" "line"="reconcile could not be finished" "objects"=4`,
		}},
		"a handler, for good": {func(foo *dsl.Resource) {
			foo.OnReconcile("app", func(_ context.Context, r *dsl.Request) error { return dsl.Permanent(p.of(r.Object)) })
		}, nil, []string{
			`"msg"="handler failed for good" .*and this is its end" .*"name"="a" .*"attempt"=1$`,
			`"msg"="handler failed for good" .*…" .*"name"="b" .*"attempt"=1 "sameAs"="default/a"$`,
			`"msg"="handler failed for good" .*…" .*"name"="c" .*"attempt"=1 "sameAs"="default/a"$`,
			`"msg"="handler failed for good" .*…" .*"name"="d" .*"attempt"=1 "sameAs"="default/a"$`,
		}},
		"a handler whose errors count as success": {func(foo *dsl.Resource) {
			foo.OnReconcile("app", fails, dsl.Errors(dsl.ErrorsIgnore))
		}, nil, first(`"msg"="handler failed, which counts as success" .*"name"="%s" .*`)},
		"a handler beside one that hears of objects that are gone": {func(foo *dsl.Resource) {
			foo.OnReconcile("app", fails)
			foo.OnDelete("farewell", scene.Succeeds, dsl.NoFinalizer())
		}, nil, append(first(tried), fmt.Sprintf(sum, "", "handler will be tried again"))},
		"a sub-handler": {func(foo *dsl.Resource) {
			foo.OnReconcile("app", func(_ context.Context, r *dsl.Request) error {
				r.Handle("part", fails)
				return nil
			})
		}, nil, append(first(`"msg"="handler will be tried again" .*"name"="%s" .*"subHandler"="app/part" .*`), fmt.Sprintf(sum, `/\*`, "handler will be tried again"))},
		"a sub-handler's filter": {func(foo *dsl.Resource) {
			foo.OnReconcile("app", func(_ context.Context, r *dsl.Request) error {
				r.Handle("part", scene.Succeeds, dsl.When(func(r *dsl.Subject) (bool, error) { return false, p.of(r.Object) }))
				return nil
			})
		}, nil, []string{
			`"msg"="handler will be tried again" .*"name"="a" .*"error"="asking filter: .*and this is its end"`,
			`"msg"="handler will be tried again" .*"name"="b" .*"error"="asking filter: [^"]*…" "sameAs"="default/a"`,
			`"msg"="handler will be tried again" .*"name"="c" .*"error"="asking filter: [^"]*…" "sameAs"="default/a"`,
			`"msg"="handler will be tried again" .*"name"="d" .*"error"="asking filter: [^"]*…" "sameAs"="default/a"`,
			waits, waits, waits, waits,
			fmt.Sprintf(sum, `/\*`, "handler will be tried again"),
		}},
		"a daemon": {func(foo *dsl.Resource) {
			foo.Daemon("app", func(_ context.Context, r *dsl.DaemonRequest) error { return p.of(r.Object) })
		}, nil, append(first(`"msg"="daemon will be run again" .*"name"="%s" .*`), fmt.Sprintf(sum, "", "daemon will be run again"))},
		"a daemon, for good": {func(foo *dsl.Resource) {
			foo.Daemon("app", func(_ context.Context, r *dsl.DaemonRequest) error { return dsl.Permanent(p.of(r.Object)) })
		}, nil, []string{
			`"msg"="daemon failed for good" .*and this is its end" .*"name"="a"`,
			`"msg"="daemon failed for good" .*…" .*"name"="b" .*"sameAs"="default/a"$`,
			`"msg"="daemon failed for good" .*…" .*"name"="c" .*"sameAs"="default/a"$`,
			`"msg"="daemon failed for good" .*…" .*"name"="d" .*"sameAs"="default/a"$`,
		}},
	}
	for name, test := range tests {
		for ending, over := range endings {
			t.Run(name+", until "+ending, func(t *testing.T) {
				p.ails(lengthy, four...)
				scene.Play(t, scene.Scenario{
					Operator: func(foo *dsl.Resource, _ *kit.Journal) { test.define(foo) },
					Play: func(s *scene.Stage) {
						log, end := scene.LaunchWithLog(s, ""), func() int { return 0 }
						log()
						if test.faults != nil {
							end = test.faults(s)
						}
						makeFour(s)
						s.Advance(65 * time.Second)
						s.WantLines(log, test.want...)
						s.Advance(75 * time.Second) // each has failed once more
						over(s, func() {
							p.ails("", four...)
							end()
						})
						s.Advance(2 * time.Hour)
						if lines := strings.Join(log(), "\n"); strings.Contains(lines, "still fail") {
							t.Errorf("when nothing fails any more, the log says\n%s", lines)
						}
					},
				})
			})
		}
	}
}

// endings are how it ends that objects fail.
var endings = map[string]func(s *scene.Stage, mend func()){
	"they are mended": func(s *scene.Stage, mend func()) {
		mend()
		for _, name := range four {
			s.Update(scene.Foos, "default", name, biggerYet)
		}
	},
	"they are deleted": func(s *scene.Stage, mend func()) {
		for _, name := range four {
			s.Delete(scene.Foos, "default", name)
		}
		s.Settle()
		mend()
	},
}

// TestAFailureForGoodHasALineOfItsOwn holds that it has the whole text again, where the object itself had it before.
func TestAFailureForGoodHasALineOfItsOwn(t *testing.T) {
	p := &patients{}
	p.ails(lengthy, "web")
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("app", func(_ context.Context, r *dsl.Request) error { return p.of(r.Object) }, dsl.Retries(3))
		},
		Play: func(s *scene.Stage) {
			log := scene.LaunchWithLog(s, "")
			log()
			s.Create(scene.Web)
			s.Advance(time.Hour)
			s.WantLines(log, fmt.Sprintf(tried, "web")+`"attempt"=1 .*end"`, `"msg"="handler failed for good" .*and this is its end" .*"attempt"=4`)
		},
	})
}
