// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/pack"
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
			trees[i] = b.Old(r)
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

// pack compresses what is kept when it is large.
func (x *essences) pack() error {
	data, err := json.Marshal(trees{x.Old, x.Olds})
	if err != nil || len(data) < pack.From {
		return err
	}
	x.Packed, err = pack.Pack(data)
	x.Old, x.Olds = nil, nil
	return err
}

// unpack is the reverse of pack.
func (x *essences) unpack() error {
	if x.Packed == "" {
		return nil
	}
	var t trees
	data, err := pack.Unpack(x.Packed)
	if err == nil {
		err = utiljson.Unmarshal(data, &t)
	}
	x.Old, x.Olds, x.Packed = t.Old, t.Olds, ""
	return err
}
