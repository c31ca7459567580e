// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/handwerk-dev/handwerk/dsl"
)

// essences are the old states of an object that are kept for handlers. Mostly all handlers have handled the same state,
// which is kept once.
type essences struct {
	// Old is the state that most handlers have handled: the essence, or the Fields of it that they name. An empty
	// map differs from nil, which means that nothing is kept.
	Old    map[string]any `json:"old,omitzero"`
	Fields []string       `json:"fields,omitempty"`
	// Olds are the states that other handlers have handled, by handler.
	Olds map[string]map[string]any `json:"olds,omitempty"`
	// Without are the handlers for which nothing is kept. In Olds and Without, an id that ends in [unmet] is for the state
	// in which the handler's when last did not hold.
	Without []string `json:"without,omitempty"`
	// Packed is Old and Olds, compressed.
	Packed string `json:"packed,omitempty"`
}

// unmet is appended to the id of a handler; no id contains it.
const unmet = "?"

// sealed are essences in their text form. Few reconciles need them, and whoever may edit the object can make them a
// thousand times as large as the text. So they are decoded on demand, and only up to a size in proportion to the
// object.
type sealed struct {
	Old     json.RawMessage `json:"old"`
	Olds    json.RawMessage `json:"olds"`
	Fields  []string        `json:"fields"`
	Without []string        `json:"without"`
	Packed  string          `json:"packed"`

	// also are renamed handlers: {was, is}.
	also [][2]string
	// opened and err are the result of openOnce.
	opened *essences
	err    error
	asked  bool
}

// The limits for the memory of decoded essences, as [Weight] estimates it: leastWeight in any case, beyond
// that timesLive times the weight of the object, and at most mostWeight. The same limits apply to what is stored.
const (
	leastWeight = 4 << 20
	timesLive   = 4
	mostWeight  = 16 << 20
)

// open decodes essences for an object. The error says that they are invalid, or too large for the object.
func (s *sealed) open(snapshot *Snapshot) (*essences, error) {
	if s == nil {
		return nil, nil
	}
	t := treesText{s.Old, s.Olds}
	if s.Packed != "" {
		data, err := Unpack(s.Packed)
		if err != nil {
			return nil, err
		}
		t = treesText{} // the packed trees take the place of those in the text
		if err := json.Unmarshal(data, &t); err != nil {
			return nil, err
		}
	}
	if weight := Weight(t.Old) + Weight(t.Olds); weight > leastWeight && weight > min(mostWeight, timesLive*snapshot.weight()) {
		return nil, fmt.Errorf("%w: it would take %d MiB", ErrLarge, weight>>20)
	}
	x := &essences{Fields: s.Fields, Without: s.Without}
	if err := t.into(x); err != nil {
		return nil, err
	}
	for _, ids := range s.also {
		x = x.renamed(ids[0], ids[1])
	}
	return x, nil
}

// openOnce is open for progress that is being adapted to handlers. Essences that cannot be read count as missing.
func (s *sealed) openOnce(snapshot *Snapshot) *essences {
	if s == nil {
		return nil
	}
	if !s.asked {
		s.opened, s.err = s.open(snapshot)
		s.asked = true
	}
	return s.opened
}

// unreadable returns why openOnce could not read the essences; nil if it could, or was not called.
func (s *sealed) unreadable() error {
	if s == nil || s.err == nil {
		return nil
	}
	return fmt.Errorf("decoding what handlers have handled: %w", s.err)
}

// renamed adds essences for a handler under another id.
func (s *sealed) renamed(was, id string) *sealed {
	if s == nil {
		return nil
	}
	out := *s
	out.also = append(slices.Clone(s.also), [2]string{was, id})
	return &out
}

// treesText are trees before decoding.
type treesText struct {
	Old  json.RawMessage `json:"old"`
	Olds json.RawMessage `json:"olds"`
}

func (t treesText) into(x *essences) error {
	if len(t.Old) > 0 {
		if err := utiljson.Unmarshal(t.Old, &x.Old); err != nil {
			return err
		}
	}
	if len(t.Olds) > 0 {
		return utiljson.Unmarshal(t.Olds, &x.Olds)
	}
	return nil
}

// of returns the kept state of a handler, and its extent: the whole essence, or fields. The tree is nil if nothing
// is kept. It works on nil essences.
func (x *essences) of(id string) (tree map[string]any, whole bool, fields []dsl.Path) {
	if x == nil {
		return nil, false, nil
	}
	if own, has := x.Olds[id]; has {
		return own, false, nil
	}
	if x.Old == nil || slices.Contains(x.Without, id) {
		return nil, false, nil
	}
	for _, text := range x.Fields {
		if p, err := dsl.ParsePath(text); err == nil {
			fields = append(fields, p)
		}
	}
	return x.Old, len(x.Fields) == 0, fields
}

// renamed adds the kept state of a handler under another id.
func (x *essences) renamed(was, id string) *essences {
	if x == nil {
		return nil
	}
	out := *x
	out.Olds, out.Without = maps.Clone(x.Olds), slices.Clone(x.Without)
	for _, of := range []string{"", unmet} {
		if own, has := x.Olds[was+of]; has {
			out.Olds[id+of] = own
		}
		if slices.Contains(x.Without, was+of) {
			out.Without = append(out.Without, id+of)
		}
	}
	return &out
}

// kept is a state that is kept for a handler, with its id in [essences]. The tree is nil if the state is unknown.
type kept struct {
	id   string
	view View
	tree map[string]any
}

// gather collects the states to keep for handlers.
func (b Progress) gather(handlers []Handler, snapshot *Snapshot) (x essences) {
	var all []kept
	for _, h := range handlers {
		e, _ := b.of(h)
		if !h.Old {
			continue
		}
		all = append(all, b.keep(h, h.ID, e.Handled, e.Old, snapshot))
		if e.Unmet != "" {
			all = append(all, b.keep(h, h.ID+unmet, e.Unmet, e.OldUnmet, snapshot))
		}
	}
	for _, one := range all {
		x.add(one.view, one.tree)
	}
	for _, one := range all {
		switch {
		case one.tree == nil:
			x.Without = append(x.Without, one.id)
		case !x.serves(one.view, one.tree):
			if x.Olds == nil {
				x.Olds = map[string]map[string]any{}
			}
			x.Olds[one.id] = one.tree
		}
	}
	return x
}

// keep returns the state to keep for a digest. An unreadable state is dropped; the handler's last run reported it.
func (b Progress) keep(h Handler, id, digest string, inEntry map[string]any, snapshot *Snapshot) kept {
	if digest == snapshot.Digest(h.View) {
		return kept{id, h.View, snapshot.Kept(h.View)}
	}
	if e, _ := b.of(h); e.OldDropped {
		return kept{id: id, view: h.View}
	}
	tree, _ := b.state(h, id, digest, inEntry, snapshot)
	return kept{id, h.View, tree}
}

// add adds a handler's state to that of most handlers.
func (x *essences) add(v View, tree map[string]any) {
	switch {
	case tree == nil || x.Old != nil && len(x.Fields) == 0:
	case len(v.Fields) == 0:
		x.Old, x.Fields = tree, nil
	default:
		x.Old = joint(x.Old, tree)
		for _, p := range v.Fields {
			if name := p.String(); !slices.Contains(x.Fields, name) {
				x.Fields = append(x.Fields, name)
			}
		}
	}
}

// serves reports whether the state of most handlers is also this handler's.
func (x essences) serves(v View, tree map[string]any) bool {
	if len(x.Fields) == 0 && !v.within(true, nil) {
		return false
	}
	return reflect.DeepEqual(NewSnapshot(x.Old).Kept(v), tree)
}

// Old returns the state with which a handler compares the object: the state that it handled last. If the object has that
// state again, it is the state in which its when last did not hold. It returns nil if the state is not kept, and an error
// if the kept state cannot be read, or is too large for the object of the snapshot.
func (b Progress) Old(h Handler, snapshot *Snapshot) (map[string]any, error) {
	e, _ := b.of(h)
	if !h.Old || e.OldDropped {
		return nil, nil
	}
	old, err := b.state(h, h.ID, e.Handled, e.Old, snapshot)
	now := snapshot.Digest(h.View)
	if e.Unmet != "" && (e.Handled == now || old != nil && NewSnapshot(old).Digest(h.View) == now) {
		return b.state(h, h.ID+unmet, e.Unmet, e.OldUnmet, snapshot)
	}
	return old, err
}

// state returns a state that is kept for a handler: from the entry, or from the text under an id. Digest is the digest of
// the handler's view of it.
func (b Progress) state(h Handler, id, digest string, inEntry map[string]any, snapshot *Snapshot) (map[string]any, error) {
	nothing := map[string]any{}
	switch {
	case inEntry != nil || digest == "":
		return inEntry, nil
	case digest == NewSnapshot(nothing).Digest(h.View):
		return nothing, nil // the digest of an empty view is enough
	case b.text == "":
		return nil, nil
	}
	stored, err := parse(b.text)
	if err != nil {
		return nil, err
	}
	stored = stored.renamed([]Handler{h}) // the text may have an earlier id
	was, _ := stored.Entry(h.ID)
	kept, err := stored.kept.open(snapshot)
	if err != nil {
		return nil, fmt.Errorf("decoding what handlers have handled: %w", err)
	}
	tree, whole, fields := kept.of(id)
	if tree == nil || !h.View.within(whole, fields) && was.ViewName != h.View.Name() {
		return nil, nil
	}
	then := NewSnapshot(tree)
	if digest != rerun && then.Digest(h.View) != digest {
		return nil, nil // it is from another time
	}
	return then.Kept(h.View), nil
}

// trees are the part of essences that is compressed.
type trees struct {
	Old  map[string]any            `json:"old,omitzero"`
	Olds map[string]map[string]any `json:"olds,omitempty"`
}

// pack compresses large essences. The error is [ErrLarge] if [progress.Unpack] would refuse the result.
func (x *essences) pack() error {
	data, err := json.Marshal(trees{x.Old, x.Olds})
	if err != nil {
		return err
	}
	if Weight(data) > mostWeight {
		return ErrLarge
	}
	if len(data) < From {
		return nil
	}
	x.Packed, err = Pack(data)
	x.Old, x.Olds = nil, nil
	return err
}
