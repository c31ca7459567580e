// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/handwerk-dev/handwerk/dsl"
)

// essences are what is kept of an object for handlers that want to see what was. Mostly all have
// handled the same, which is kept once.
type essences struct {
	// Old is what most handlers have handled: the essence, or the Fields of it that they name. It may be empty,
	// which is not the same as nil: nothing is kept then.
	Old    map[string]any `json:"old,omitzero"`
	Fields []string       `json:"fields,omitempty"`
	// Olds are what others have handled, by handler.
	Olds map[string]map[string]any `json:"olds,omitempty"`
	// Without are handlers for which nothing is kept.
	Without []string `json:"without,omitempty"`
	// Packed is Old and Olds, compressed.
	Packed string `json:"packed,omitempty"`
}

// sealed are essences as a text has them. Few passes want to see them, and whoever may edit the object can have made them a
// thousand times as large as the text, so they are decoded when they are asked for, and in proportion to the object.
type sealed struct {
	Old     json.RawMessage `json:"old"`
	Olds    json.RawMessage `json:"olds"`
	Fields  []string        `json:"fields"`
	Without []string        `json:"without"`
	Packed  string          `json:"packed"`

	// also are ids that handlers have now, with those that they had: {was, is}.
	also [][2]string
	// legacy is what else a text of version 1 says, where they are of one.
	legacy *legacy
	// opened is what met has returned.
	opened *essences
	asked  bool
}

// What essences may weigh once they are decoded, as [book.Weight] has it: leastWeight at any rate, and from there on
// timesLive times as much as the object itself, up to mostWeight. What is stored weighs no more than that.
const (
	leastWeight = 4 << 20
	timesLive   = 4
	mostWeight  = 16 << 20
)

// open decodes essences for an object. The error says that they are not readable, or too large for the object.
func (s *sealed) open(look *Look) (*essences, error) {
	if s == nil {
		return nil, nil
	}
	t := treesText{s.Old, s.Olds}
	if s.Packed != "" {
		data, err := Unpack(s.Packed)
		if err != nil {
			return nil, err
		}
		if t = (treesText{Old: data}); s.legacy == nil {
			t = treesText{}
			err = json.Unmarshal(data, &t)
		}
		if err != nil {
			return nil, err
		}
	}
	if weight := Weight(t.Old) + Weight(t.Olds); weight > leastWeight && weight > min(mostWeight, timesLive*look.weight()) {
		return nil, fmt.Errorf("%w: it would take %d MiB", ErrLarge, weight>>20)
	}
	x := &essences{Fields: s.Fields, Without: s.Without}
	if err := t.into(x); err != nil {
		return nil, err
	}
	if s.legacy != nil {
		x = s.legacy.kept(x.Old)
	}
	for _, ids := range s.also {
		x = x.renamed(ids[0], ids[1])
	}
	return x, nil
}

// met is open for a book that is met, which decodes them once. What cannot be read is not there.
func (s *sealed) met(m Moment) *essences {
	if s == nil {
		return nil
	}
	if !s.asked {
		var err error
		if s.opened, err = s.open(m.Look); err != nil && m.Lost != nil {
			m.Lost(fmt.Errorf("decoding what handlers have handled: %w", err))
		}
		s.asked = true
	}
	return s.opened
}

// renamed returns essences for a handler under another id, too.
func (s *sealed) renamed(was, id string) *sealed {
	if s == nil {
		return nil
	}
	out := *s
	out.also = append(slices.Clone(s.also), [2]string{was, id})
	return &out
}

// treesText is trees before they are decoded.
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

// of returns what is kept for a handler, and what that is of: the whole essence, or fields. The tree is
// nil when nothing is. No essences at all are nil.
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

// renamed returns what is kept, for a handler under another id.
func (x *essences) renamed(was, id string) *essences {
	if x == nil {
		return nil
	}
	out := *x
	if own, has := x.Olds[was]; has {
		out.Olds = maps.Clone(x.Olds)
		out.Olds[id] = own
	}
	if slices.Contains(x.Without, was) {
		out.Without = append(slices.Clone(x.Without), id)
	}
	return &out
}

// gather collects what is kept for handlers.
func (b Book) gather(readers []Reader, look *Look) (x essences) {
	trees := make([]map[string]any, len(readers))
	for i, r := range readers {
		if !r.Old {
			continue
		}
		if e, _ := b.Entry(r.ID); e.Seen == look.Digest(r.View) {
			trees[i] = look.Kept(r.View)
		} else {
			trees[i], _ = b.Old(r, look) // what cannot be read is not kept any longer; it was said when the handler was to see it
		}
		x.lay(r.View, trees[i])
	}
	for i, r := range readers {
		switch {
		case !r.Old || trees[i] != nil && x.serves(r.View, trees[i]):
		case trees[i] == nil:
			x.Without = append(x.Without, r.ID)
		default:
			if x.Olds == nil {
				x.Olds = map[string]map[string]any{}
			}
			x.Olds[r.ID] = trees[i]
		}
	}
	return x
}

// lay adds what a handler has handled to what is kept for most.
func (x *essences) lay(v View, tree map[string]any) {
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

// serves reports whether what is kept for most is what a handler has handled.
func (x essences) serves(v View, tree map[string]any) bool {
	if len(x.Fields) == 0 && !v.within(true, nil) {
		return false
	}
	return reflect.DeepEqual(lookBack(x.Old).Kept(v), tree)
}

// trees are the part of essences that is compressed.
type trees struct {
	Old  map[string]any            `json:"old,omitzero"`
	Olds map[string]map[string]any `json:"olds,omitempty"`
}

// pack compresses what is kept when it is large. The error is [book.ErrLarge] when the result is larger
// than [book.Unpack] takes.
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
