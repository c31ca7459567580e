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

// State has digests of the related objects that the handlers of an object have seen, from one reconcile to the next. The
// zero value is for an object that no reconcile has seen.
type State struct {
	// version is the version of the object for which they were selected. Relations has one sight for each relation.
	version   string
	relations []sight
}

// sight is a digest of one relation's objects as handlers have seen them.
type sight struct {
	// others is a digest of the related objects and their versions, without the object itself; zero if they were never
	// read.
	others uint64
	// unsynced is true if the related objects could not be read last time.
	unsynced bool
	// self is the digest of the object itself, if it was among them; else empty.
	self string
}

func (s sight) same(t sight) bool { return s.others == t.others && s.self == t.self }

// Owner is the object of a reconcile.
type Owner struct {
	Key    cache.ObjectName
	Object *unstructured.Unstructured
	// Gone is true if it is deleted. Nothing wakes it then.
	Gone bool
	// Now is when the reconcile began.
	Now time.Time
}

// View implements [dsl.Related] for one reconcile. All its handlers and filters see the related objects as they were
// when the first of them read them. The methods of dsl.Related may be called by any number of goroutines; the others
// belong to the reconcile.
type View struct {
	index *Index
	owner Owner
	// refused is the reason why nothing can be selected; nil if something can.
	refused error
	state   State
	changed bool

	mu         sync.Mutex
	selections []*selection // by relation, nil before somebody asks
	// chosen are the objects that other selections depend on, read once for all selections of the reconcile.
	chosen map[string][]*unstructured.Unstructured
}

var _ dsl.Related = (*View)(nil)

// View returns the view of a reconcile over an object.
func (x *Index) View(o Owner) *View {
	if len(x.relations) == 0 {
		return x.nothing
	}
	return &View{index: x, owner: o, selections: make([]*selection, len(x.relations))}
}

// None returns a view whose relations can select nothing; why is the reason.
func (x *Index) None(why error) *View { return &View{index: x, refused: why} }

// Relations returns the resource's relations.
func (v *View) Relations() []dsl.Relation { return v.index.settings.Resource.Relations() }

// Get returns the objects that the relation selects. Its error is permanent if there is no such relation. Otherwise it
// is the error of the selection, or the reason why the objects cannot be read now.
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

// Absent names the object that a relation selects by its name, if that object does not exist; see [dsl.Related]. If the
// selection has labels or a Match, too, the object may exist without being selected, and Absent returns nothing.
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
	return cmp.Or(one.source.Resource().Kind, one.Resource.String()) + " " + strings.TrimPrefix(s.Namespace+"/"+s.Names[0], "/")
}

// Refresh finds out, before handlers run, whether the selected objects have changed since was; changes are possible
// reasons. It selects again only if the object itself has changed, or related objects that it may concern. Again is the
// delay until the object must be looked at again; zero if it need not be. It is set if related objects cannot be read
// now, because no event may report when they can.
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

// Changed reports whether the selected objects differ from the objects that handlers saw before. It is false for the
// first reconcile.
func (v *View) Changed() bool { return v.changed }

// State returns the state for the next reconcile.
func (v *View) State() State { return v.state }

// HasSelf reports whether the object is among its own related objects.
func (v *View) HasSelf() bool {
	return slices.ContainsFunc(v.state.relations, func(s sight) bool { return s.self != "" })
}

// ExpectOwnState records the state in which the reconcile leaves an object that is among its own related objects. The
// next reconcile then sees no change.
func (v *View) ExpectOwnState(left *unstructured.Unstructured) {
	for i := range v.state.relations {
		if s := &v.state.relations[i]; s.self != "" {
			s.self = v.digest(left)
		}
	}
}

// digest returns the digest of the object itself.
func (v *View) digest(o *unstructured.Unstructured) string {
	return progress.NewSnapshot(o.Object).Digest(v.index.settings.All)
}

// look returns the digest of the related objects. If they cannot be read now, the last digest counts, and the object
// waits: handlers act on all objects or on none.
func (v *View) look(one *relation, last sight) (now sight, again time.Duration) {
	s := v.see(one)
	if s.unsynced != nil {
		last.unsynced = true
		if len(one.source.Informers("")) > 0 {
			return last, source.ListingInterval
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
		} else if tree := o.Tree(); tree != nil { // writes of the object's handlers must not wake them
			now.self = v.digest(tree)
		}
	}
	now.others = max(hash.Sum64(), 2)
	return now, 0
}

// steady reports whether a change of the object leaves a relation's selection as it is. It returns false if that depends
// on the related objects.
func (v *View) steady(one *relation) bool {
	if one.source.Resource().GVR.GroupResource() == v.index.settings.Own.Resource().GVR.GroupResource() {
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

// see returns the selection of a relation.
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
	listed := func() error { return one.source.Listed(s.Namespace) }
	if s.reader == nil {
		s.unsynced = listed()
	} else {
		s.unsynced = one.asked.readers.Read(s.reader, listed)
	}
	if s.unsynced == nil {
		s.find(one.source, one.Hidden)
	}
	return s
}

// chooseLocked selects by a relation, and subscribes to the selection before anybody reads it. Later changes wake the
// object then. The lock is held.
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
	s.Selection = plain(s.Selection, one.source.Resource().Namespaced)
	if s.err == nil && !v.owner.Gone {
		s.reader, s.unchanged = one.asked.put(v.owner.Key, s.Selection)
	}
	return s
}
