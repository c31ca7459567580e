// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package breaker

import (
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// kept is how many versions, and how many objects, a trail has. Reconciles ask for versions that are milliseconds
	// old.
	kept = 4096
	// longest is the length of a chain in reconciles.
	longest = 32
	// named is how many objects of a ring are named.
	named = 8
)

// Version is a state of an object. Its text is empty for the end of the object.
type Version struct {
	UID  types.UID
	Text string
}

// Trail records which versions of objects this process wrote recently, in which reconciles, and which reconcile woke which.
// With it, a reconcile can find out whether it follows from its own object's writes. Its size is fixed: a new version
// replaces an old one.
type Trail struct {
	seed maphash.Seed
	mu   sync.Mutex
	// written has the versions by hash, and order the hashes. A new version replaces the oldest one.
	written map[uint64]version
	order   [kept]uint64
	oldest  int
	// writing are the requests in progress, in the order of their beginnings: an event may come before the
	// response.
	writing []request
	// places have the turns of objects; steps is the number of steps so far.
	places [kept]place
	steps  uint64
}

// version is a version that this process wrote.
type version struct {
	by *step
	// made: it is the first one of an object.
	made bool
}

// request is a write to an object by a reconcile.
type request struct {
	to types.UID
	by *step
}

// NewTrail returns a trail without versions.
func NewTrail() *Trail {
	return &Trail{seed: maphash.MakeSeed(), written: map[uint64]version{}}
}

// step is a reconcile that has written.
type step struct {
	uid types.UID
	// object names the object of the reconcile for people, and handlers the writers.
	object   string
	handlers []string
	// before is the reconcile that woke this one; nil if it is not known. It wrote one of the versions in woken. These
	// are looked up when the chain is needed, and are nil from then on.
	before *step
	woken  []Version
	// number counts the steps of a trail. Turn is zero until it is needed; had is the earlier turn of the object's
	// place.
	number uint64
	turn   turn
	had    place
}

// String names the reconcile for people.
func (s *step) String() string {
	if len(s.handlers) == 0 {
		return s.object
	}
	return s.object + " (" + strings.Join(s.handlers, ", ") + ")"
}

// hash returns the hash of a version.
func (t *Trail) hash(v Version) uint64 {
	var h maphash.Hash
	h.SetSeed(t.seed)
	_, _ = h.WriteString(string(v.UID)) // hashes return no errors
	_ = h.WriteByte('/')
	_, _ = h.WriteString(v.Text)
	return h.Sum64()
}

// byLocked returns the reconcile that wrote a version; nil if this process did not write it. The lock is held.
func (t *Trail) byLocked(v Version) *step {
	if one, found := t.written[t.hash(v)]; found {
		return one.by
	}
	if i := slices.IndexFunc(t.writing, func(r request) bool { return r.to == v.UID }); i >= 0 {
		return t.writing[i].by
	}
	return nil
}

// madeLocked reports whether a reconcile of this process made an object with this version. The lock is held.
func (t *Trail) madeLocked(v Version) bool { return t.written[t.hash(v)].made }

// followLocked finds the reconcile that woke s among those that wrote these versions: the one most closely related to
// the object of s. Reconciles over that object itself come last: a cache may already show the write of another reconcile
// before its event comes. The lock is held.
func (t *Trail) followLocked(s *step, woken []Version) {
	closest := -1
	for _, v := range woken {
		by := t.byLocked(v)
		if by == nil || by == s {
			continue
		}
		n := 0
		if by.uid != s.uid {
			n = 1 + t.returnsLocked(by, s.uid)
		}
		if n > closest {
			closest, s.before = n, by
		}
	}
}

// chainLocked yields a reconcile and its known predecessors, the last one first. It drops the predecessors at twice the
// distance, even if the caller stops earlier: a ring that goes on slowly would keep all its reconciles in memory. The
// lock is held.
func (t *Trail) chainLocked(s *step) iter.Seq[*step] {
	return func(yield func(*step) bool) {
		asked := true
		for n := 1; s != nil; n++ {
			asked = asked && n <= longest && yield(s)
			t.joinLocked(s)
			woken := s.woken
			switch {
			case n == 2*longest:
				s.before, s.woken = nil, nil
			case asked && len(woken) > 0:
				s.woken = nil
				t.followLocked(s, woken)
			}
			s = s.before
		}
	}
}

// returnsLocked returns how often a chain that ends with s contains an object: zero, one, or at least two. The lock
// is held.
func (t *Trail) returnsLocked(s *step, to types.UID) (out int) {
	over := types.UID("")
	for at := range t.chainLocked(s) {
		if at.uid != over && at.uid == to {
			out++
		}
		if over = at.uid; out == 2 {
			break
		}
	}
	return out
}

// Walk is one reconcile on a trail. Writing and Wrote of a nil Walk do nothing. Its methods are safe for use by several
// goroutines.
type Walk struct {
	trail *Trail
	about Subject
	// step is set when the reconcile writes something.
	step *step
	// alone: the reconcile wrote because a time had come.
	alone bool
}

// Subject is the object of a reconcile, and what woke the reconcile.
type Subject struct {
	UID types.UID
	// Resource and Key name the object for people.
	Resource string
	Key      types.NamespacedName
	// Own is the object's version if an event of the object woke the reconcile; otherwise it is empty.
	Own Version
	// Woken are versions of other objects whose events woke the reconcile.
	Woken []Version
}

// Begin begins a reconcile.
func (t *Trail) Begin(about Subject) *Walk { return &Walk{trail: t, about: about} }

// Writing notes that these handlers write to an object, from now until the returned function is called.
func (w *Walk) Writing(to types.UID, handlers ...string) (written func()) {
	if w == nil {
		return func() {}
	}
	t := w.trail
	t.mu.Lock()
	defer t.mu.Unlock()
	w.stepLocked()
	for _, id := range handlers {
		if !slices.Contains(w.step.handlers, id) {
			w.step.handlers = append(w.step.handlers, id)
		}
	}
	one := request{to, w.step}
	t.writing = append(t.writing, one)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		at := slices.Index(t.writing, one)
		t.writing = slices.Delete(t.writing, at, at+1)
	}
}

// Wrote notes a version that the reconcile has written.
func (w *Walk) Wrote(v Version) { w.wrote(v, false) }

// Made notes the first version of an object that the reconcile has created. The object begins with the visits of its
// creator: a cascade that creates objects without end is a loop, although it visits each object once.
func (w *Walk) Made(v Version) { w.wrote(v, true) }

func (w *Walk) wrote(v Version, made bool) {
	if w == nil {
		return
	}
	t := w.trail
	t.mu.Lock()
	defer t.mu.Unlock()
	w.stepLocked()
	hash := t.hash(v)
	if _, known := t.written[hash]; !known {
		delete(t.written, t.order[t.oldest])
		t.order[t.oldest] = hash
		t.oldest = (t.oldest + 1) % kept
	}
	t.written[hash] = version{w.step, made}
}

// stepLocked makes the reconcile a step. The lock is held.
func (w *Walk) stepLocked() {
	if w.step == nil {
		name := w.about.Resource + " " + strings.TrimPrefix(w.about.Key.String(), "/")
		had, _ := w.trail.placeLocked(w.about.UID)
		w.trail.steps++
		w.step = &step{uid: w.about.UID, object: name, woken: w.woken(), number: w.trail.steps, had: *had}
	}
}

// woken returns the versions that woke the reconcile.
func (w *Walk) woken() []Version {
	if w.alone {
		return nil
	}
	return append(slices.Clip(w.about.Woken), w.about.Own)
}

// Wake says what woke a reconcile.
type Wake struct {
	// Paced: the reconcile is only as fast as others. It was woken by a version of another object that somebody else
	// wrote, or by an object that forms no ring with this one. The end of an object does not pace: a reconcile that
	// recreates a deleted object would be as fast as whoever deletes it.
	Paced bool
	// Ring names the objects of a ring with their handlers, beginning with this one; nil if there is no ring, or
	// one of very many objects.
	Ring []string
}

// Wake finds out what woke the reconcile in which these handlers wrote. Call it at the end, when the responses to
// requests have come whose events came earlier.
func (w *Walk) Wake(handlers []string) (out Wake) {
	t := w.trail
	t.mu.Lock()
	defer t.mu.Unlock()
	w.stepLocked()
	w.step.handlers = handlers
	woken := w.woken()
	w.step.woken, w.step.turn = woken, turn{} // another reconcile may have asked too early
	t.joinLocked(w.step)
	defer func() { w.step.woken, w.step.turn = woken, turn{} }() // later reconciles look them up once more
	for _, v := range w.about.Woken {
		if by := t.byLocked(v); by == nil {
			out.Paced = out.Paced || v.Text != ""
		} else if by.uid != w.about.UID {
			out.Paced = out.Paced || !t.circlesLocked(by, w.step.had.turn)
		}
	}
	over := types.UID("")
	for at := range t.chainLocked(w.step) {
		switch {
		case at.uid == over:
			continue
		case at.uid == w.about.UID && out.Ring != nil:
			slices.Reverse(out.Ring[1:])
			return out.few()
		}
		over, out.Ring = at.uid, append(out.Ring, at.String())
	}
	out.Ring = nil
	return out
}

// few returns the wake with a ring that names a few objects and counts the others.
func (k Wake) few() Wake {
	if more := len(k.Ring) - named; more > 0 {
		k.Ring = append(k.Ring[:named], fmt.Sprintf("%d more", more))
	}
	return k
}

// Outside reports whether somebody else wrote one of the versions that woke the reconcile.
func (w *Walk) Outside() bool {
	w.trail.mu.Lock()
	defer w.trail.mu.Unlock()
	strange := func(v Version) bool { return w.trail.byLocked(v) == nil }
	return w.about.Own.UID != "" && strange(w.about.Own) || slices.ContainsFunc(w.about.Woken, strange)
}

// Alone notes that the reconcile wrote because a time had come, and not because of a version that woke it.
func (w *Walk) Alone() {
	w.trail.mu.Lock()
	defer w.trail.mu.Unlock()
	w.alone = true
	w.stepLocked()
	w.step.before, w.step.woken = nil, nil
}
