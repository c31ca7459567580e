// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// Inventory is the owner's list of its labelled children, of children that outlive it, and of the objects that its
// handlers patch. It is kept in an annotation of the owner. Only people who may write the owner can write it, so a
// label counts as a tie only for the children in it. An inventory does not change; nil is no inventory.
type Inventory struct {
	// since is when the inventory was begun, in whole seconds. Children from before may be missing in it.
	since time.Time
	// lines have places and titles, as line writes them, in the order of the places. There may be thousands, and people
	// who may edit the owner write them, so they are held as text.
	lines []string
	// targets are the patched objects, in order.
	targets []Target
}

// The limits of an inventory. The annotations of an object have room for at most some 20,000 children, if their names
// are alike.
const (
	// mostPlaces is how many children an inventory lists.
	mostPlaces = 10_000
	// mostText is how many bytes their lines may have together.
	mostText = 1 << 20
)

// unknownTitle is the title of a place whose child the inventory does not name.
const unknownTitle = "?"

// line returns the stored form of a place and its title. A title has no space.
func line(place Place, title string) string {
	if title == unknownTitle {
		return place.String()
	}
	return place.String() + " " + title
}

// parseLine parses the form that line returns.
func parseLine(text string) (place Place, title string, ok bool) {
	title = unknownTitle
	if i := strings.LastIndexByte(text, ' '); i >= 0 && (i == len(text)-1 || strings.Contains(text[i:], "/")) {
		text, title = text[:i], text[i+1:]
	}
	place, ok = ParsePlace(text)
	return place, title, ok
}

// storedInventory is the form of the annotation. Version comes first: its key marks the annotation as an operator's.
type storedInventory struct {
	Version  int       `json:"handwerk"`
	UID      types.UID `json:"uid"`
	Since    time.Time `json:"since"`
	Children []string  `json:"children,omitempty"`
	Packed   string    `json:"packed,omitempty"`
	// Targets are the patched objects. PackedTargets has them if they are many.
	Targets       []string `json:"targets,omitempty"`
	PackedTargets string   `json:"packedTargets,omitempty"`
}

// ParseInventory parses the annotation of an owner. It returns nil for an empty text, and for a text that was copied
// from an object with another uid. With an error about some targets it returns an inventory of the others, because
// nothing else lists them.
func ParseInventory(text string, owner types.UID) (*Inventory, error) {
	if text == "" {
		return nil, nil
	}
	var in storedInventory
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return nil, fmt.Errorf("decoding inventory of children: %w", err)
	}
	if in.Version != 1 {
		return nil, fmt.Errorf("decoding inventory of children: version %d is not known", in.Version)
	}
	if in.UID != owner {
		return nil, nil
	}
	if err := errors.Join(unpack(in.Packed, &in.Children), unpack(in.PackedTargets, &in.Targets)); err != nil {
		return nil, fmt.Errorf("decoding inventory of children: %w", err)
	}
	if err := bounded(in.Children); err != nil {
		return nil, fmt.Errorf("decoding inventory of children: %w", err)
	}
	for _, text := range in.Children {
		if _, _, ok := parseLine(text); !ok {
			return nil, fmt.Errorf("decoding inventory of children: %.200q is not a place", text)
		}
	}
	targets, err := parseTargets(in.Targets, owner)
	if err != nil {
		err = fmt.Errorf("decoding inventory of children: %w", err)
	}
	return &Inventory{since: in.Since, lines: compacted(in.Children), targets: targets}, err
}

// unpack reads packed lines. If the text is empty, it leaves the lines as they are.
func unpack(text string, lines *[]string) error {
	if text == "" {
		return nil
	}
	data, err := progress.Unpack(text)
	if err == nil && len(data) > 2*mostText {
		err = progress.ErrLarge
	}
	if err == nil {
		err = json.Unmarshal(data, lines)
	}
	return err
}

// pack packs lines if they are long. Otherwise it returns the lines.
func pack(lines []string) (plain []string, packed string, err error) {
	size := 0
	for _, text := range lines {
		size += len(text)
	}
	if size < progress.From {
		return lines, "", nil
	}
	list, err := json.Marshal(lines)
	if err == nil {
		packed, err = progress.Pack(list)
	}
	return nil, packed, err
}

// bounded returns an error if lines exceed the limits of an inventory.
func bounded(lines []string) error {
	size := 0
	for _, text := range lines {
		size += len(text)
	}
	switch {
	case len(lines) > mostPlaces:
		return fmt.Errorf("it has %d children, and there is room for %d", len(lines), mostPlaces)
	case size > mostText:
		return fmt.Errorf("its children have %d bytes, and there is room for %d", size, mostText)
	}
	return nil
}

// compacted returns lines in the order of their places, only the last one of each place, as parts of one text.
func compacted(lines []string) []string {
	slices.SortStableFunc(lines, func(a, b string) int { return comparePlaces(placeIn(a), placeIn(b)) })
	text := strings.Join(lines, "")
	out := make([]string, 0, len(lines))
	for i, at := 0, 0; i < len(lines); i++ {
		one := text[at : at+len(lines[i])]
		at += len(one)
		if last := len(out) - 1; last >= 0 && placeIn(out[last]) == placeIn(one) {
			out[last] = one
			continue
		}
		out = append(out, one)
	}
	return slices.Clip(out)
}

// placeIn returns the place of a line that was parsed before.
func placeIn(text string) Place {
	place, _, _ := parseLine(text)
	return place
}

func comparePlaces(a, b Place) int {
	return cmp.Or(cmp.Compare(a.Kind.Group, b.Kind.Group), cmp.Compare(a.Kind.Kind, b.Kind.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// find returns the index at which the line of a place is, or belongs.
func (r *Inventory) find(place Place) (at int, found bool) {
	if r == nil {
		return 0, false
	}
	return slices.BinarySearchFunc(r.lines, place, func(text string, place Place) int { return comparePlaces(placeIn(text), place) })
}

// Encode returns the annotation's value for the owner. The error is permanent if the inventory exceeds its limits.
func (r *Inventory) Encode(owner types.UID) (string, error) {
	if err := bounded(r.lines); err != nil {
		return "", dsl.Permanent(fmt.Errorf("encoding inventory of children: %w: give one object fewer children that are labelled, or that stay when it is deleted", err))
	}
	if len(r.targets) > mostTargets {
		return "", dsl.Permanent(fmt.Errorf("encoding inventory of children: its handlers patch %d objects, and there is room for %d", len(r.targets), mostTargets))
	}
	targets := make([]string, len(r.targets))
	for i, t := range r.targets {
		targets[i] = t.line()
	}
	out := storedInventory{Version: 1, UID: owner, Since: r.since}
	var faults [2]error
	out.Children, out.Packed, faults[0] = pack(r.lines)
	out.Targets, out.PackedTargets, faults[1] = pack(targets)
	if err := errors.Join(faults[:]...); err != nil {
		return "", fmt.Errorf("encoding inventory of children: %w", err)
	}
	data, err := json.Marshal(out)
	if err != nil {
		return "", fmt.Errorf("encoding inventory of children: %w", err)
	}
	return string(data), nil
}

// Empty reports whether the inventory lists nothing.
func (r *Inventory) Empty() bool { return r == nil || len(r.lines) == 0 }

// Lists reports whether a place is in the inventory.
func (r *Inventory) Lists(place Place) bool {
	_, found := r.find(place)
	return found
}

// Title returns the title of the child at a listed place; known is false if the inventory has none. The child's own
// annotation does not count: people who may write the child can pass it for another one.
func (r *Inventory) Title(place Place) (title string, known bool) {
	at, found := r.find(place)
	if !found {
		return "", false
	}
	_, title, _ = parseLine(r.lines[at])
	return title, title != unknownTitle
}

// Places returns the places in the inventory, sorted.
func (r *Inventory) Places() []Place {
	if r.Empty() {
		return nil
	}
	out := make([]Place, len(r.lines))
	for i, text := range r.lines {
		out[i] = placeIn(text)
	}
	return out
}

// With returns the inventory with more places and their titles. A new inventory begins now.
func (r *Inventory) With(now time.Time, titles map[Place]string) *Inventory {
	out := &Inventory{since: now.UTC().Truncate(time.Second)}
	if r != nil {
		out.since, out.lines, out.targets = r.since, slices.Grow(slices.Clone(r.lines), len(titles)), slices.Clone(r.targets)
	}
	for place, title := range titles {
		at, found := out.find(place)
		if !found {
			out.lines = slices.Insert(out.lines, at, "")
		}
		out.lines[at] = line(place, title)
	}
	return out
}

// Without returns the inventory without some of its places.
func (r *Inventory) Without(places ...Place) *Inventory {
	if r == nil {
		return nil
	}
	drop := map[int]bool{}
	for _, place := range places {
		if at, found := r.find(place); found {
			drop[at] = true
		}
	}
	out := &Inventory{since: r.since, lines: make([]string, 0, len(r.lines)-len(drop)), targets: slices.Clone(r.targets)}
	for i, text := range r.lines {
		if !drop[i] {
			out.lines = append(out.lines, text)
		}
	}
	return out
}

// missed reports whether an object may be a child that the inventory lacks, because the child is older than the
// inventory: an earlier inventory was lost. Creation times have whole seconds. For a child from the second in which the
// inventory was begun, closed decides.
func (r *Inventory) missed(o *unstructured.Unstructured, closed bool) bool {
	if r == nil {
		return true
	}
	made := o.GetCreationTimestamp()
	return made.Time.Before(r.since) || !closed && !made.After(r.since)
}
