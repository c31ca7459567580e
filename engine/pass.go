// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cause"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/progress"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// pass is one run over one object. What it works out is kept only when its write has succeeded;
// otherwise the next pass begins from the same facts.
type pass struct {
	r      *resource
	key    cache.ObjectName
	object *unstructured.Unstructured
	gone   bool
	// whole: the pass is over the resource as a whole, and object has no more than its kind.
	whole bool
	// generation: what was handled is kept in status.observedGeneration.
	generation bool
	memory     *memory
	now        time.Time

	essence map[string]any
	text    string // the state annotation as the object has it
	facts   cause.Facts
	state   progress.State
	records map[string]progress.Record
	pending map[string]dsl.Cause

	// behind: a handler that is done has not seen what this pass itself changes.
	behind  bool
	mu      sync.Mutex // guards awaits, content, applied and memory.settled: a handler may use goroutines
	patch   *dsl.Patch
	jobs    []*job
	awaits  []await
	content uint32 // tells what was written from other things; see breaker
	applied map[childID]*unstructured.Unstructured
	ties    enrolment
	next    due
	resync  bool
	// ticks are the object's timers as this pass leaves them, nil when it has none.
	ticks []tick
	// answers are what handlers' filters have said in this pass.
	answers map[question]answer
	// held: a handler keeps the object from being deleted, and will not let it go by itself.
	held bool
	// unsure: whether a handler that holds the object sees it cannot be told.
	unsure bool
	// kin is what this pass sees of related objects; related: that is news.
	kin     []kin
	related bool
	around  *around
}

// pass handles one key once. It reads, decides, runs handlers, writes, and says when the key is
// due next.
func (r *resource) pass(ctx context.Context, key cache.ObjectName) (due, error) {
	if h := r.scheduled(key); h != nil {
		return r.wholePass(ctx, key, h)
	}
	n := r.take(key)
	left, next, err := r.seeOff(ctx, key, &n)
	if err != nil {
		r.keep(key, n.memory, left)
		r.again(key, n)
		return due{}, err
	}
	current := n.memory.caughtUp() || r.recall(ctx, n.memory) // asked before the read, which is then no older than that
	object, err := r.read(ctx, key)
	if err != nil {
		r.keep(key, n.memory, left)
		r.again(key, n)
		return due{}, err
	}
	if object == nil {
		r.forget(key, left)
		r.rest(key, time.Time{})
		if len(left) == 0 { // what is left may come back
			r.unsubscribe(key)
		}
		return next, nil
	}
	m := n.memory
	if m == nil || m.uid != object.GetUID() {
		m, current = newMemory(object.GetUID()), true
	}
	r.keep(key, m, left)
	if !current {
		r.again(key, n)
		return next, r.park(key, m, n.child)
	}
	p := r.newPass(key, object, m)
	if rest := m.breaker.rests(p.now); rest > 0 && !p.facts.Deleting {
		r.again(key, n)
		return next.sooner(rest, queue.Due), nil
	}
	p.next = next
	if err := p.run(ctx, n); err != nil {
		if len(r.relations) > 0 {
			n.related = &relatedNews{all: true} // what the object asks for now may be noted, and not handled
		}
		r.again(key, n)
		return due{}, err
	}
	return p.next, nil
}

// run is the pass once its object is known: plan, run what is due, write, remember.
func (p *pass) run(ctx context.Context, n news) error {
	p.facts.Fresh = n.fresh
	p.tie()
	p.plan(n)
	base, err := p.secure(ctx)
	if errors.Is(err, patch.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	p.ties.base = base
	for _, j := range p.jobs {
		if err := p.attempt(ctx, j); err != nil {
			return err
		}
	}
	marks := p.settle()
	base = p.trim(&marks)
	if err := p.write(ctx, base, marks); err != nil && !errors.Is(err, patch.ErrGone) {
		p.refused(err)
		return err
	}
	p.remember(marks)
	return nil
}

// read returns the object, nil when it is gone.
func (r *resource) read(ctx context.Context, key cache.ObjectName) (*unstructured.Unstructured, error) {
	cached, found := r.own.object(key)
	if !found {
		return nil, nil
	}
	if r.spec.Cache != dsl.CacheLive {
		return cached.Tree(), nil
	}
	object, err := r.engine.reader(ctx, r.own.resource().GVR, key)
	if err != nil {
		return nil, fmt.Errorf("reading object: %w", err)
	}
	return object, nil
}

// newPass gathers the facts.
func (r *resource) newPass(key cache.ObjectName, object *unstructured.Unstructured, m *memory) *pass {
	p := &pass{r: r, key: key, object: object, memory: m, now: time.Now(), patch: dsl.NewPatch(), applied: map[childID]*unstructured.Unstructured{}}
	p.around = &around{pass: p}
	p.ties.begin(p)
	p.essence = cause.Essence(object.Object)
	p.text = object.GetAnnotations()[r.engine.op.StateAnnotation()]
	p.state = p.load()
	p.records, p.pending = m.arisen()
	p.facts = cause.Facts{
		Deleting: object.GetDeletionTimestamp() != nil,
		Handled:  p.state.Handled, Base: p.state.Base,
		Now:   cause.ViewsOf(p.essence, r.rules.views),
		First: !m.seen, Stores: r.rules.stores,
	}
	for view, digest := range p.facts.Now {
		if _, known := p.state.Base[view]; p.state.Handled && !known {
			p.state.Base[view] = digest // who is new to a handled object begins with it as it is
		}
	}
	if p.generation = r.own.keepsGeneration(); p.generation {
		p.byGeneration()
	}
	return p
}

// load returns the state as it was left: from memory when the object carries what was stored
// last, for memory knows more; otherwise from the object.
func (p *pass) load() progress.State {
	m := p.memory
	state, known := m.state, m.known && m.text == p.text
	if !known || m.packed {
		stored, err := progress.Parse(p.text)
		switch {
		case known:
			state.Old = stored.Old
		case err != nil:
			p.r.log.Error(err, "state annotation is not readable; the object is handled as a new one", "namespace", p.key.Namespace, "name", p.key.Name)
			state = progress.State{}
		default:
			state = stored
		}
	}
	state.Records = maps.Clone(state.Records)
	if state.Records == nil {
		state.Records = map[string]progress.Record{}
	}
	return state
}

// byGeneration takes the base from status.observedGeneration: what a handler looks at is the
// generation then, and the field's presence.
func (p *pass) byGeneration() {
	observed, _, _ := unstructured.NestedInt64(p.object.Object, "status", "observedGeneration")
	p.facts.Handled = observed > 0
	p.facts.Base = map[string]string{}
	for view, digest := range p.facts.Now {
		p.facts.Base[view] = "g" + strconv.FormatInt(observed, 10)
		if digest != cause.Digest(nil) {
			p.facts.Now[view] = "g" + strconv.FormatInt(p.object.GetGeneration(), 10)
		}
	}
}

// secure adds the finalizer before the first handler of an object runs, and returns the object to
// write to afterwards. When no handler is due, the finalizer goes along with the pass's write.
func (p *pass) secure(ctx context.Context) (*unstructured.Unstructured, error) {
	if p.gone || p.facts.Deleting || p.finalizer() || !p.wantsFinalizer() {
		return p.object, nil
	}
	if !slices.ContainsFunc(p.jobs, func(j *job) bool { return j.record.Waits(p.now) <= 0 }) {
		return p.object, nil
	}
	return p.send(ctx, p.object, dsl.NewPatch(), patch.Marks{Finalizer: p.r.engine.op.Finalizer(), Add: true})
}

// write sends what the pass accumulated.
func (p *pass) write(ctx context.Context, base *unstructured.Unstructured, marks patch.Marks) error {
	if p.gone {
		return p.letGo(ctx, marks)
	}
	_, err := p.send(ctx, base, p.patch, marks)
	return err
}

// letGo takes the finalizer from an object that is gone only from sight, because a selector does not
// select it any more: nobody would do it later, and it could never be deleted.
func (p *pass) letGo(ctx context.Context, marks patch.Marks) error {
	seen := p.finalizer() || p.r.rules.finalizes && p.r.spec.Cache == dsl.CacheLive // which does not show it
	if !marks.Remove || !seen {
		return nil
	}
	live, err := p.r.engine.reader(ctx, p.r.own.resource().GVR, p.key)
	if err == nil && live != nil && live.GetUID() == p.object.GetUID() {
		_, err = p.send(ctx, live, dsl.NewPatch(), marks)
	}
	if err != nil && !errors.Is(err, patch.ErrGone) {
		p.memory.parted = false
		return fmt.Errorf("letting object go: %w", err)
	}
	return nil
}

// refused says on the object that the server does not take what handlers want: waiting alone will
// not mend that.
func (p *pass) refused(err error) {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		p.r.engine.events.warn(p.object, "write", "WriteRefused", err.Error())
	}
}

func (p *pass) send(ctx context.Context, base *unstructured.Unstructured, changes *dsl.Patch, marks patch.Marks) (*unstructured.Unstructured, error) {
	served := p.r.own.resource()
	target := patch.Target{
		Client: p.r.engine.writer(served.GVR, p.key.Namespace), Object: base, Resource: served.GVR.GroupResource(),
		Subresource: served.Status, Manager: p.r.engine.op.Name,
	}
	schemas := p.r.schemas.Load()
	if p.memory.schemas == schemas {
		target.Futile = p.memory.futile
	}
	wanted, err := p.r.withOffers(ctx, changes)
	if err != nil {
		return nil, err
	}
	result, err := p.sendLament(ctx, target, wanted, marks)
	p.r.count(result)
	if err == nil && !changes.Empty() {
		p.memory.futile, p.memory.schemas = result.Futile, schemas
	}
	if result.Status || result.Whole {
		p.await(p.r.own, result.Object)
	}
	if errors.Is(err, patch.ErrGone) {
		p.log().V(1).Info("object is gone; what its handlers want of it is dropped")
	}
	if len(result.Dropped) > 0 {
		p.r.engine.wantCRDs() // should the schema get them, they are sent again
		p.log().Info("the API server dropped fields that its schema does not have", dsl.LogWarning, true, "fields", fmt.Sprint(result.Dropped))
	}
	return result.Object, err
}

// finalizer reports whether the object has the operator's finalizer.
func (p *pass) finalizer() bool {
	return slices.Contains(p.object.GetFinalizers(), p.r.engine.op.Finalizer())
}
