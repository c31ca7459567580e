// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expiry"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/cluster/events"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// Attempted is one attempt of a handler that has ended.
type Attempted struct {
	Handler *dsl.Handler
	Cause   dsl.Cause
	// Attempt counts the attempts, this one included.
	Attempt int
	Took    time.Duration
	// Err is the attempt's error, nil for none. Trouble says more of it.
	Err     error
	Trouble *Trouble
}

// manyAtOnce is for how many handlers a reconcile makes room at once.
const manyAtOnce = 16

// Trouble is what is to be known of an attempt with an error.
type Trouble struct {
	// Before and After are the handler's record.
	Before, After progress.Record
	// Part is the error of a sub-handler that failed in the attempt, nil for none.
	Part error
	// Logged: one line of the log stands for all errors of this kind. Warned: the attempt has reported a warning of its own.
	Logged, Warned bool
}

// attempt runs a job when it is due and enters its outcome. The error is that of a reconcile that must
// end, because the process or its leadership does.
func (p *run) attempt(ctx context.Context, st State, j *Attempt) (State, error) {
	w, wait := p.postponed(st, j)
	j.Barred = w.Reason == why.Blocked && p.blocksForGood(st, w.Detail)
	if wait > 0 {
		st.Due = st.Due.Sooner(wait, queue.Due)
	}
	if !w.Reason.None() {
		st.Why = append(st.Why, w)
		return st, nil
	}
	if late := j.Record.Overdue(j.Reader.Handler, time.Now()); late != nil {
		st = p.record(st, j, late, 0)
		st.Why = append(st.Why, Why{Handler: j.Reader.ID, Cause: j.Cause, Reason: why.DeadlineOver})
		p.close(st, j)
		return st, nil
	}
	st, err := p.ensureFinalizer(ctx, st)
	if err != nil {
		return st, err
	}
	return p.call(ctx, st, j)
}

// call runs a job's code.
func (p *run) call(ctx context.Context, st State, j *Attempt) (State, error) {
	p.family.Claims.Run(j.Reader.ID, j.Record.Past())
	j.Saw = st.Look.Digest(j.Reader.View)
	span := transport.NewSpan(p.Host.Held)
	request := p.request(st, j, span)
	start := time.Now()
	j.Record = j.Record.Start(j.Reader.Handler, start)
	leave := p.Running.Enter(p.Key, j.Reader.ID)
	parts := attempt.Subhandlers{SubhandlerSettings: &p.Subhandlers, Troubles: &p.memory.Troubles, Known: j.Record.Parts}
	code := j.Reader.Handler
	if code.Machine != nil {
		code = p.Machines.Code(j, p.memory, p.Gone, p.resolve)
	}
	err := attempt.Run(expiry.Restoring(discreet(ctx, j.Reader), j.Reader.Restores()), code, parts.Around(code.Func), request, j.Record.Ends(j.Reader.Handler), span)
	request.Broke(err)
	leave()
	if ctx.Err() != nil {
		return st, ctx.Err()
	}
	if span.Lost() || !p.Host.Held(ctx) { // the handler may have failed for that alone
		return st, fmt.Errorf("running handler %s: %w", j.Reader.ID, transport.ErrNotLeading)
	}
	p.Machines.Did(j, p.memory)
	if reporter, is := request.Events.(*events.Reporter); is {
		j.Warned = reporter.Warned()
	}
	return p.outcome(ctx, st, j, request, &parts, err, time.Since(start))
}

// outcome takes what a job's code has left behind: what it wants of its object, and its error.
func (p *run) outcome(ctx context.Context, st State, j *Attempt, request *dsl.Request, parts *attempt.Subhandlers, err error, took time.Duration) (State, error) {
	counts := !attempt.Void(err) || parts.Sound || request.Patch.Finished
	if counts {
		j.Failed, j.Again = parts.Failed, request.Again
		var wrong, ends error
		if st, wrong, ends = p.merge(ctx, st, j, request.Patch); ends != nil {
			p.void(j)
			return st, ends
		}
		if err = attempt.Laid(err, wrong); wrong == nil {
			j.Record.Step, j.Record.Parts = request.Step, parts.Known
		}
	}
	if counts && p.memory.Refused[j.Reader.ID] && !p.Gone {
		var refused error
		if st, refused = p.dryRun(ctx, st, j); refused != nil {
			return p.fault(ctx, st, j, refused)
		}
	}
	p.family.Claims.Ran(j.Reader.ID, err == nil)
	st = p.record(st, j, err, took)
	p.close(st, j)
	return st, nil
}

// ensureFinalizer adds the finalizer before the first handler of an object runs. When no handler is due, the
// finalizer goes along with the reconcile's write.
func (p *run) ensureFinalizer(ctx context.Context, st State) (State, error) {
	there := slices.Contains(p.family.Base().GetFinalizers(), p.Rules.Finalizer)
	if there || p.resourceWide() || p.Gone || p.Deletion != "" || !p.wantsFinalizer(st.Draft) {
		return st, nil
	}
	marks := patch.Marks{Finalizer: p.Rules.Finalizer, Earlier: p.Rules.Earlier, Add: true}
	st, base, err := p.sendMarks(ctx, st, p.Object, marks)
	if err == nil {
		p.family.Rebase(base)
	}
	return st, err
}

// merge lays what a handler wants on the object as those after it see it. It returns what is wrong with that, and the error
// of a reconcile that must end.
func (p *run) merge(ctx context.Context, st State, j *Attempt, wants *dsl.Patch) (next State, wrong, ends error) {
	j.Offers = len(wants.Offered) > 0
	set := st.Explicit
	if j.Machine != nil {
		set = nil // of Ready, the last of several machines knows what all before it have come to
	}
	st.Explicit = append(slices.Clip(st.Explicit), wants.Conditions...)
	wants, err := p.offered(ctx, wants, set)
	if err != nil {
		return st, nil, err
	}
	made, wrong := p.resolve(st.Current, j, wants)
	if j.Wants = wants; wrong != nil || made.Empty() {
		j.Wants = made // transformations that fail, or have nothing to do, do not run again
	}
	st.Draft = st.With(made, p.generation(), p.Now)
	return st, wrong, nil
}

// offered returns what a handler wants, with the conditions that it offers where the object has conditions and no handler has
// set these, and without retiring conditions that others set.
func (p *run) offered(ctx context.Context, wants *dsl.Patch, set []metav1.Condition) (*dsl.Patch, error) {
	var err error
	if len(wants.Offered)+len(wants.Conditions) > 0 {
		wants, err = p.Writer.Conditions.Offered(ctx, wants, set)
	}
	if err == nil && len(wants.Retired) > 0 {
		wants.Retired = slices.DeleteFunc(wants.Retired, p.keepsCondition)
	}
	return wants, err
}

// record enters the outcome of an attempt into its job.
func (p *run) record(st State, j *Attempt, err error, took time.Duration) State {
	j.Ran = true
	before, now := j.Record, time.Now()
	j.Record = attempt.Note(j.Reader.Handler, before, err, now, p.namespace(err), p.Host.Unreached)
	st = p.slow(st, j, before, now)
	done := Attempted{Handler: j.Reader.Handler, Cause: j.Cause, Attempt: before.Attempts + 1, Took: took, Err: err}
	if err != nil {
		done.Trouble = &Trouble{Before: before, After: j.Record, Part: j.Failed, Logged: p.Host.Logged(err), Warned: j.Warned}
		if _, waits := attempt.Waits(err); waits {
			j.Logged = done.Trouble.Logged
		}
	}
	if st.Attempts == nil {
		st.Attempts = make([]Attempted, 0, min(len(p.Rules.Readers), manyAtOnce))
	}
	st.Attempts = append(st.Attempts, done)
	if j.Failed != nil {
		err = j.Failed // which may be for lack of a right
	}
	p.Host.Refused(p.Key, j.Reader.ID, err)
	if wait := j.Record.Waits(time.Now()); !j.Record.Done {
		st.Due = st.Due.Sooner(wait, queue.Due)
	}
	return st
}

// close enters the outcome of a job into the progress. Its handler has seen the object as it was before it
// ran, and what it changes itself is no change for it; for others that look there it is.
func (p *run) close(st State, j *Attempt) {
	j.Left = st.Look.Digest(j.Reader.View)
	var kept map[string]any
	if j.Reader.Old {
		kept = st.Look.Kept(j.Reader.View)
	}
	e := j.Entry
	e.Try = j.Record
	if j.Record.Done && j.Cause == dsl.Timer {
		e = e.RanFor(j.At)
	}
	p.ledger.Put(j.Reader, e.End(j.Reader.View, j.Left, kept))
	if j.Record.Done && !j.Record.Failed {
		p.ledger.RetryAfter(j.Reader)
	}
}

// void takes back what a handler did, as far as the progress knows: it runs again.
func (p *run) void(j *Attempt) { p.ledger.Put(j.Reader, j.Void()) }

// blocker names the first handler that this one comes after and that is not through yet, may have something to do, or failed for
// good: this one has no outcome then. It is empty where none blocks it.
func (p *run) blocker(st State, h *dsl.Handler) string {
	if len(h.After) == 0 {
		return ""
	}
	for _, r := range p.Rules.Readers {
		if slices.Contains(h.After, r.ID) && p.blocks(st, r) {
			return r.ID
		}
	}
	return ""
}

// namespace returns the namespace whose end would end the handlers of the object. It is empty where there is no error, and for a run
// over the resource as a whole.
func (p *run) namespace(err error) string {
	if err == nil || p.resourceWide() {
		return ""
	}
	return attempt.Home(p.Object)
}

// blocksForGood reports whether what comes after a handler runs no more: the handler has failed for good, and lets the object go.
func (p *run) blocksForGood(st State, handler string) bool {
	return p.Deletion != "" && slices.ContainsFunc(p.Rules.Readers, func(r progress.Handler) bool {
		if r.ID != handler {
			return false
		}
		e, j := p.ledger.Entry(r), st.Jobs.Of(r)
		return j != nil && j.Barred || e.DeleteDone(p.Deletion) && e.Try.Failed && (r.Release || e.Try.Ended)
	})
}

// blocks reports whether handlers that come after this one have to wait.
func (p *run) blocks(st State, r progress.Handler) bool {
	if j := st.Jobs.Of(r); j != nil {
		return !j.Through()
	}
	if p.filters.WasDue(r.ID) || st.isOutcomeMissing(r) {
		return true
	}
	e := p.ledger.Entry(r)
	failed := e.FailedFor != "" && p.Deletion == "" || p.Deletion != "" && e.DeleteDone(p.Deletion) && e.Try.Failed
	return failed && p.askFilters(st.Draft, r, askFor(r.Handler)).Keeps()
}

// postponed says why a job does not run in this reconcile. The reason is empty where it runs.
func (p *run) postponed(st State, j *Attempt) (w Why, wait time.Duration) {
	if now := p.paused(); now != nil {
		return Why{Handler: j.Reader.ID, Cause: j.Cause, Reason: why.Paused, Detail: now.String()}, 0
	}
	return p.early(st, j)
}

// early says why a job may not run yet: its time has not come, or it is blocked. The reason is empty where it may.
func (p *run) early(st State, j *Attempt) (w Why, wait time.Duration) {
	w = Why{Handler: j.Reader.ID, Cause: j.Cause}
	if wait := j.Record.Waits(p.Now); wait > 0 {
		w.Reason, w.Detail = why.BackOff, p.Now.Add(wait).Format(time.RFC3339)
		return w, wait
	}
	if other := p.blocker(st, j.Reader.Handler); other != "" {
		w.Reason, w.Detail = why.Blocked, other
	}
	return w, 0
}

// paused returns the pause that has begun during the reconcile, or nil.
func (p *run) paused() *pause.Pause {
	if now := p.Pauses.Around(p.Key.Namespace, p.Deletion != ""); now != nil {
		return now
	}
	if newest, found := p.Own.Get(p.Key); found && newest != p.Version && newest.GetUID() == p.Object.GetUID() {
		return p.Pauses.By(newest, p.Deletion != "")
	}
	return nil
}

// subject is what a handler and its filters are asked about in this reconcile, with the object as the draft has it.
func (p *run) subject(d Draft, r progress.Handler, c dsl.Cause, try progress.Record, children dsl.ChildReader, indexes dsl.Indexes) *dsl.Subject {
	out := &dsl.Subject{
		Object: dsl.Shown(d.Current, r.Sees), Kept: r.Sees, Prefix: p.Rules.Prefix, Handler: r.ID, Cause: c, Attempt: try.Attempts + 1, Made: p.Rules.Spec.Makes, Now: p.Now,
		Log:      p.logOf(p.Input, attempt.About{Handler: r.ID, Cause: c, Attempt: try.Attempts + 1}),
		Children: children, Related: p.related, Indexes: indexes, Outcomes: d.Look.Outcomes(), Secrets: r.Secrets,
	}
	if out.Kept == nil && !p.resourceWide() {
		out.Kept = p.Rules.Spec.Kept()
	}
	if c == dsl.Event {
		out.Event = p.memory.Event
	}
	if c != dsl.Create && !p.resourceWide() {
		attempt.Recall(out, r, p.ledger.Old(r, d.Look), d.Look)
	}
	return out
}

// request is what a handler gets for an attempt, which may write in the span.
func (p *run) request(st State, j *Attempt, span *transport.Span) *dsl.Request {
	var children dsl.Children
	if p.resourceWide() {
		children = apply.None(errNoObject)
	} else {
		children = p.family.For(span, collision.Attempt{Handler: j.Reader.ID, Try: string(j.Cause) + "/" + j.Record.View, Number: len(st.Jobs)}, &snapshot{p, st, j})
	}
	targets := apply.NoTargets(errNoObject)
	if !p.resourceWide() {
		targets = p.family.Targets(span, j.Reader.ID)
	}
	request := &dsl.Request{
		Subject: *p.subject(st.Draft, j.Reader, j.Cause, j.Record, children, p.indexes.For(j.Reader.ID, "")), Children: children, Targets: targets,
		Step: j.Record.Step, Patch: dsl.NewPatch(), Client: p.Others.For(span, others{p, j.Reader.ID}),
		Memo: p.memory.Kept(), OperatorMemo: p.Memo,
	}
	if p.resourceWide() {
		p.withoutObject(request, span)
	} else {
		request.Events = p.Observer.Events.Reporter(p.Object, j.Reader.ID, reporting{span})
	}
	return request
}

// others notes what a handler writes with its client to objects that are not its children.
type others struct {
	pass    *run
	handler string
}

// Wrote notes a write.
func (o others) Wrote(deed apply.Deed, gvr schema.GroupVersionResource, written *unstructured.Unstructured) {
	o.pass.family.WroteOther(o.handler, deed, gvr, written)
}

// Deleted notes a deletion.
func (o others) Deleted(kind string, gvr schema.GroupVersionResource, key cache.ObjectName) {
	if key == o.pass.Key && gvr == o.pass.Own.Resource().GVR {
		o.pass.deleted.Store(true)
	}
	o.pass.family.DeletedOther(o.handler, kind, gvr, key)
}

// discreet returns the context for what handlers write: answers of the API server are not quoted where one of them may read Secrets.
func discreet(ctx context.Context, readers ...progress.Handler) context.Context {
	if slices.ContainsFunc(readers, func(r progress.Handler) bool { return r.Secrets.Read }) {
		return dsl.Discreetly(ctx)
	}
	return ctx
}

// reporting is an attempt for its Events: when the process does not lead any more, it is over.
type reporting struct{ *transport.Span }

// Over reports whether the attempt may send no more Events.
func (r reporting) Over() bool { return r.Span.Over() || r.Lost() }
