// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
)

const annotation = "shop.example.com/state"

// shelf is an object with what a process remembers of its progress.
type shelf struct {
	t      *testing.T
	rules  Rules
	memory Memory
	object *unstructured.Unstructured
}

func newShelf(t *testing.T) *shelf {
	h := &dsl.Handler{ID: "deploy", Causes: []dsl.Cause{dsl.Create, dsl.Update, dsl.Delete}, Retries: dsl.Unlimited}
	view := NewView(h.View(), Own{Annotations: []string{annotation}})
	s := &shelf{t: t, rules: Rules{Handlers: []Handler{{Handler: h, View: view}}, Annotation: annotation, Stores: true}}
	s.object = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
	s.object.SetUID("u")
	s.object.SetGeneration(1)
	return s
}

func (s *shelf) reader() Handler { return s.rules.Handlers[0] }

// text sets the object's state annotation.
func (s *shelf) text(text string) { s.object.SetAnnotations(map[string]string{annotation: text}) }

func (s *shelf) snapshot() *Snapshot { return NewSnapshot(s.object.Object) }

func (s *shelf) open() *Session {
	return Open(&s.rules, &s.memory, Subject{Object: s.object, Deletion: Deletion(s.object, false), Now: time.Now()}, s.snapshot(), discard{})
}

// discard is a log that drops its lines.
type discard struct{}

func (discard) Log() logr.Logger { return logr.Discard() }

// due is what the handler is to run for.
func (s *shelf) due(l *Session) dsl.Cause {
	return l.Entry(s.reader()).Due(s.reader().Handler, l.Facts(s.reader(), s.snapshot()))
}

// run has the handler run for a cause, with an error or without.
func (s *shelf) run(l *Session, err error) {
	e := l.Entry(s.reader())
	e = e.Begin(s.due(l), l.Facts(s.reader(), s.snapshot()))
	if err != nil {
		e.Try = e.Try.Fail(s.reader().Handler, err, time.Now())
	} else {
		e.Try = e.Try.Succeed()
	}
	l.Put(s.reader(), e.End(s.reader().View, s.snapshot().Digest(s.reader().View), nil))
}

// pass is a reconcile in which the handler succeeds, and whose write does.
func (s *shelf) pass() {
	s.t.Helper()
	l := s.open()
	s.run(l, nil)
	var marks patch.Marks
	l.Save(Draft{Snapshot: s.snapshot(), Wanted: dsl.NewPatch()}, &marks)
	if marks.Annotation != annotation || marks.State == "" {
		s.t.Fatalf("what was handled is not stored: %+v", marks)
	}
	l.Keep(marks)
	s.text(marks.State)
}

// TestWhatIsKnownOfAnObject holds what a handler is to run for after it has handled an object, by what became of the
// object, and whether this process remembers it.
func TestWhatIsKnownOfAnObject(t *testing.T) {
	tests := map[string]struct {
		becomes    func(s *shelf)
		here, next dsl.Cause
	}{
		"nothing": {func(*shelf) {}, "", ""},
		"another size": {func(s *shelf) {
			s.object.Object["spec"] = map[string]any{"size": int64(2)}
			s.object.SetGeneration(2)
		}, dsl.Update, dsl.Update},
		"its annotation is taken away":         {func(s *shelf) { s.object.SetAnnotations(nil) }, "", dsl.Create},
		"its annotation is not readable":       {func(s *shelf) { s.text(bookkeeping.StateMark + "nonsense") }, "", dsl.Create},
		"its annotation is another one's copy": {func(s *shelf) { s.object.SetUID("copy") }, "", dsl.Create},
		"it is deleted": {func(s *shelf) {
			now := metav1.Now()
			s.object.SetDeletionTimestamp(&now)
		}, dsl.Delete, dsl.Delete},
	}
	for name, tt := range tests {
		for process, want := range map[string]dsl.Cause{"in the same process": tt.here, "in the next one": tt.next} {
			t.Run(name+", "+process, func(t *testing.T) {
				s := newShelf(t)
				if got := s.due(s.open()); got != dsl.Create {
					t.Fatalf("at first it is to run for %q", got)
				}
				s.pass()
				tt.becomes(s)
				if process == "in the next one" {
					s.memory = Memory{}
				}
				if got := s.due(s.open()); got != want {
					t.Errorf("it is to run for %q, want %q", got, want)
				}
			})
		}
	}
}

// TestALostAnswer holds that a text is this process's own when it sees it, also where no answer has said that it was
// written; and that it is not when it was not.
func TestALostAnswer(t *testing.T) {
	for name, arrives := range map[string]bool{"it was written": true, "it was not": false} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			l := s.open()
			s.run(l, nil)
			var marks patch.Marks
			l.Save(Draft{Snapshot: s.snapshot(), Wanted: dsl.NewPatch()}, &marks)
			l.Sending(marks)
			l.Put(s.reader(), Entry{}) // the reconcile breaks off, and what was wanted is void
			l.Abandon()
			if arrives {
				s.text(marks.State)
			}
			if got, want := s.due(s.open()), map[bool]dsl.Cause{true: "", false: dsl.Create}[arrives]; got != want {
				t.Errorf("it is to run for %q, want %q", got, want)
			}
		})
	}
}

// TestWhatIsKeptInMemoryAlone holds when progress is not stored although it says something new, and for how long.
func TestWhatIsKeptInMemoryAlone(t *testing.T) {
	soon, late := time.Second, time.Minute
	size := dsl.NewPatch()
	size.Set("spec.size", int64(3))
	tests := map[string]struct {
		retry     time.Duration // in which the handler is tried again, zero when it has succeeded
		wanted    *dsl.Patch
		finalizer bool
		stored    bool
	}{
		"a success":                                  {0, dsl.NewPatch(), false, true},
		"a retry that is due soon":                   {soon, dsl.NewPatch(), false, false},
		"one that is due late":                       {late, dsl.NewPatch(), false, true},
		"one that is due soon, beside another write": {soon, size, false, true},
		"one that is due soon, beside the finalizer": {soon, dsl.NewPatch(), true, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf(t)
				l := s.open()
				d := Draft{Snapshot: s.snapshot(), Wanted: tt.wanted, Finalizer: tt.finalizer, Retries: tt.retry > 0, Again: time.Now().Add(tt.retry)}
				if tt.retry > 0 {
					s.run(l, dsl.Temporary(errors.New("no route"), tt.retry))
				} else {
					s.run(l, nil)
				}
				var marks patch.Marks
				l.Save(d, &marks)
				if stored := marks.Annotation != ""; stored != tt.stored {
					t.Errorf("it is stored: %v, want %v", stored, tt.stored)
				}
			})
		})
	}
}

// TestASuccessBesideARetry holds that what a handler has done is stored after ten seconds at most, while another one is
// tried again and again.
func TestASuccessBesideARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		var stored time.Duration
		for begun := time.Now(); ; time.Sleep(3 * time.Second) {
			l := s.open()
			if s.due(l) != "" {
				s.run(l, nil)
			}
			var marks patch.Marks
			wait := l.Save(Draft{Snapshot: s.snapshot(), Wanted: dsl.NewPatch(), Retries: true, Again: time.Now().Add(time.Second)}, &marks)
			if stored = time.Since(begun); marks.Annotation != "" {
				break
			}
			if wait <= 0 || wait+stored > inMemory {
				t.Fatalf("after %s it may wait for %s", stored, wait)
			}
			l.Keep(marks)
		}
		if stored < inMemory || stored > inMemory+3*time.Second {
			t.Errorf("it was stored after %s", stored)
		}
	})
}

// TestAMomentOfDeletion holds that a deletion is one, whatever moves its timestamp.
func TestAMomentOfDeletion(t *testing.T) {
	at := func(second int, grace int64) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		when := metav1.NewTime(time.Date(2030, 1, 1, 12, 0, second, 0, time.UTC))
		o.SetDeletionTimestamp(&when)
		o.SetDeletionGracePeriodSeconds(&grace)
		return o
	}
	if a, b := Deletion(at(40, 30), false), Deletion(at(15, 5), false); a != b {
		t.Errorf("with a shorter grace period it is another deletion: %s, %s", a, b)
	}
	if a, b := Deletion(at(40, 30), false), Deletion(at(50, 30), false); a == b {
		t.Errorf("ten seconds later it is the same deletion: %s", a)
	}
	bare := &unstructured.Unstructured{Object: map[string]any{}}
	bare.SetUID(types.UID("u"))
	if alive, gone := Deletion(bare, false), Deletion(bare, true); alive != "" || gone == "" {
		t.Errorf("of a living object it is %q, of one that is gone %q", alive, gone)
	}
	s := newShelf(t)
	s.memory = Memory{known: true, rest: &rest{deletion: Deletion(at(40, 30), false)}, book: Progress{}.With("deploy", Entry{
		Deletion: Deletion(at(40, 30), false), Try: Record{Cause: dsl.Delete, Done: true},
	})}
	moved := at(55, 30)
	s.object.SetDeletionTimestamp(moved.GetDeletionTimestamp())
	s.object.SetDeletionGracePeriodSeconds(moved.GetDeletionGracePeriodSeconds())
	if got := s.due(s.open()); got != "" {
		t.Errorf("a process that saw the deletion begin runs for %q when its moment moves", got)
	}
}

func TestAPassOfManyHandlersCopiesTheBookOnce(t *testing.T) {
	s := newShelf(t)
	one := s.reader()
	for n := range 199 {
		h := *one.Handler
		h.ID = fmt.Sprintf("other-%d", n)
		s.rules.Handlers = append(s.rules.Handlers, Handler{Handler: &h, View: one.View})
	}
	handle := func(l *Session, digest string) {
		for _, r := range s.rules.Handlers {
			e := l.Entry(r)
			e.Handled = digest
			l.Put(r, e)
			l.RetryAfter(r)
		}
	}
	l := s.open()
	handle(l, "a")
	l.Keep(patch.Marks{})
	kept := s.memory.book
	runs := 0
	if got := testing.AllocsPerRun(1, func() { runs++; handle(l, fmt.Sprint("b", runs)) }); got > 10 {
		t.Errorf("%v allocations for the entries of 200 handlers, want few more than one copy needs", got)
	}
	for _, r := range s.rules.Handlers {
		if e, _ := kept.Entry(r.ID); e.Handled != "a" {
			t.Fatalf("what is remembered of %s changed to %q before the pass ended", r.ID, e.Handled)
		}
	}
}
