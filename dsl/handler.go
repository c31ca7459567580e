// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"errors"
	"fmt"
	"regexp"
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
// an answer.
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
	// ID is unique within the resource. Progress is kept under it, so a renamed handler is a new
	// one.
	ID string
	// Causes is never empty, in the order of [Causes], with Reconcile expanded.
	Causes []Cause
	// Func is the code.
	Func Func
	// Action says for people what Func is, as in "call: foo.Announce". Empty for Go code.
	Action string
	// Fields, when there are any, are all that the handler looks at: it runs for create and resume when
	// one of them is there, for update when one changed. They may lie in status and metadata, too.
	Fields []Path
	// Reads is what its code and filters are known to read. See [Reading].
	Reads Reads
	// Sets are the fields of its object that its code is known to set, Conditions the types of the conditions.
	Sets       []Path
	Conditions []string
	// Steady: the conditions follow from what the handler looks at, so they are true of each generation in which
	// that is the same.
	Steady bool
	// Labels and Annotations must all match, or the handler does not see the object.
	Labels, Annotations []Match
	// When, when set, must hold, or the handler does not see the object.
	When Predicate
	// Retries is how often the handler is run again after failing, or Unlimited, the default.
	Retries int
	// Backoff is the wait between attempts.
	Backoff Backoff
	// Timeout ends one attempt's context. Zero means none.
	Timeout time.Duration
	// Timing, for cause [Timer], says when the handler runs.
	Timing *Timing
	// ResourceWide: the handler runs for the resource as a whole. See [Resource.Schedule].
	ResourceWide bool
	// After names handlers that must have succeeded before this one runs. It waits for one that failed
	// for good, too, and runs when that one has succeeded after all.
	After []string
	// NoFinalizer, for delete handlers: the object's deletion does not wait for the handler.
	NoFinalizer bool
	// Release, for delete handlers: when the handler fails for good, the object is let go.
	Release bool
	// NoOld: the handler does not use Request.Old and Request.Diff, so a digest is kept on the
	// object and not its essence.
	NoOld bool
	// Needs are what its code does with other resources, and with its own object beyond what the
	// engine does. Declared says that they are all: without it, nobody knows. See [Needs].
	Needs    []Need
	Declared bool

	given   []Cause
	invalid []error
}

// Option sets something of a handler where it is declared.
type Option func(*Handler)

// Retries limits how often a failing handler is run again. Without it, a handler is tried until
// it succeeds. Retries(0) means one attempt.
func Retries(n int) Option { return func(h *Handler) { h.Retries = n } }

// Timeout limits the time of one attempt. Without it an attempt takes as long as it likes: its object's
// changes wait for it, and from a minute on it is named in the log and in /readyz?verbose.
func Timeout(d time.Duration) Option { return func(h *Handler) { h.Timeout = d } }

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
				h.invalid = append(h.invalid, err)
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

// When makes the handler see only objects for which the predicate holds. Several are joined by
// and.
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

// After makes the handler wait for others of its resource, declared before it.
func After(ids ...string) Option {
	return func(h *Handler) { h.After = append(h.After, ids...) }
}

// NoFinalizer lets objects go without waiting for this delete handler. It still runs, with the
// object as it was last seen, while the process lives; a deletion during a restart is missed.
func NoFinalizer() Option { return func(h *Handler) { h.NoFinalizer = true } }

// Release lets the object go when this delete handler has failed for good. Without it, the object
// stays and says so.
func Release() Option { return func(h *Handler) { h.Release = true } }

// NoOld tells that the handler uses neither Request.Old nor Request.Diff.
func NoOld() Option { return func(h *Handler) { h.NoOld = true } }

// Described sets Handler.Action.
func Described(action string) Option { return func(h *Handler) { h.Action = action } }

// Also gives the handler causes beside those it is declared with.
func Also(causes ...Cause) Option {
	return func(h *Handler) { h.add(causes...) }
}

// On reports whether the handler runs for the cause.
func (h *Handler) On(c Cause) bool { return slices.Contains(h.Causes, c) }

// Level reports whether the handler is level-triggered: it runs for create, update and resume, so
// what it has handled need not be remembered on the object, and is not: Request.Old is nil and Diff empty.
func (h *Handler) Level() bool {
	return h.On(Create) && h.On(Update) && h.On(Resume)
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

func newHandler(id string, causes []Cause, fn Func, options []Option) *Handler {
	h := &Handler{ID: id, Causes: ExpandCauses(causes), Func: fn, Retries: Unlimited, given: causes}
	for _, set := range options {
		set(h)
	}
	h.Causes = h.around(h.Causes)
	return h
}

func (h *Handler) add(causes ...Cause) {
	h.given = append(slices.Clone(h.given), causes...)
	h.Causes = ExpandCauses(h.given)
}

var handlerID = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

func (h *Handler) faults(r *Resource, earlier map[string]bool) []error {
	out := append(slices.Clone(h.invalid), h.wrongCauses(r)...)
	add := func(format string, args ...any) { out = append(out, fmt.Errorf(format, args...)) }
	if !handlerID.MatchString(h.ID) {
		add("the id %q must be letters, digits, '-', '_' and '.', at most 63", h.ID)
	}
	if h.Retries < Unlimited || min(h.Timeout, h.Backoff.Initial, h.Backoff.Max) < 0 {
		add("retries, timeout and back-off must not be negative")
	}
	for _, need := range h.Needs {
		if err := need.fault(); err != nil {
			add("its need of %s: %w", need.Text(), err)
		}
	}
	out = append(out, h.Timing.faults()...)
	out = append(out, h.wrongWhole()...)
	if (h.NoFinalizer || h.Release) && !h.On(Delete) {
		add("finalizer options are for delete handlers")
	}
	for _, id := range h.After {
		if !earlier[id] {
			add("it comes after %q, which is not a handler declared before it", id)
		}
	}
	return out
}

// wrongWhole reports what a handler that runs for the resource as a whole cannot have.
func (h *Handler) wrongWhole() (out []error) {
	if !h.ResourceWide {
		return nil
	}
	if len(h.Causes) != 1 || len(h.Fields) > 0 || len(h.Labels)+len(h.Annotations) > 0 || h.When != nil {
		out = append(out, fmt.Errorf("it runs for the resource as a whole, so it has no cause but %s and no filters", Timer))
	}
	if len(h.After) > 0 || h.Timing != nil && h.Timing.Idle > 0 {
		out = append(out, errors.New("it runs for the resource as a whole, so it comes after no handler and knows no idle object"))
	}
	return out
}

// wrongCauses reports causes that are unknown, or that cannot come about.
func (h *Handler) wrongCauses(r *Resource) (out []error) {
	for _, c := range h.given {
		if c != Reconcile && !slices.Contains(Causes(), c) {
			out = append(out, fmt.Errorf("unknown cause %q (want one of %v)", c, CauseNames()))
		}
	}
	if len(h.Causes) == 0 {
		out = append(out, errors.New("it has no causes"))
	}
	if at := slices.IndexFunc(h.Causes, func(c Cause) bool { return c.row().alone }); at >= 0 {
		return append(out, h.wrongBeside(h.Causes[at])...)
	}
	for _, c := range h.Causes {
		given := c.row().reconcile && h.Level() // Reconcile stands for it wherever it can come about
		if lack := c.Unmet(r, h); lack != nil && !given {
			out = append(out, errors.New(lack.unmet))
		}
	}
	return out
}

// wrongBeside reports what a handler cannot have beside a cause that stands alone.
func (h *Handler) wrongBeside(c Cause) (out []error) {
	if len(h.Causes) > 1 {
		out = append(out, fmt.Errorf("it has the cause %s, beside which there are no others", c))
	}
	if len(h.Fields) > 0 {
		out = append(out, fmt.Errorf("it has the cause %s, for which no field is looked at", c))
	}
	return out
}
