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
	// kept is how many versions, and how many objects, a trail knows. A pass asks for versions that are milliseconds old.
	kept = 4096
	// longest is how many passes back a chain is known.
	longest = 32
	// named is how many objects of a ring are named.
	named = 8
)

// Version is a state of an object. Its text is empty for the end of the object.
type Version struct {
	UID  types.UID
	Text string
}

// Trail knows which versions of objects this process wrote lately, in which passes, and which pass woke which. So a pass can
// find out whether it follows from what its own object did. Its size is fixed: a version takes the place of an older one.
type Trail struct {
	seed maphash.Seed
	mu   sync.Mutex
	// written has the versions by their hashes, and order the hashes. Each new version takes the place of the oldest one.
	written map[uint64]version
	order   [kept]uint64
	oldest  int
	// writing are requests that are under way, in the order of their beginnings: an event may come before the answer.
	writing []request
	// places have the turns of objects, and steps is how many steps there have been.
	places [kept]place
	steps  uint64
}

// version is what is known of a version that this process wrote.
type version struct {
	by *step
	// made: it is the first one of an object.
	made bool
}

// request is a write to an object by a pass.
type request struct {
	to types.UID
	by *step
}

// NewTrail returns a trail without versions.
func NewTrail() *Trail {
	return &Trail{seed: maphash.MakeSeed(), written: map[uint64]version{}}
}

// step is a pass that has written something.
type step struct {
	uid types.UID
	// object and handlers name for people what the pass was over, and who wrote.
	object   string
	handlers []string
	// before is the pass that woke this one, nil where the process does not know of one. It wrote one of the versions in
	// woken. These are looked up once more when the chain is asked for, and are nil from then on.
	before *step
	woken  []Version
	// number counts the steps of a trail. Turn is zero until it is asked for; had is what the object's place had before it.
	number uint64
	turn   turn
	had    place
}

// String names the pass for people.
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

// byLocked returns the pass that wrote a version, nil where this process did not. The lock is held.
func (t *Trail) byLocked(v Version) *step {
	if one, found := t.written[t.hash(v)]; found {
		return one.by
	}
	if i := slices.IndexFunc(t.writing, func(r request) bool { return r.to == v.UID }); i >= 0 {
		return t.writing[i].by
	}
	return nil
}

// madeLocked reports whether a pass of this process made an object with this version. The lock is held.
func (t *Trail) madeLocked(v Version) bool { return t.written[t.hash(v)].made }

// followLocked finds the pass that woke s among those that wrote these versions: the one that has most to do with the object
// of s. A pass over that object itself comes last: a cache may show what another one wrote before its event comes. The lock is held.
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

// chainLocked yields a pass, and those that led to it, the last one first, as far as they are known. It forgets the passes at
// twice that distance, also when the caller stops earlier: a ring that goes on slowly would keep all its passes in memory.
// The lock is held.
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

// returnsLocked returns how often a chain that ends with s meets an object: not at all, once, or twice at least. The lock is held.
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

// Walk is one pass on a trail. Writing and Wrote of a nil Walk do nothing. Its methods may be called by any number of goroutines.
type Walk struct {
	trail *Trail
	about Subject
	// step is there once the pass writes something.
	step *step
	// alone: the pass wrote because a time had come.
	alone bool
}

// Subject is what a pass is over, and what woke it.
type Subject struct {
	UID types.UID
	// Resource and Key name the object for people.
	Resource string
	Key      types.NamespacedName
	// Own is the object's version where an event of the object woke the pass; it is empty otherwise.
	Own Version
	// Woken are versions of other objects whose events woke the pass.
	Woken []Version
}

// Begin begins a pass.
func (t *Trail) Begin(about Subject) *Walk { return &Walk{trail: t, about: about} }

// Writing notes that these handlers write to an object in the pass, from now on until the function that it returns is called.
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

// Wrote notes a version that the pass has written.
func (w *Walk) Wrote(v Version) { w.wrote(v, false) }

// Made notes the first version of an object that the pass has made. The object begins with the visits of its maker, for a cascade
// that makes objects without end is a loop, although it visits each object once.
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

// stepLocked makes the pass one that writes. The lock is held.
func (w *Walk) stepLocked() {
	if w.step == nil {
		name := w.about.Resource + " " + strings.TrimPrefix(w.about.Key.String(), "/")
		had, _ := w.trail.placeLocked(w.about.UID)
		w.trail.steps++
		w.step = &step{uid: w.about.UID, object: name, woken: w.woken(), number: w.trail.steps, had: *had}
	}
}

// woken returns the versions that woke the pass.
func (w *Walk) woken() []Version {
	if w.alone {
		return nil
	}
	return append(slices.Clip(w.about.Woken), w.about.Own)
}

// Wake is what woke a pass.
type Wake struct {
	// Paced: the pass goes no faster than others make it. It was woken by a version of another object that somebody else
	// wrote, or by an object that forms no ring with this one. The end of an object sets no pace: a pass that makes a deleted
	// object again would be as fast as the one who deletes it.
	Paced bool
	// Ring names the objects, with their handlers, that follow this one and that this one follows, itself first; it is nil
	// where there is no ring, or one of very many objects.
	Ring []string
}

// Wake finds out what woke the pass, in which these handlers wrote. It is asked at the end, when answers to requests have come
// whose events came earlier.
func (w *Walk) Wake(handlers []string) (out Wake) {
	t := w.trail
	t.mu.Lock()
	defer t.mu.Unlock()
	w.stepLocked()
	w.step.handlers = handlers
	woken := w.woken()
	w.step.woken, w.step.turn = woken, turn{} // another pass may have asked too early
	t.joinLocked(w.step)
	defer func() { w.step.woken, w.step.turn = woken, turn{} }() // other passes look them up once more
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

// few returns the wake with a ring that names a few objects and the number of the others.
func (k Wake) few() Wake {
	if more := len(k.Ring) - named; more > 0 {
		k.Ring = append(k.Ring[:named], fmt.Sprintf("%d more", more))
	}
	return k
}

// Outside reports whether somebody else has written what woke the pass.
func (w *Walk) Outside() bool {
	w.trail.mu.Lock()
	defer w.trail.mu.Unlock()
	strange := func(v Version) bool { return w.trail.byLocked(v) == nil }
	return w.about.Own.UID != "" && strange(w.about.Own) || slices.ContainsFunc(w.about.Woken, strange)
}

// Alone notes that the pass wrote because a time had come, and not for what woke it.
func (w *Walk) Alone() {
	w.trail.mu.Lock()
	defer w.trail.mu.Unlock()
	w.alone = true
	w.stepLocked()
	w.step.before, w.step.woken = nil, nil
}
