// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"slices"
	"time"
)

// Func is a handler's code: the only signature there is.
//
// It must be idempotent: it runs at least once for what it handles, and again after a crash that
// came before its success was recorded. The context ends at the handler's timeout, at shutdown
// and when leadership is lost; after that no write made with it leaves the process. See the
// package comment for what the returned error means.
type Func func(ctx context.Context, r *Request) error

// Predicate is a handler's own filter. It must be quick, and only reads. An error is logged, and means
// that the handler does not see the object; the deletion of one that has the operator's finalizer is held until there is
// an answer. It is asked again after the handler's back-off, and after a [Permanent] error when something changes.
type Predicate func(s *Subject) (bool, error)

// Backoff is the wait between attempts: it doubles from Initial to Max, each with up to a fifth
// of jitter.
type Backoff struct {
	// Initial defaults to 1 s, Max to 5 min.
	Initial, Max time.Duration
}

// The defaults of [Backoff].
const (
	DefaultBackoffInitial = time.Second
	DefaultBackoffMax     = 5 * time.Minute
)

// Unlimited is Handler.Retries of a handler that is tried until it succeeds.
const Unlimited = -1

// Handler is user code or a stock action with what the engine must know to run it.
type Handler struct {
	// ID is unique within the resource. Progress and children are kept under it, so a renamed handler is a new
	// one, but for what Was says.
	ID string
	// Was are ids that the handler had in earlier versions: what is kept under them is its own.
	Was []string
	// Causes is never empty, in the order of [Causes], with Reconcile expanded once the handler is added.
	Causes []Cause
	// Brings are causes that its code needs beside those.
	Brings []Cause
	// Func is the code; nil for a daemon and a machine.
	Func Func
	// Daemon, when set, makes the handler one that runs all the time, and for no other cause than [Running].
	Daemon *Daemon
	// Machine, when set, makes the handler a state machine; Func is nil then.
	Machine *Machine
	// Action says for people what Func is, as in "call: foo.Announce". Empty for Go code.
	Action string
	// Fields, when there are any, are all that the handler looks at: it runs for create and resume when
	// one of them is there, for update when one changed. They may lie in status and metadata, too.
	Fields []Path
	// Reads is what its code and filters are known to read. A level-triggered handler that looks at nothing
	// else runs when that changes, and not otherwise; another one also runs when what it reads of status and
	// of the metadata changes. It says nothing of handlers that are not level-triggered, and less than Fields.
	Reads Reads
	// Makers are the names under which its code makes children, each its id or, behind a dot, a step of it. A child of
	// one that no handler has is left behind, and taken away. Nil means that nobody knows; see [Makes].
	Makers []string
	// Gated are those of Makers whose step has a filter of its own: while that is false its children stay as they are.
	Gated []string
	// Withdraws: its children are taken away when Labels or Annotations do not match the object any more.
	Withdraws bool
	// Sets are the fields of its object that its code is known to set, Conditions the types of the conditions.
	Sets       []Path
	Conditions []string
	// Steady: the conditions follow from what the handler looks at, so they are true of each generation in which
	// that is the same.
	Steady bool
	// Labels and Annotations must all match, or the handler does not see the object.
	Labels, Annotations []Match
	// When, when set, must hold, or the handler does not act: its children stay as they are.
	When Predicate
	// Filtered, when set, runs instead of Func while When of a level-triggered handler is false. It says so in conditions of
	// the object, and changes nothing else.
	Filtered func(s *Subject, says *Patch)
	// Retries is how often the handler is run again after failing, or Unlimited, the default.
	Retries int
	// Backoff is the wait between attempts.
	Backoff Backoff
	// Errors says what becomes of an error that is neither [Temporary] nor [Permanent]. Defaults to ErrorsRetry.
	Errors ErrorPolicy
	// Timeout ends one attempt's context. Zero means none.
	Timeout time.Duration
	// Deadline is the time that all attempts of one cycle have together, from the beginning of the first on: waits between
	// them and for others count. A cycle is what the handler is to do for one cause and one state of its view. Zero means none.
	Deadline time.Duration
	// Timing, for cause [Timer], says when the handler runs.
	Timing *Timing
	// Delay, for timers and daemons, is the time before the first run. Nil means that there is none for a daemon, and what
	// Timing says for a timer.
	Delay *Delay
	// ResourceWide: the handler runs for the resource as a whole. See [Resource.Schedule].
	ResourceWide bool
	// After names handlers that must have succeeded before this one runs. It waits for one that failed
	// for good, too, and runs when that one has succeeded after all.
	After []string
	// NoFinalizer, for delete handlers and daemons: the object's deletion does not wait for the handler.
	NoFinalizer bool
	// Release, for delete handlers: when the handler fails for good, the object is let go.
	Release bool
	// Deleted, for resume handlers: the handler runs for an object that is being deleted, too.
	Deleted bool
	// NoOld: the handler does not use Request.Old and Request.Diff, so a digest is kept on the
	// object and not its essence.
	NoOld bool
	// Needs are what its code does with other resources, and with its own object beyond what the
	// engine does. Declared says that Needs has all of them; without it, there may be more. See [Needs].
	Needs    []Need
	Declared bool

	of      *Resource // nil for one that is not added yet
	given   []Cause
	invalid []Fault // what options could not read
}

// Option sets something of a handler where it is declared.
type Option func(*Handler)

// Retries limits how often a failing handler is run again. Without it, a handler is tried until
// it succeeds. Retries(0) means one attempt.
func Retries(n int) Option { return func(h *Handler) { h.Retries = n } }

// Errors sets what becomes of the handler's errors. Without it, they are tried again.
func Errors(policy ErrorPolicy) Option { return func(h *Handler) { h.Errors = policy } }

// Timeout limits the time of one attempt. Without it an attempt takes as long as it likes: its object's
// changes wait for it, and from a minute on it is named in the log and in /readyz?verbose.
func Timeout(d time.Duration) Option { return func(h *Handler) { h.Timeout = d } }

// Deadline limits the time of all attempts together, from the beginning of the first on, with the waits between them. The
// handler fails for good as soon as no other attempt could begin within it, and the context of one that runs ends with it.
// Where progress is kept on the object, so is the time of the first attempt, and a restart gives no more; a level-triggered
// handler begins anew in each process. A change of what the handler looks at begins anew, too.
func Deadline(d time.Duration) Option { return func(h *Handler) { h.Deadline = d } }

// WithBackoff sets the wait between attempts. Zero values keep the defaults.
func WithBackoff(initial, most time.Duration) Option {
	return func(h *Handler) { h.Backoff = Backoff{Initial: initial, Max: most} }
}

// Field makes the handler look at these fields alone, and at those that were named before; see [ParsePath]
// for their form and Handler.Fields for what it means.
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

// Label makes the handler see only objects with this label.
func Label(key, value string) Option {
	return func(h *Handler) { h.Labels = append(h.Labels, Match{Key: key, Value: value}) }
}

// LabelExists makes the handler see only objects that have the label.
func LabelExists(key string) Option {
	return func(h *Handler) { h.Labels = append(h.Labels, Match{Key: key, Op: Exists}) }
}

// LabelAbsent makes the handler see only objects that do not have the label.
func LabelAbsent(key string) Option {
	return func(h *Handler) { h.Labels = append(h.Labels, Match{Key: key, Op: Absent}) }
}

// Annotation makes the handler see only objects with this annotation.
func Annotation(key, value string) Option {
	return func(h *Handler) { h.Annotations = append(h.Annotations, Match{Key: key, Value: value}) }
}

// AnnotationExists makes the handler see only objects that have the annotation.
func AnnotationExists(key string) Option {
	return func(h *Handler) { h.Annotations = append(h.Annotations, Match{Key: key, Op: Exists}) }
}

// AnnotationAbsent makes the handler see only objects that do not have the annotation.
func AnnotationAbsent(key string) Option {
	return func(h *Handler) { h.Annotations = append(h.Annotations, Match{Key: key, Op: Absent}) }
}

// When lets the handler act only while the predicate holds. Until then its children stay as they are, and are not put back.
// Several predicates are joined by and. What changes meanwhile is kept in mind for when it holds, so a change from one value
// to another is for an if in the handler, which is asked about each.
func When(p Predicate) Option {
	return func(h *Handler) {
		earlier := h.When
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

// Was tells which ids the handler had before: its children are kept under the new one, and what it has handled counts.
func Was(ids ...string) Option {
	return func(h *Handler) { h.Was = append(h.Was, ids...) }
}

// Makes tells under which names its code makes children, in [ChildSpec].Handler: without any, it makes none with names.
// Where all handlers of a resource tell that, or that they need no right to create anything, children of a name that none
// has any more are taken away. What the configuration says of handlers in YAML is known.
func Makes(names ...string) Option {
	return func(h *Handler) { h.Makers = append([]string{}, names...) }
}

// After makes the handler wait for others of its resource, declared before it.
func After(ids ...string) Option {
	return func(h *Handler) { h.After = append(h.After, ids...) }
}

// NoFinalizer lets objects go without waiting for this delete handler, or this daemon. A delete handler still runs, with
// the object as it was last seen, while the process lives; a deletion during a restart is missed.
func NoFinalizer() Option { return func(h *Handler) { h.NoFinalizer = true } }

// Release lets the object go when this delete handler has failed for good. Without it, the object
// stays and says so.
func Release() Option { return func(h *Handler) { h.Release = true } }

// Deleted makes a resume handler run for an object that is being deleted, too, as when it takes up in memory what a delete
// handler goes on with. The deletion does not wait for it, and it never runs for one that is gone.
func Deleted() Option { return func(h *Handler) { h.Deleted = true } }

// NoOld tells that the handler uses neither Request.Old nor Request.Diff.
func NoOld() Option { return func(h *Handler) { h.NoOld = true } }

// On reports whether the handler runs for the cause.
func (h *Handler) On(c Cause) bool { return slices.Contains(h.Causes, c) }

// Level reports whether the handler is level-triggered: it runs for create, update and resume, so
// what it has handled need not be remembered on the object, and is not: Request.Old is nil and Diff empty.
func (h *Handler) Level() bool {
	return h.On(Create) && h.On(Update) && h.On(Resume) || h.On(Reconcile) // of one that is not added yet
}

// Stores reports whether what the handler has handled is kept on its objects. Of a level-triggered one it is not:
// [Resume] does the same for it.
func (h *Handler) Stores() bool { return !h.Level() && (h.On(Create) || h.On(Update)) }

// LooksPast reports whether the handler must know more of what it handled last than the generation, which
// status.observedGeneration tells.
func (h *Handler) LooksPast() bool {
	spec := len(h.Fields) == 1 && slices.Equal(h.Fields[0], Path{"spec"})
	return h.Stores() && h.On(Update) && (!spec || !h.NoOld)
}

// settle works out what follows from what was declared.
func (h *Handler) settle() {
	h.given = h.Causes
	if h.Daemon != nil {
		h.Causes = []Cause{Running}
		return
	}
	if h.Machine != nil {
		h.Machine.settle(h)
	}
	h.Causes = h.around(expandCauses(slices.Concat(h.given, h.Brings)))
	if t := h.Timing; t != nil && t.Cron != "" {
		t.schedule, _ = parseCron(t.Cron, t.TimeZone) // what is wrong with it, Validate tells
	}
}

// MatchOp says how a [Match] compares.
type MatchOp int

// The ways to compare a label or annotation.
const (
	// Equals wants the key to be there with exactly the value.
	Equals MatchOp = iota
	// Exists wants the key to be there.
	Exists
	// Absent wants the key not to be there.
	Absent
)

// Match is a condition on one label or annotation.
type Match struct {
	Key   string
	Op    MatchOp
	Value string
}

// Matches reports whether set, an object's labels or annotations, fulfils m.
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
