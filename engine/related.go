// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// listingLook is how long an object waits before it looks whether a listing that has begun is
// complete.
const listingLook = time.Second

// kin is what the handlers of an object last saw of one relation.
type kin struct {
	// digest is of the related objects and their versions; zero when they were never seen.
	digest uint64
	// blind: the related objects could not be seen last.
	blind bool
	// self is the digest of the object as it was among them; empty when it was not.
	self string
}

// lookAround finds out whether what the relations select for the object has changed. It is
// worked out anew only when the object itself has changed, or when related objects have that it
// may concern.
func (p *pass) lookAround(n changes) {
	if len(p.r.relations) == 0 || p.gone {
		return
	}
	first := p.memory.kin == nil
	p.kin = make([]kin, len(p.r.relations))
	copy(p.kin, p.memory.kin)
	moved := first || p.memory.version != p.object.GetResourceVersion()
	for i, one := range p.r.relations {
		k := &p.kin[i]
		touched := n.Related != nil && p.around.touched(one, n.Related)
		if !touched && !k.blind && (!moved || !first && p.steady(one)) {
			continue
		}
		if digest, self := p.look(one, k); digest != k.digest || self != k.self {
			p.related = p.related || !first
			k.digest, k.self = digest, self
		}
	}
}

// steady reports whether a change of the object makes no difference to what a relation selects.
func (p *pass) steady(one *relation) bool { return !p.sibling(one) && p.around.unmoved(one) }

// sibling reports whether an object may be among those that a relation selects for it.
func (p *pass) sibling(one *relation) bool {
	return one.feed.Resource().GVR.GroupResource() == p.r.own.Resource().GVR.GroupResource()
}

// look sees the related objects and returns their digest, and that of the object itself among them. These
// are those that are known when they cannot be seen now: handlers are to act on all or on nothing.
func (p *pass) look(one *relation, k *kin) (digest uint64, self string) {
	f := p.around.see(one)
	if k.blind = f.unseen != nil; !k.blind {
		return f.digest(p.object.GetUID()), p.among(f)
	}
	again := inbox.Patience // the listing wakes the object; this is if nothing has to be listed
	if len(one.feed.Informers("")) > 0 {
		again = listingLook
	}
	p.next = p.next.sooner(again, queue.Resync)
	return k.digest, k.self
}

// among returns the digest of the object as it is among the related ones, empty when it is not.
func (p *pass) among(f *finding) string {
	for _, o := range f.objects {
		if o.GetUID() == p.object.GetUID() {
			return book.NewLook(p.r.tree(o).Object).Digest(p.r.rules.all)
		}
	}
	return ""
}

// foresee enters what the only handler that looks at related objects has changed of the object, where that is
// among them: it is no news. What others have changed is.
func (p *pass) foresee() {
	var readers, writers []*dsl.Handler
	for _, r := range p.r.rules.readers {
		if r.On(dsl.RelatedChange) {
			readers = append(readers, r.Handler)
		}
	}
	for _, j := range p.jobs {
		if j.asks() {
			writers = append(writers, j.reader.Handler)
		}
	}
	if len(readers) != 1 || !slices.Equal(readers, writers) {
		return
	}
	left := p.laid(p.object, p.patch)
	for i := range p.kin {
		if k := &p.kin[i]; k.self != "" {
			k.self = book.NewLook(left.Object).Digest(p.r.rules.all)
		}
	}
}

// around is dsl.Related for a pass. Whatever its handlers and filters ask for, they see the related
// objects as they were when the first one did.
type around struct {
	pass *pass

	mu       sync.Mutex
	findings map[*relation]*finding
}

var _ dsl.Related = (*around)(nil)

// finding is what a relation selects for a pass.
type finding struct {
	selection    dsl.Selection
	subscription subscription
	// same: the object asked for that before.
	same bool
	// err is that of the selection, unseen says why the objects cannot be seen.
	err, unseen error
	looked      bool
	objects     []*cached.Object
}

// Get returns the objects that the relation selects.
func (a *around) Get(name string) ([]*unstructured.Unstructured, error) {
	i := slices.IndexFunc(a.pass.r.relations, func(one *relation) bool { return one.Name == name })
	if i < 0 {
		return nil, dsl.Permanent(fmt.Errorf("reading related objects: there is no relation %q", name))
	}
	f := a.see(a.pass.r.relations[i])
	if err := cmp.Or(f.err, f.unseen); err != nil {
		return nil, fmt.Errorf("reading related objects of %s: %w", name, err)
	}
	out := make([]*unstructured.Unstructured, 0, len(f.objects))
	for _, o := range f.objects {
		if tree := o.Tree(); tree != nil {
			out = append(out, tree)
		}
	}
	return out, nil
}

// Relations returns the resource's relations.
func (a *around) Relations() []dsl.Relation { return a.pass.r.spec.Relations() }

// touched reports whether one of the changes is of an object that the relation selects, or did
// before.
func (a *around) touched(one *relation, n *inbox.Related) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.chooseLocked(one)
	if n.All || f.err != nil {
		return true
	}
	return slices.ContainsFunc(n.Changes, func(c inbox.RelatedChange) bool {
		return c.Relation == one.number && (f.selects(c.Before) || f.selects(c.After))
	})
}

// unmoved reports whether the object asks for what it asked for before, as far as that can be told
// without a look at the related objects.
func (a *around) unmoved(one *relation) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.chooseLocked(one)
	return f.err == nil && f.same && f.selection.Match == nil
}

// see returns what the relation selects.
func (a *around) see(one *relation) *finding {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.chooseLocked(one)
	if f.looked || f.err != nil {
		return f
	}
	f.looked = true
	namespace := f.subscription.namespace
	if f.unseen = one.feed.Listed(namespace); f.unseen != nil && !a.pass.gone {
		one.blinded(a.pass.key)
		f.unseen = one.feed.Listed(namespace) // once more, for nobody was to be woken before
	}
	if f.unseen == nil {
		f.objects = one.find(f)
	}
	return f
}

// chooseLocked asks the relation what it selects, and subscribes to that before anybody looks: what
// changes later wakes the object then. The lock is held.
func (a *around) chooseLocked(one *relation) *finding {
	if f := a.findings[one]; f != nil {
		return f
	}
	if a.findings == nil {
		a.findings = map[*relation]*finding{}
	}
	f := &finding{}
	a.findings[one] = f
	p := a.pass
	if one.Select != nil {
		f.selection, f.err = choose(one.Select, &dsl.Request{
			Object: p.object.DeepCopy(), Patch: dsl.NewPatch(), Log: p.log(), Now: p.now, Made: p.r.spec.Made(),
		})
	}
	f.subscription = subscribed(f.selection, one.feed.Resource().Namespaced)
	if f.err == nil && !p.gone {
		f.same = one.subscribe(p.key, f.subscription)
	}
	return f
}

// choose asks a relation, and turns a panic into an error.
func choose(what func(*dsl.Request) (dsl.Selection, error), r *dsl.Request) (s dsl.Selection, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return what(r)
}

// selects reports whether the object is one of those selected.
func (f *finding) selects(o *cached.Object) bool {
	s := f.subscription
	switch {
	case o == nil,
		s.namespace != "" && s.namespace != o.GetNamespace(),
		s.names != nil && !slices.Contains(s.names, o.GetName()),
		s.labels != nil && !s.labels.Matches(labels.Set(o.GetLabels())):
		return false
	case f.selection.Match == nil:
		return true
	}
	tree := o.Tree()
	return tree != nil && holds(f.selection.Match, tree)
}

// holds asks a selection's condition; an error and a panic mean no.
func holds(match func(*unstructured.Unstructured) (bool, error), o *unstructured.Unstructured) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	ok, err := match(o)
	return ok && err == nil
}

// find returns the selected objects from the cache, sorted.
func (one *relation) find(f *finding) []*cached.Object {
	var out []*cached.Object
	for _, o := range one.candidates(f.subscription) {
		if f.selects(o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *cached.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// candidates returns the objects among which the selected ones are: those of the names, where a
// lookup finds them, or those of the informers.
func (one *relation) candidates(s subscription) []*cached.Object {
	namespaced := one.feed.Resource().Namespaced
	var out []*cached.Object
	for _, h := range one.feed.Informers(s.namespace) {
		namespace := cmp.Or(s.namespace, h.Source().Namespace)
		if s.names == nil || namespaced && namespace == "" {
			out = append(out, h.Objects()...)
			continue
		}
		for _, name := range slices.Compact(slices.Sorted(slices.Values(s.names))) {
			if o, found := h.Object(cache.ObjectName{Namespace: namespace, Name: name}); found {
				out = append(out, o)
			}
		}
	}
	return out
}

// digest is that of the objects and their versions, without the one whose relations they are: what its handlers
// write must not wake them.
func (f *finding) digest(self types.UID) uint64 {
	if f.err != nil {
		return 1
	}
	hash := fnv.New64a()
	for _, o := range f.objects {
		if o.GetUID() != self {
			_, _ = io.WriteString(hash, string(o.GetUID())+"/"+o.GetResourceVersion()+";") // hashes return no errors
		}
	}
	return max(hash.Sum64(), 2)
}
