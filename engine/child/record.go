// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/engine/pack"
)

// Place says where a child is: its kind, namespace and name.
type Place = OwnerName

// PlaceOf returns the place of an object.
func PlaceOf(o *unstructured.Unstructured) Place {
	return Place{o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
}

// Record is the owner's list of its labelled children. It is kept in an annotation of the owner, which nobody can write who
// may only write objects elsewhere, so a label counts as a tie just for what it lists. A record does not change; nil is no record.
type Record struct {
	// since is when the record was begun, in whole seconds: no child of before can be in it by itself.
	since time.Time
	// places have what is there, as Which says it.
	places map[Place]string
}

// untold is the title of a place of which the record does not say which child it is.
const untold = "?"

// line is how a place and its title are stored. A title has no space.
func line(place Place, title string) string {
	if title == untold {
		return place.String()
	}
	return place.String() + " " + title
}

// parseLine reads what line wrote.
func parseLine(text string) (place Place, title string, ok bool) {
	title = untold
	if i := strings.LastIndexByte(text, ' '); i >= 0 && (i == len(text)-1 || strings.Contains(text[i:], "/")) {
		text, title = text[:i], text[i+1:]
	}
	place, ok = ParseOwnerName(text)
	return place, title, ok
}

// storedRecord is the form of the annotation. Version comes first: its key marks the annotation as an operator's.
type storedRecord struct {
	Version  int       `json:"handwerk"`
	UID      types.UID `json:"uid"`
	Since    time.Time `json:"since"`
	Children []string  `json:"children,omitempty"`
	Packed   string    `json:"packed,omitempty"`
}

// ParseRecord reads the annotation of an owner. An empty text, and one that was written for an
// object of another uid and copied with the annotations, is no record.
func ParseRecord(text string, owner types.UID) (*Record, error) {
	if text == "" {
		return nil, nil
	}
	var in storedRecord
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return nil, fmt.Errorf("decoding record of children: %w", err)
	}
	if in.Version != 1 {
		return nil, fmt.Errorf("decoding record of children: version %d is not known", in.Version)
	}
	if in.UID != owner {
		return nil, nil
	}
	if in.Packed != "" {
		data, err := pack.Unpack(in.Packed)
		if err == nil {
			err = json.Unmarshal(data, &in.Children)
		}
		if err != nil {
			return nil, fmt.Errorf("decoding record of children: %w", err)
		}
	}
	out := &Record{since: in.Since, places: make(map[Place]string, len(in.Children))}
	for _, text := range in.Children {
		place, title, ok := parseLine(text)
		if !ok {
			return nil, fmt.Errorf("decoding record of children: %q is no place", text)
		}
		out.places[place] = title
	}
	return out, nil
}

// Encode returns the annotation's value for the owner.
func (r *Record) Encode(owner types.UID) (string, error) {
	out := storedRecord{Version: 1, UID: owner, Since: r.since}
	size := 0
	for _, place := range r.Places() {
		text := line(place, r.places[place])
		out.Children = append(out.Children, text)
		size += len(text)
	}
	if size >= pack.From {
		list, err := json.Marshal(out.Children)
		if err == nil {
			out.Packed, err = pack.Pack(list)
		}
		if err != nil {
			return "", fmt.Errorf("encoding record of children: %w", err)
		}
		out.Children = nil
	}
	data, err := json.Marshal(out)
	if err != nil {
		return "", fmt.Errorf("encoding record of children: %w", err)
	}
	return string(data), nil
}

// Lists reports whether a place is in the record.
func (r *Record) Lists(place Place) bool {
	if r == nil {
		return false
	}
	_, found := r.places[place]
	return found
}

// Title returns which child is at a place that the record lists; told is false where it does not say.
// Who may write the child can change what its annotation says, and pass it for another one.
func (r *Record) Title(place Place) (title string, told bool) {
	if !r.Lists(place) {
		return "", false
	}
	title = r.places[place]
	return title, title != untold
}

// Places returns what is in the record, sorted.
func (r *Record) Places() []Place {
	if r == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(r.places), func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Kind.Group, b.Kind.Group), cmp.Compare(a.Kind.Kind, b.Kind.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// With returns the record with more places, and what is there. One that there was none of is begun now.
func (r *Record) With(now time.Time, titles map[Place]string) *Record {
	out := &Record{since: now.UTC().Truncate(time.Second), places: map[Place]string{}}
	if r != nil {
		out.since, out.places = r.since, maps.Clone(r.places)
	}
	maps.Copy(out.places, titles)
	return out
}

// Without returns the record without some of its places.
func (r *Record) Without(places ...Place) *Record {
	if r == nil {
		return nil
	}
	out := &Record{since: r.since, places: maps.Clone(r.places)}
	for _, place := range places {
		delete(out.places, place)
	}
	return out
}

// missed reports whether an object may be a child that the record does not list because it was made before there was one. Its
// creation is told in seconds, so what was made in the second in which the record was begun may be older or not; closed decides.
func (r *Record) missed(o *unstructured.Unstructured, closed bool) bool {
	if r == nil {
		return true
	}
	made := o.GetCreationTimestamp()
	return made.Time.Before(r.since) || !closed && !made.After(r.since)
}
