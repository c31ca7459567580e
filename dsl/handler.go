// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Func is the code of a handler. All handlers have this signature.
//
// It must be idempotent: it runs at least once, and again after a crash before its success was recorded. Its
// context ends at the handler's timeout, at shutdown and when leadership is lost; later writes with it are refused.
// The package comment says what the returned error means.
type Func func(ctx context.Context, r *Request) error

// Predicate is a handler's own filter. It must be quick, and must not change anything. An error is logged, and the
// handler does not run. It is called again after the handler's back-off; after a [Permanent] error, when something
// changes. For a delete handler the object has the operator's finalizer meanwhile, and its deletion waits.
type Predicate func(s *Subject) (bool, error)

// Backoff is the wait between attempts. It doubles from Initial to Max, with up to a fifth of jitter.
type Backoff struct {
	// Initial defaults to 1 s, Max to 5 min.
	Initial, Max time.Duration
}

// The defaults of [Backoff].
const (
	DefaultBackoffInitial = time.Second
	DefaultBackoffMax     = 5 * time.Minute
)

// Unlimited is the value of Handler.Retries for a handler that is retried until it succeeds, and of a limit that bounds
// nothing.
const Unlimited = -1

// Handler is user code or a stock action, with its properties for the engine.
type Handler struct {
	// ID is unique within the resource. Progress and children are kept under it. A handler with another ID is
	// therefore a new handler, unless Was has the old one.
	ID string
	// Was are the handler's ids in earlier versions. Progress and children under them belong to this handler.
	Was []string
	// Causes must not be empty. When the handler is added, Reconcile is expanded, and they are sorted as in
	// [Causes].
	Causes []Cause
	// Func is the code; nil for a daemon and a machine.
	Func Func
	// Daemon, when set, makes the handler a daemon. Its only cause is [Running].
	Daemon *Daemon
	// Machine, when set, makes the handler a state machine. Func is nil then.
	Machine *Machine
	// Admission, when set, makes the handler decide about requests before objects are stored. It has no causes, and Func is
	// nil. See [Resource.Validate].
	Admission *Admission
	// Fields, when set, limit the handler's view to these fields: it runs for create and resume when one of them
	// exists, and for update when one has changed. Fields in status and metadata are allowed, too.
	Fields []Path
	// Makers are the names under which the code makes children: the handler's id, or the id, a dot and the name of
	// a step. Children of a name that no handler has are pruned. Nil means that the names are not known; see
	// [Makes].
	Makers []string
	// Labels and Annotations must all match, or the handler ignores the object.
	Labels, Annotations []Match
	// When, when set, must hold for the handler to run. While it does not, its children stay as they are.
	When Predicate
	// Retries is how often the handler is retried after a failure, or Unlimited, the default.
	Retries int
	// Backoff is the wait between attempts.
	Backoff Backoff
	// Errors says what an error leads to that is neither [Temporary] nor [Permanent]. Defaults to ErrorsRetry.
	Errors ErrorPolicy
	// Timeout limits one attempt by its context. Zero means no limit.
	Timeout time.Duration
	// Deadline limits the time of all attempts of one cycle, from the beginning of the first, including the waits
	// between them and for other objects. A cycle is the work for one cause and one state of the view. Zero means
	// no limit.
	Deadline time.Duration
	// Timing, for cause [Timer], says when the handler runs.
	Timing *Timing
	// Delay, for timers and daemons, is the time before the first run. Nil means no delay for a daemon, and for a
	// timer the first run of Timing.
	Delay *Delay
	// ResourceWide: the handler runs for the resource as a whole. See [Resource.Schedule].
	ResourceWide bool
	// After names handlers that must have succeeded before this one runs. When one of them has failed for good,
	// this handler waits for it to succeed after all.
	After []string
	// NoFinalizer, for delete handlers and daemons: the object's deletion does not wait for the handler.
	NoFinalizer bool
	// Release, for delete handlers: when the handler has failed for good, the finalizer is removed all the same.
	Release bool
	// Deleted, for resume handlers: the handler also runs for an object that is being deleted.
	Deleted bool
	// NoOld: the handler uses neither Request.Old nor Request.Diff. The engine then keeps a digest on the object
	// instead of the essence.
	NoOld bool
	// Reads, when not nil, are the fields of the object that the code and filters read, besides the metadata. See
	// [Reads].
	Reads []Path
	// Needs are the rights that the code needs on other resources, and on its own object beyond the engine's own.
	// Declared says that Needs is complete. See [Needs].
	Needs    []Need
	Declared bool
	// Known is what was found out about the code. Authors in Go leave it empty.
	Known Known

	of      *Resource   // nil until the handler is added
	sees    *shape.Kept // see Sees
	given   []Cause
	invalid []Fault     // faults of options
	whens   []Predicate // those that When joins, for Explain
}

// Option sets an option of a handler where the handler is declared.
type Option func(*Handler)

// Retries limits how often a failing handler is retried. By default it is retried until it succeeds. Retries(0)
// means one attempt.
func Retries(n int) Option { return func(h *Handler) { h.Retries = n } }

// Errors sets what the handler's errors lead to. By default they are retried.
func Errors(policy ErrorPolicy) Option { return func(h *Handler) { h.Errors = policy } }

// Timeout limits the time of one attempt. By default there is no limit: changes of the object wait for the attempt.
// After a minute, the log and /readyz?verbose name the handler.
func Timeout(d time.Duration) Option { return func(h *Handler) { h.Timeout = d } }

// Deadline limits the time of all attempts together, from the beginning of the first, including the waits between
// them. The handler fails for good as soon as another attempt could not begin before the deadline; the context of a
// running attempt ends at the deadline. Where progress is stored on the object, the deadline also holds after a
// restart; a level-triggered handler starts over in each process. It also starts over when something changes that
// the handler looks at.
func Deadline(d time.Duration) Option { return func(h *Handler) { h.Deadline = d } }

// WithBackoff sets the wait between attempts. Zero values keep the defaults.
func WithBackoff(initial, most time.Duration) Option {
	return func(h *Handler) { h.Backoff = Backoff{Initial: initial, Max: most} }
}

// Field limits the handler's view to these fields and those of earlier Field options. See [ParsePath] for the form
// of paths, and Handler.Fields for the meaning.
func Field(paths ...string) Option {
	return func(h *Handler) {
		for _, text := range paths {
			path, err := ParsePath(text)
			if err != nil {
				h.invalid = append(h.invalid, Fault{Place: Place{Field: "field"}, Err: err})
				continue
			}
			h.Fields = append(h.Fields, path)
		}
	}
}

// Label limits the handler to objects with this label.
func Label(key, value string) Option {
	return func(h *Handler) { h.Labels = append(h.Labels, Match{Key: key, Value: value}) }
}

// LabelExists limits the handler to objects that have the label.
func LabelExists(key string) Option {
	return func(h *Handler) { h.Labels = append(h.Labels, Match{Key: key, Op: Exists}) }
}

// LabelAbsent limits the handler to objects that do not have the label.
func LabelAbsent(key string) Option {
	return func(h *Handler) { h.Labels = append(h.Labels, Match{Key: key, Op: Absent}) }
}

// Annotation limits the handler to objects with this annotation.
func Annotation(key, value string) Option {
	return func(h *Handler) { h.Annotations = append(h.Annotations, Match{Key: key, Value: value}) }
}

// AnnotationExists limits the handler to objects that have the annotation.
func AnnotationExists(key string) Option {
	return func(h *Handler) { h.Annotations = append(h.Annotations, Match{Key: key, Op: Exists}) }
}

// AnnotationAbsent limits the handler to objects that do not have the annotation.
func AnnotationAbsent(key string) Option {
	return func(h *Handler) { h.Annotations = append(h.Annotations, Match{Key: key, Op: Absent}) }
}

// When lets the handler run only while the predicate holds. Until then its children stay as they are, and drift is
// not reverted. Several predicates must all hold. Changes in the meantime are not lost: the handler runs when the
// predicate holds. The change that makes it hold runs a handler of creates or updates, too. To act on a single change from
// one value to another, use an if in the handler, which runs for each change.
func When(p Predicate) Option {
	return func(h *Handler) {
		earlier := h.When
		if earlier != nil && len(h.whens) == 0 {
			h.whens = append(h.whens, earlier)
		}
		h.whens = append(h.whens, p)
		h.When = func(s *Subject) (bool, error) {
			if earlier != nil {
				if ok, err := earlier(s); err != nil || !ok {
					return false, err
				}
			}
			return p(s)
		}
	}
}

// Was names earlier ids of the handler. Their children and their progress then belong to this handler.
func Was(ids ...string) Option {
	return func(h *Handler) { h.Was = append(h.Was, ids...) }
}

// Makes names the makers of the code's children; see [ChildSpec].Handler. Makes() without names says that the code
// makes no named children. When all handlers of a resource either have this option, or need no right to create
// objects, children whose maker no longer exists are pruned. For YAML the makers are known.
func Makes(names ...string) Option {
	return func(h *Handler) { h.Makers = append([]string{}, names...) }
}

// After makes the handler wait for handlers of its resource that are declared before it.
func After(ids ...string) Option {
	return func(h *Handler) { h.After = append(h.After, ids...) }
}

// NoFinalizer lets objects be deleted without waiting for this delete handler or daemon. A delete handler still
// runs, with the last known object, while the process lives. It misses deletions during a restart.
func NoFinalizer() Option { return func(h *Handler) { h.NoFinalizer = true } }

// Release removes the finalizer when this delete handler has failed for good. By default the object stays, and says
// so.
func Release() Option { return func(h *Handler) { h.Release = true } }

// Deleted makes a resume handler also run for an object that is being deleted, for example to rebuild in memory
// what a delete handler needs. The deletion does not wait for it. It never runs for an object that is gone.
func Deleted() Option { return func(h *Handler) { h.Deleted = true } }

// NoOld declares that the handler uses neither Request.Old nor Request.Diff.
func NoOld() Option { return func(h *Handler) { h.NoOld = true } }

// On reports whether the handler has the cause.
func (h *Handler) On(c Cause) bool { return slices.Contains(h.Causes, c) }

// Level reports whether the handler is level-triggered: it runs for create, update and resume. The engine does not
// store what such a handler has handled, so Request.Old is nil and Diff is empty.
func (h *Handler) Level() bool {
	return h.On(Create) && h.On(Update) && h.On(Resume) || h.On(Reconcile) // before the handler is added
}

// Restores reports whether the handler creates missing children again. It does not if it runs only for creations, changes of
// fields that it names, times and deletions, or if it is a daemon.
func (h *Handler) Restores() bool {
	return slices.ContainsFunc(h.Causes, func(c Cause) bool {
		switch c {
		case Create, Delete, Timer, Running:
			return false
		case Update:
			return len(h.Fields) == 0
		}
		return true
	})
}

// TakesAway reports whether the handler runs for deletions to take its children away, and for nothing else: its author has not
// asked for deletions. When does not keep it from that.
func (h *Handler) TakesAway() bool {
	return slices.Contains(h.Known.Brings, Delete) && !slices.Contains(h.given, Delete)
}

// Stores reports whether the engine stores on objects what the handler has handled. For a level-triggered handler
// it does not: [Resume] makes up for that.
func (h *Handler) Stores() bool { return !h.Level() && (h.On(Create) || h.On(Update)) }

// AtTime reports whether the handler runs at a time that is computed from the object; see Timing.At.
func (h *Handler) AtTime() bool { return h.Timing != nil && h.Timing.At != nil }

// Marks reports whether the engine stores something of the handler on objects that live: what it has handled, or the
// time for which it ran.
func (h *Handler) Marks() bool { return h.Stores() || h.AtTime() }

// settle computes the properties that follow from the declaration.
func (h *Handler) settle() {
	h.given, h.sees = h.Causes, h.limited()
	if h.Daemon != nil {
		h.Causes = []Cause{Running}
		return
	}
	if h.Machine != nil {
		h.Machine.settle(&h.Known)
	}
	h.Causes = h.around(expandCauses(slices.Concat(h.given, h.Known.Brings)))
	if t := h.Timing; t != nil && t.Cron != "" {
		t.schedule, _ = parseCron(t.Cron, t.TimeZone) // Validate reports the error
	}
}

// MatchOp is the comparison of a [Match].
type MatchOp int

// The comparisons of labels and annotations.
const (
	// Equals matches when the key has exactly the value.
	Equals MatchOp = iota
	// Exists matches when the key exists.
	Exists
	// Absent matches when the key does not exist.
	Absent
)

// Match is a condition on one label or annotation.
type Match struct {
	Key   string
	Op    MatchOp
	Value string
}

// Matches reports whether a set of labels or annotations fulfils m.
func (m Match) Matches(set map[string]string) bool {
	value, found := set[m.Key]
	switch m.Op {
	case Exists:
		return found
	case Absent:
		return !found
	default:
		return found && value == m.Value
	}
}
