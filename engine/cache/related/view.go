// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package related

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// State is what the handlers of an object saw of its related objects, remembered from one reconcile to the next. The zero
// value is of an object that no reconcile has seen.
type State struct {
	// version is the object's own, by which it was selected; relations has one sight for each.
	version   string
	relations []sight
}

// sight is what handlers saw of one relation.
type sight struct {
	// others is a digest of the related objects and their versions but for the object itself; zero when they were
	// never seen.
	others uint64
	// unsynced: the related objects could not be seen last.
	unsynced bool
	// self is the digest of the object as it was among them; empty when it was not.
	self string
}

func (s sight) same(t sight) bool { return s.others == t.others && s.self == t.self }

// Owner is the object of a reconcile.
type Owner struct {
	Key    cache.ObjectName
	Object *unstructured.Unstructured
	// Gone: it is deleted, and nothing wakes it any more.
	Gone bool
	// Now is when the reconcile began.
	Now time.Time
}

// View is dsl.Related for one reconcile. Whatever its handlers and filters ask for, they see the related objects as they
// were when the first one did. The methods of dsl.Related may be called by any number of goroutines; the others are
// the reconcile's.
type View struct {
	index *Index
	owner Owner
	// refused is why there is nothing to be seen, nil when there is.
	refused error
	state   State
	changed bool

	mu         sync.Mutex
	selections []*selection // by relation, nil before somebody asks
	// chosen are the objects of relations that others choose by, once for all choices and conditions of the reconcile.
	chosen map[string][]*unstructured.Unstructured
}

var _ dsl.Related = (*View)(nil)

// View returns what a reconcile over an object sees.
func (x *Index) View(o Owner) *View {
	if len(x.relations) == 0 {
		return x.nothing
	}
	return &View{index: x, owner: o, selections: make([]*selection, len(x.relations))}
}

// None returns a view for which relations cannot select anything; why says what is wrong with asking.
func (x *Index) None(why error) *View { return &View{index: x, refused: why} }

// Relations returns the resource's relations.
func (v *View) Relations() []dsl.Relation { return v.index.settings.Resource.Relations() }

// Get returns the objects that the relation selects. Its error is permanent where there is no such relation; it is
// that of the selection, or says why the objects cannot be seen now.
func (v *View) Get(name string) ([]*unstructured.Unstructured, error) {
	if v.refused != nil {
		return nil, dsl.Permanent(fmt.Errorf("reading related objects of %s: %w", name, v.refused))
	}
	one := v.index.named(name)
	if one == nil {
		return nil, dsl.Permanent(fmt.Errorf("reading related objects: there is no relation %q", name))
	}
	return v.see(one).trees(name)
}

// Absent names the object that a relation selects by its name when it is not there; see [dsl.Related]. Where labels or a
// condition select, too, the object may be there and not be selected.
func (v *View) Absent(name string) string {
	one := v.index.named(name)
	if one == nil || v.refused != nil || one.Hidden {
		return ""
	}
	s := v.see(one)
	if !one.One || one.LabelSelector != "" || s.err != nil || s.unsynced != nil || len(s.objects) > 0 ||
		len(s.Names) != 1 || s.Names[0] == "" || s.Labels != nil || s.Match != nil {
		return ""
	}
	return cmp.Or(one.feed.Resource().Kind, one.Resource.String()) + " " + strings.TrimPrefix(s.Namespace+"/"+s.Names[0], "/")
}

// Refresh finds out, before handlers run, whether what the relations select has changed since was, for which changes
// may be the reason. That is computed again only when the object itself has changed, or when related objects have
// that it may concern. Again is how long it is until the object must be looked at again, because related objects
// cannot be seen now and no event may report when they can; zero when it need not be.
func (v *View) Refresh(was State, changes *inbox.Related) (again time.Duration) {
	if len(v.index.relations) == 0 || v.owner.Gone {
		return 0
	}
	first, version := was.relations == nil, v.owner.Object.GetResourceVersion()
	moved := was.version != version
	v.state = State{version, make([]sight, len(v.index.relations))}
	copy(v.state.relations, was.relations)
	var others []string // relations that select something else, or objects that have changed
	changed := func(name string) bool { return slices.Contains(others, name) }
	for i, one := range v.index.relations {
		last := &v.state.relations[i]
		affected := changes != nil && v.affected(one, changes) || slices.ContainsFunc(one.After, changed)
		if !first && !affected && !last.unsynced && (!moved || v.steady(one)) {
			continue
		}
		now, wait := v.look(one, *last)
		if !first && !now.same(*last) {
			v.changed, others = true, append(others, one.Name)
		}
		*last, again = now, sooner(again, wait)
	}
	return again
}

// sooner returns the shorter of two waits. Zero means no wait.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Changed reports whether the selected objects differ from those that handlers saw before. It is false for the first reconcile.
func (v *View) Changed() bool { return v.changed }

// State returns what is to be remembered.
func (v *View) State() State { return v.state }

// ExpectOwnState records the state in which the reconcile leaves the object, if it is among its own related objects: the next reconcile does not see a
// change then. Otherwise left is not called.
func (v *View) ExpectOwnState(left func() *unstructured.Unstructured) {
	for i := range v.state.relations {
		if s := &v.state.relations[i]; s.self != "" {
			s.self = v.digest(left())
		}
	}
}

// digest is that of the object itself.
func (v *View) digest(o *unstructured.Unstructured) string {
	return progress.NewLook(o.Object).Digest(v.index.settings.All)
}

// look sees the related objects. Those that are known count when they cannot be seen now, and the object waits:
// handlers are to act on all or on nothing.
func (v *View) look(one *relation, last sight) (now sight, again time.Duration) {
	s := v.see(one)
	if s.unsynced != nil {
		last.unsynced = true
		if len(one.feed.Informers("")) > 0 {
			return last, source.ListingLook
		}
		return last, inbox.Patience // the listing wakes the object; this is if nothing has to be listed
	}
	if s.err != nil {
		return sight{others: 1}, 0
	}
	hash := fnv.New64a()
	for _, o := range s.objects {
		if o.GetUID() != v.owner.Object.GetUID() {
			_, _ = io.WriteString(hash, string(o.GetUID())+"/"+o.GetResourceVersion()+";") // hashes return no errors
		} else if tree := o.Tree(); tree != nil { // what its handlers write must not wake them
			now.self = v.digest(tree)
		}
	}
	now.others = max(hash.Sum64(), 2)
	return now, 0
}

// steady reports whether a change of the object leaves a relation's selection as it is. It does not read the related objects, and
// returns false when that would be necessary.
func (v *View) steady(one *relation) bool {
	if one.feed.Resource().GVR.GroupResource() == v.index.settings.Own.Resource().GVR.GroupResource() {
		return false // the object may be among them
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.chooseLocked(one)
	return s.err == nil && s.unchanged && s.Match == nil
}

// affected reports whether one of the changes is of an object that the relation selects, or did before.
func (v *View) affected(one *relation, changes *inbox.Related) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.chooseLocked(one)
	return changes.All || s.err != nil || slices.ContainsFunc(changes.Changes, func(c inbox.RelatedChange) bool {
		return c.Relation == one.number && (s.selects(c.Before) || s.selects(c.After))
	})
}

// see returns what the relation selects.
func (v *View) see(one *relation) *selection {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seeLocked(one)
}

// seeLocked is see. The lock is held.
func (v *View) seeLocked(one *relation) *selection {
	s := v.chooseLocked(one)
	if s.looked || s.err != nil {
		return s
	}
	s.looked = true
	listed := func() error { return one.feed.Listed(s.Namespace) }
	if s.reader == nil {
		s.unsynced = listed()
	} else {
		s.unsynced = one.asked.readers.Try(s.reader, listed)
	}
	if s.unsynced == nil {
		s.find(one.feed, one.Hidden)
	}
	return s
}

// chooseLocked asks the relation what it selects, and subscribes to that before anybody looks: what changes later
// wakes the object then. The lock is held.
func (v *View) chooseLocked(one *relation) *selection {
	if s := v.selections[one.number]; s != nil {
		return s
	}
	s := &selection{}
	v.selections[one.number] = s
	if s.awaits(v.before(one)); s.looked {
		return s
	}
	if one.Select != nil {
		o, with := v.owner, v.index.settings
		s.choose(one.Select, &dsl.Subject{
			Object: o.Object.DeepCopy(), Now: o.Now, Related: v.earlier(one), Made: with.Resource.Makes, Prefix: with.Resource.Prefix(), Secrets: with.Resource.RelationSecrets(one.Relation),
			Log: with.Log.WithValues("namespace", o.Key.Namespace, "name", o.Key.Name),
		})
	}
	s.Selection = plain(s.Selection, one.feed.Resource().Namespaced)
	if s.err == nil && !v.owner.Gone {
		s.reader, s.unchanged = one.asked.put(v.owner.Key, s.Selection)
	}
	return s
}
