// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// wicked are children, each of which panics when it is applied.
type wicked struct{ *cluster }

func (wicked) Apply(context.Context, any, ...dsl.ChildSpec) (*unstructured.Unstructured, error) {
	panic("wicked")
}

// TestAPanicIsTheHandlers holds that a panic is not one of a goroutine, where it would end the process.
func TestAPanicIsTheHandlers(t *testing.T) {
	w := start(t, `{a: {forEach: ["1", "2", "3"], template: {`+thing+`{name: "a-${item}"}}}}`, "{}")
	defer func() {
		if p := recover(); p != "wicked" {
			t.Errorf("recovered %v", p)
		}
	}()
	w.patch = dsl.NewPatch()
	_ = w.built.Func(t.Context(), w.request(dsl.Create, wicked{w.cluster}))
}

// ending is a context that ends when it has been asked a few times.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// asked counts how often related objects are asked for.
type asked struct{ times int }

func (a *asked) Get(string) ([]*unstructured.Unstructured, error) {
	a.times++
	return nil, nil
}

func (*asked) Absent(string) string { return "" }

func (*asked) Relations() []dsl.Relation { return []dsl.Relation{{Name: "them"}} }

// TestElementsAreWorkedOutWhileThereIsTime holds that the expressions of many elements end with the
// handler's time, and that nothing is applied or taken away then.
func TestElementsAreWorkedOutWhileThereIsTime(t *testing.T) {
	w := start(t, `{a: {forEach: "${self.spec.list}", template: {`+thing+`{name: "a-${item}-${size(related.them)}"}}}}`, "{list: [a, b, c, d, e]}")
	related := &asked{}
	run := func(ctx context.Context) error {
		w.patch = dsl.NewPatch()
		r := w.request(dsl.Update, w.cluster)
		r.Related = related
		return w.built.Func(ctx, r)
	}
	if err := run(t.Context()); err != nil || related.times != 5 {
		t.Fatalf("asked %d times; %v", related.times, err)
	}
	w.newCalls()
	w.spec("{list: [d, e, f, g, h]}")
	related.times = 0
	if err := run(&ending{t.Context(), 3}); err == nil || related.times > 3 {
		t.Errorf("asked %d times; %v", related.times, err)
	}
	calls(t, w)
}

// TestNothingIsTakenAwayForWhatIsMissingElsewhere holds that a child which looks at one that is not
// wanted stays, when what it misses is not in that one.
func TestNothingIsTakenAwayForWhatIsMissingElsewhere(t *testing.T) {
	with := func(expression string) string {
		return `{
			a: {includeWhen: self.spec.a, template: {` + thing + `{name: a}}},
			b: {` + thing + `{name: b}},
			c: {` + thing + `{name: c}, spec: {x: "${` + expression + `}"}}}`
	}
	tests := map[string]struct {
		expression string
		err        string
		names      []string
	}{
		"in one that is wanted": {
			"children.a.?metadata.?name.orValue('none') + children.b.status.host",
			"waiting for what child c takes from b: children.b (Thing b): status.host is not set", []string{"Thing a", "Thing b", "Thing c"},
		},
		"in one that is wanted, too": {
			"children.a.metadata.name + children.b.status.host",
			"waiting for what child c takes from b: children.b (Thing b): status.host is not set", []string{"Thing a", "Thing b", "Thing c"},
		},
		"in the object itself": {
			"children.a.?metadata.?name.orValue('none') + self.spec.typo",
			"child c: evaluating apply.c.spec.x: self.spec.typo is not set", []string{"Thing a", "Thing b", "Thing c"},
		},
		"but when it is in that one": {
			"children.a.metadata.name + children.b.metadata.name", "", []string{"Thing b"},
		},
		"but when it is in a map, in brackets, or of an element in that one": {
			"string(children.a['metadata']['name']) + children.a.status.list[0].x + children.b.metadata.name", "", []string{"Thing b"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := start(t, with("'1'"), "{a: true}")
			if err := w.run(dsl.Create); err != nil {
				t.Fatal(err)
			}
			w.collect()
			w.configure(with(tt.expression))
			w.spec("{a: false}")
			w.objects["Thing b"].live.Object["status"] = map[string]any{}
			var err error
			for range 3 {
				err = w.run(dsl.Update)
				for name, r := range w.objects {
					if r.live.GetDeletionTimestamp() != nil {
						delete(w.objects, name)
					}
				}
			}
			if got := text(err); got != tt.err {
				t.Errorf("error %q, want %q", got, tt.err)
			}
			if diff := cmp.Diff(tt.names, w.names()); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatOnePassRendersIsBounded holds that a child is no larger than what can be stored, and all
// children of a handler together no larger than what can be held, and that neither takes memory first.
func TestWhatOnePassRendersIsBounded(t *testing.T) {
	const few = `b: {` + head + `{name: b}}`
	const one = `{` + head + `{name: "${key}"}, data: {x: "${self.spec.big}`
	tests := map[string]struct {
		children, err string
		names         []string
	}{
		"a child that can just be stored": {
			`{a: {` + head + `{name: a}, data: {x: "${self.spec.big}", y: "${self.spec.half}"}}, ` + few + `}`, "",
			[]string{"ConfigMap a", "ConfigMap b"},
		},
		"one that is too large": {
			`{a: {` + head + `{name: a}, data: {x: "${self.spec.big}", y: "${self.spec.big}"}}, ` + few + `}`,
			"child a: evaluating apply.a.data.y: it gives more than 1.5 MiB", []string{"ConfigMap b"},
		},
		"one that is one text": {
			`{a: {` + head + `{name: a}, data: {x: "` + strings.Repeat("-${self.spec.big}", 100) + `"}}, ` + few + `}`,
			"child a: evaluating apply.a.data.x: it gives more than 1.5 MiB", []string{"ConfigMap b"},
		},
		"one that repeats itself": {
			`{a: {` + head + `{name: a}, data: {x: "${lists.range(1000).map(i, self)}"}}, ` + few + `}`,
			"child a: evaluating apply.a.data.x: it gives more than 1.5 MiB", []string{"ConfigMap b"},
		},
		"keys": {
			`{a: {` + head + `{name: a}, data: {"${self.spec.big}1": a, "${self.spec.big}2": a}}, ` + few + `}`,
			"child a: evaluating apply.a.data.${self.spec.big}2: it gives more than 1.5 MiB", []string{"ConfigMap b"},
		},
		"one of several": {
			`{a: {forEach: [x, y], template: ` + one + `", y: "${key == 'y' ? self.spec.big : ''}"}}}, ` + few + `}`,
			`child a["y"]: evaluating apply.a.template.data.y: it gives more than 1.5 MiB`, []string{"ConfigMap b", "ConfigMap x"},
		},
		"several that are too large together": {
			`{a: {forEach: "${lists.range(100)}", template: ` + one + `"}}}, ` + few + `}`,
			"child a: with it, the handler's children have more than 16 MiB together", []string{"ConfigMap b"},
		},
		"elements": {
			`{a: {forEach: "${lists.range(100).map(i, self)}", key: "${index}", template: ` + one + `"}}}, ` + few + `}`,
			"child a: evaluating apply.a.forEach: it gives more than 32 MiB", []string{"ConfigMap b"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := start(t, test.children, "{}")
			big := strings.Repeat("x", 1<<20)
			w.self["spec"] = map[string]any{"big": big, "half": big[:1<<18]}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := w.run(dsl.Create)
			runtime.ReadMemStats(&after)
			if asked := after.TotalAlloc - before.TotalAlloc; asked > 20<<20 {
				t.Errorf("it asked for %d MiB", asked>>20)
			}
			if got := text(err); got != test.err || err != nil && !dsl.IsPermanent(err) {
				t.Errorf("error %q, permanent %v, want %q", got, dsl.IsPermanent(err), test.err)
			}
			if diff := cmp.Diff(test.names, w.names()); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if err != nil && !strings.HasPrefix(w.said(), "Applied=False TooLarge: ") {
				t.Errorf("condition %q", w.said())
			}
		})
	}
}
