// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

const thing = "apiVersion: x.io/v1, kind: Thing, metadata: "

// waits fails unless err says that what is waited for.
func waits(t *testing.T, err error, what string) {
	t.Helper()
	if _, ok := dsl.IsWaiting(err); !ok || err.Error() != "waiting for "+what {
		t.Errorf("the handler says %v, want that it waits for %s", err, what)
	}
}

func calls(t *testing.T, w *world, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.newCalls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// together is calls where those of one line may be in any order.
func together(t *testing.T, w *world, lines ...[]string) {
	t.Helper()
	got := w.newCalls()
	rest := got
	for _, line := range lines {
		n := min(len(line), len(rest))
		slices.Sort(rest[:n])
		rest = rest[n:]
	}
	if diff := cmp.Diff(slices.Concat(lines...), got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestChildrenAreMadeInTheOrderInWhichTheyNeedEachOther(t *testing.T) {
	w := start(t, `{
		a: {`+thing+`{name: "a-${children.b.status.host}"}},
		b: {`+thing+`{name: "b-${children.c.metadata.name}"}},
		c: {`+thing+`{name: "${self.metadata.name}"}}}`, "{}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	calls(t, w, "create Thing me", "create Thing b-me", "create Thing a-b-me.host")
	if want := "Applied=True AllApplied: All 3 children are applied."; w.said() != want {
		t.Errorf("condition %q, want %q", w.said(), want)
	}
	if err := w.run(dsl.Resume); err != nil {
		t.Fatal(err)
	}
	calls(t, w)
}

func TestChildrenThatDoNotNeedEachOtherAreMadeSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, "{a: {forEach: '${self.spec.list}', template: {"+head+"{name: '${item}'}}}, b: {"+head+"{name: b}}}",
			"{list: ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10']}")
		w.meeting = make(chan struct{})
		go func() {
			synctest.Wait() // each call waits, so as many as may be are under way
			for range 11 {
				<-w.meeting
			}
		}()
		if err := w.run(dsl.Create); err != nil {
			t.Fatal(err)
		}
		if len(w.names()) != 11 || w.most < 2 || w.most > 8 {
			t.Errorf("%d objects, %d calls at a time; want 11, and between 2 and 8", len(w.names()), w.most)
		}
	})
}

func TestAFailureStopsOnlyWhatNeedsIt(t *testing.T) {
	w := start(t, `{
		a: {`+thing+`{name: a}},
		b: {`+thing+`{name: "b-${children.a.metadata.name}"}},
		c: {`+thing+`{name: "c-${children.b.metadata.name}"}},
		d: {`+thing+`{name: d}},
		e: {forEach: [x, y], template: {`+thing+`{name: "e-${item}"}}}}`, "{}")
	w.refused["Thing a"] = errBroken
	w.refused["Thing e-x"] = errBroken
	err := w.run(dsl.Create)
	if want := "Thing ns/a: broken; Thing ns/e-x: broken"; err == nil || err.Error() != want || dsl.IsPermanent(err) {
		t.Errorf("error %v, want %s", err, want)
	}
	if diff := cmp.Diff([]string{"Thing d", "Thing e-y"}, w.names()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Warning ApplyFailed: " + err.Error()}, []string(w.events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	delete(w.refused, "Thing a")
	delete(w.refused, "Thing e-x")
	if err := w.run(dsl.Update); err != nil {
		t.Fatal(err)
	}
	if want := []string{"Thing a", "Thing b-a", "Thing c-b-a", "Thing d", "Thing e-x", "Thing e-y"}; !slices.Equal(w.names(), want) {
		t.Errorf("objects %v, want %v", w.names(), want)
	}
}

func TestAChildThatIsNotReadyHoldsBackWhatNeedsIt(t *testing.T) {
	w := start(t, `{
		db: {readyWhen: child.status.ready, template: {`+thing+`{name: db}}},
		web: {`+thing+`{name: "web-${children.db.metadata.name}"}},
		log: {`+thing+`{name: log}}}`, "{}")
	w.slow["Thing db"] = true
	waits(t, w.run(dsl.Create), "Thing db to be ready")
	together(t, w, []string{"create Thing db", "create Thing log"})
	if want := "Applied=False Waiting: Waiting for Thing db to be ready."; w.said() != want || len(w.events) > 0 {
		t.Errorf("condition %q, events %v, want %q", w.said(), w.events, want)
	}
	w.settle("Thing db")
	if err := w.run(dsl.Child); err != nil {
		t.Fatal(err)
	}
	calls(t, w, "create Thing web-db")
}

func TestWhatNeedsAChildWithoutReadyWhenWaitsOnlyUntilItIsApplied(t *testing.T) {
	w := start(t, `{db: {`+thing+`{name: db}}, web: {`+thing+`{name: "web-${children.db.metadata.name}"}}}`, "{}")
	w.slow["Thing db"] = true
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	calls(t, w, "create Thing db", "create Thing web-db")
}

func TestAllOfSeveralMustBeReady(t *testing.T) {
	w := start(t, `{
		pods: {forEach: [x, y], readyWhen: child.status.ready && item != '', template: {`+thing+`{name: "${item}"}}},
		web: {`+thing+`{name: web}, spec: {hosts: "${children.pods.map(p, p.status.host)}"}}}`, "{}")
	w.slow["Thing y"] = true
	waits(t, w.run(dsl.Create), "Thing y to be ready")
	w.settle("Thing y")
	if err := w.run(dsl.Child); err != nil {
		t.Fatal(err)
	}
	hosts, _, _ := unstructured.NestedSlice(w.objects["Thing web"].live.Object, "spec", "hosts")
	if diff := cmp.Diff([]any{"x.host", "y.host"}, hosts); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
}

func TestAnObjectThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	w := start(t, "{db: {"+thing+"{name: db}}, web: {"+thing+"{name: '${children.db.metadata.name}-web'}}}", "{}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	all, _ := w.All()
	if err := w.Remove(t.Context(), all[0]); err != nil {
		t.Fatal(err)
	}
	delete(w.objects, "Thing db-web")
	w.newCalls()
	waits(t, w.run(dsl.Child), "Thing db to be gone, so that it can be made again")
	calls(t, w)
	w.collect()
	if err := w.run(dsl.Child); err != nil {
		t.Error(err)
	}
	calls(t, w, "create Thing db", "create Thing db-web")
}

func TestWhatIsMissingInAChildIsWaitedFor(t *testing.T) {
	w := start(t, `{
		db: {`+thing+`{name: db}},
		web: {`+thing+`{name: web}, spec: {url: "http://${children.db.status.host}/${self.spec.path}"}}}`, "{path: x}")
	w.slow["Thing db"] = true
	waits(t, w.run(dsl.Create), "what child web takes from db: children.db (Thing db): status.host is not set")
	calls(t, w, "create Thing db")
	w.settle("Thing db")
	if err := w.run(dsl.Child); err != nil {
		t.Fatal(err)
	}
	calls(t, w, "create Thing web")
}

func TestWhatIsMissingInTheObjectItselfIsAFailure(t *testing.T) {
	w := start(t, `{
		db: {`+thing+`{name: db}},
		web: {`+thing+`{name: web}, spec: {url: "http://${children.db.metadata.name}/${self.spec.path}"}}}`, "{}")
	err := w.run(dsl.Create)
	want := "child web: evaluating apply.web.spec.url: self.spec.path is not set"
	if err == nil || err.Error() != want || dsl.IsPermanent(err) {
		t.Errorf("error %v, want %s", err, want)
	}
	if want := "Applied=False Unresolved: " + want; w.said() != want {
		t.Errorf("condition %q, want %q", w.said(), want)
	}
}

func TestChildrenOfOtherHandlersAreReadAndNotWaitedForInOrder(t *testing.T) {
	w := start(t, `{web: {`+thing+`{name: "web-${children.other.status.host}"}}}`, "{}")
	w.more = []shape.NamedChild{{Name: "other"}}
	waits(t, w.run(dsl.Create), "what child web takes from other: children.other is not there")
	other := map[string]any{"apiVersion": "x.io/v1", "kind": "Thing", "metadata": map[string]any{"name": "o"}}
	if _, err := w.Apply(t.Context(), other, dsl.ChildSpec{Handler: "g", Name: "other"}); err != nil {
		t.Fatal(err)
	}
	if err := w.run(dsl.Child); err != nil {
		t.Fatal(err)
	}
	calls(t, w, "create Thing o", "create Thing web-o.host")
}

func TestIncludeWhen(t *testing.T) {
	config := `{
		a: {includeWhen: self.spec.a, template: {` + thing + `{name: a}}},
		needs: {` + thing + `{name: needs}, spec: {x: "${children.a.metadata.name}"}},
		more: {` + thing + `{name: more}, spec: {x: "${children.needs.metadata.name}"}},
		may: {` + thing + `{name: may}, spec: {x: "${children.a.?metadata.?name.orValue('none')}"}}}`
	w := start(t, config, "{a: false}")
	if err := w.run(dsl.Create); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Thing may"}, w.names()); diff != "" {
		t.Errorf("what needs a child that is not wanted is left out (-want +got):\n%s", diff)
	}
	w.spec("{a: true}")
	if err := w.run(dsl.Update); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Thing a", "Thing may", "Thing more", "Thing needs"}, w.names()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	w.spec("{a: false}")
	var err error
	for range 4 {
		err = w.run(dsl.Update)
		w.collect()
	}
	if diff := cmp.Diff([]string{"Thing may"}, w.names()); err != nil || diff != "" {
		t.Errorf("%v; it is taken away when it is wanted no more (-want +got):\n%s", err, diff)
	}
	if x, _, _ := unstructured.NestedString(w.objects["Thing may"].live.Object, "spec", "x"); x != "none" {
		t.Errorf("a child that is not wanted is seen as %q while it is still there", x)
	}
}

func TestIncludeWhenThatCannotBeEvaluatedIsAFailure(t *testing.T) {
	w := start(t, "{a: {includeWhen: self.spec.a, template: {"+thing+"{name: a}}}}", "{}")
	err := w.run(dsl.Create)
	if want := "child a: evaluating includeWhen: self.spec.a is not set"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestAContextThatEndsIsTheError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	w := start(t, "{a: {"+thing+"{name: a}}}", "{}")
	cancel(errBroken)
	if err := w.runIn(ctx, dsl.Create); !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
	if len(w.names()) > 0 || w.said() != "" {
		t.Errorf("objects %v, condition %q", w.names(), w.said())
	}
}

func TestParametersAreThoseOfTheHandler(t *testing.T) {
	w := &world{cluster: newCluster(), t: t, params: dsl.Params{"name": "p"}}
	w.configure("{a: {" + thing + "{name: '${params.name}'}}}")
	w.spec("{}")
	if err := w.run(dsl.Create); err != nil || !slices.Equal(w.names(), []string{"Thing p"}) {
		t.Errorf("%v, objects %v", err, w.names())
	}
}

func TestWhatATemplateComesOutAs(t *testing.T) {
	tests := map[string]struct{ config, spec, want string }{
		"an object": {"{a: {template: '${self.spec.o}'}}", "{o: {" + thing + "{name: a}}}", ""},
		"text":      {"{a: {template: '${self.spec.o}'}}", "{o: secret}", "child a: the template has to give an object, and gives text"},
		"no name":   {"{a: {" + thing + "{name: '${self.spec.o}'}}}", "{o: ''}", "child a: metadata.name is missing or no text: give it a value"},
		"a number":  {"{a: {" + thing + "{name: '${self.spec.o}'}}}", "{o: 5}", "child a: metadata.name is missing or no text: give it a value"},
		"another namespace": {
			"{a: {" + thing + "{name: a, namespace: '${self.spec.o}'}}}", "{o: other}",
			"child a: an owned child is in its owner's namespace, ns, and not in other: leave the namespace out, or give the child ownership: labelled",
		},
		"another namespace, for a label": {"{a: {ownership: labelled, template: {" + thing + "{name: a, namespace: other}}}}", "{}", ""},
		"another namespace, unowned":     {"{a: {ownership: none, template: {" + thing + "{name: a, namespace: other}}}}", "{}", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := start(t, test.config, test.spec)
			err := w.run(dsl.Create)
			if got := text(err); got != test.want {
				t.Errorf("error %q, want %q", got, test.want)
			}
			if made := len(w.objects) == 1; made != (test.want == "") {
				t.Errorf("made: %v", w.names())
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestTwoThatComeOutAsOneAreNotMade(t *testing.T) {
	w := start(t, `{
		a: {`+thing+`{name: "${self.spec.x}"}},
		b: {forEach: [p, q], template: {`+thing+`{name: "${self.spec.y}"}}},
		c: {`+thing+`{name: "x${self.spec.none}"}},
		d: {`+thing+`{name: d, namespace: ns}}}`, "{x: d, y: z, none: ''}")
	err := w.run(dsl.Create)
	want := strings.Join([]string{
		"Thing ns/d: child a and child d come out as the same object: give each a name of its own",
		`Thing ns/z: child b["p"] and child b["q"] come out as the same object: give each a name of its own`,
	}, "; ")
	if text(err) != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if want := "Applied=False NameCollision: " + want; w.said() != want {
		t.Errorf("condition %q, want %q", w.said(), want)
	}
	if diff := cmp.Diff([]string{"Thing x"}, w.names()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestALaterChildDoesNotTakeAnEarlierOnesObject(t *testing.T) {
	w := start(t, `{a: {`+thing+`{name: x}}, b: {`+thing+`{name: "${children.a.metadata.name}"}}}`, "{}")
	for range 2 {
		want := "Thing ns/x: child a and child b come out as the same object: give each a name of its own"
		if err := w.run(dsl.Create); text(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	calls(t, w, "create Thing x")
}

func TestChildrenThatCannotBeReadStopOnlyWhoLooksAtThoseOfOthers(t *testing.T) {
	w := start(t, `{
		a: {`+thing+`{name: a}}, b: {`+thing+`{name: "${children.a.metadata.name}-b"}},
		c: {`+thing+`{name: "${children.elsewhere.?metadata.?name.orValue('c')}"}}}`, "{}")
	w.allErr = errBroken
	if err := w.run(dsl.Create); text(err) != "reading children: broken" {
		t.Errorf("error %v", err)
	}
	calls(t, w, "create Thing a", "create Thing a-b")
}
