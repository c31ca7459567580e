// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"bytes"
	"strconv"
	"strings"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/dsl/plain/scan"
)

// carried is the key of an Object in an Unstructured. Objects of the server do not have this key.
const carried = "\x00object"

// Carrier returns an object for client-go's informers, with the Object for their transform and only the fields that
// informers need before: kind, key and version.
func Carrier(o *Object) unstructured.Unstructured {
	kind, metadata := o.kind.Value(), map[string]any{"name": o.name, "resourceVersion": o.GetResourceVersion()}
	if namespace := o.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	return unstructured.Unstructured{Object: map[string]any{"apiVersion": kind.apiVersion, "kind": kind.kind, "metadata": metadata, carried: o}}
}

// cutter makes objects from JSON.
type cutter struct {
	form  Form
	keep  projection
	notes notes
	press *Compressor
}

// object makes an Object from JSON, with a copy of the held parts.
func (c *cutter) object(json []byte, b *buffer) *Object {
	return c.held(c.cut(json, b), b)
}

// held gives an Object its body, as far as that is held.
func (c *cutter) held(o *Object, b *buffer) *Object {
	if c.form.Profile == dsl.CacheLive {
		o.metadata.from, o.metadata.to = 0, 0
		return o
	}
	o.body, b.pressed = c.press.hold(b.cut, b.pressed)
	return o
}

// cut makes an Object without its body, and leaves the held parts in the buffer. It walks the JSON once.
func (c *cutter) cut(json []byte, b *buffer) *Object {
	nothing := unique.Make("")
	o, kind, out := &Object{namespace: nothing}, typeMeta{}, append(b.cut[:0], '{')
	for key, value := range scan.Members(json) {
		below, held := c.keep.below(key)
		switch string(key) {
		case "apiVersion":
			kind.apiVersion = scan.Text(value)
		case "kind":
			kind.kind = scan.Text(value)
		case "metadata":
			if value[0] != '{' {
				break
			}
			out = appendKey(out, key)
			from := len(out)
			*o = Object{namespace: nothing} // the last of several counts
			out, b.marked = c.metadata(o, out, value, kind.apiVersion)
			o.metadata.from, o.metadata.to = uint32(from), uint32(len(out))
			continue
		}
		if held {
			out = below.member(out, key, value)
		}
	}
	b.cut = append(out, '}')
	o.kind = unique.Make(kind)
	return o
}

// stored reports whether an Object, as cut makes it, is one that is stored. A Status and a bookmark have no uid; a
// bookmark with one is recognised by its annotation.
func (o *Object) stored(b *buffer) bool {
	kind := o.kind.Value()
	return o.uid != "" && !b.marked && kind.kind != "" && kind.apiVersion != ""
}

// metadata appends metadata with the held managedFields entries, and decodes the fields for the object. Marked: they are
// the metadata of the bookmark at the end of a streamed list. Version is the object's apiVersion.
func (c *cutter) metadata(o *Object, out, metadata []byte, version string) (_ []byte, marked bool) {
	more := rare{}
	out = append(out, '{')
	for key, value := range scan.Members(metadata) {
		switch string(key) {
		case "managedFields":
			out = appendEntries(out, value, c.managers(metadata, version))
			continue
		case "annotations":
			marked = bytes.Contains(value, []byte(metav1.InitialEventsAnnotationKey))
			out = c.notes.append(out, key, value)
			continue
		case "namespace":
			o.namespace = unique.Make(scan.Text(value))
		case "name":
			o.name = scan.Text(value)
		case "uid":
			o.uid = types.UID(scan.Text(value))
		case "resourceVersion":
			o.version, more.version = versionOf(scan.Text(value))
		case "generation":
			o.generation, _ = scan.Value(value).(int64)
		case "creationTimestamp":
			o.created = moment(value)
		default:
			more.pick(key, value, c.form.Owner)
		}
		out = append(appendKey(out, key), value...)
	}
	if more.version != "" || more.deleted != 0 || more.owners != nil || more.owned != "" {
		o.rare = &more
	}
	return append(out, '}'), marked
}

// pick decodes a member of the metadata. Owner is the key of the owner label.
func (r *rare) pick(key, value []byte, owner string) {
	switch string(key) {
	case "deletionTimestamp":
		r.deleted = moment(value)
	case "ownerReferences":
		r.owners = ownersIn(value)
	case "labels":
		r.owned = scan.Text(scan.Member(value, owner))
	}
}

// managers returns the field managers whose entries are held for an object.
func (c *cutter) managers(metadata []byte, version string) managers {
	out := managers{markers: c.form.Markers, own: c.form.Own}
	group, _, _ := strings.Cut(version, "/")
	if strings.Contains(group, ".") && group != "meta.k8s.io" { // the server itself drops entries of built-in kinds
		out.version = version
	}
	if c.form.Made != "" {
		mark := scan.Text(scan.Member(scan.Member(metadata, "annotations"), c.form.Made))
		if mark != "" {
			out.version = "" // a child's are renewed when it is applied
		}
		out.hands, out.all = strings.HasPrefix(mark, bookkeeping.AppliedMark), strings.HasPrefix(mark, bookkeeping.StrictMark)
	}
	return out
}

// managers selects entries of managedFields by their managers. It selects managers whose names begin with one of the
// markers, and people's tools if hands is set. If all is set, it selects each manager of fields outside of subresources,
// except for the operator and the control plane. If version is set, it also selects the operator's own entries of other
// versions.
type managers struct {
	markers, own, version string
	hands, all            bool
}

// hold reports whether an entry of managedFields is held.
func (m managers) hold(entry []byte) bool {
	manager := scan.Text(scan.Member(entry, "manager"))
	switch {
	case m.marks(manager), m.hands && bookkeeping.HandOf(manager) != bookkeeping.NoHand:
		return true
	case m.version != "" && m.isOwn(manager):
		return scan.Text(scan.Member(entry, "apiVersion")) != m.version
	case !m.all || manager == m.current() || bookkeeping.ControlPlane(manager):
		return false
	}
	return scan.Text(scan.Member(entry, "subresource")) == ""
}

// isOwn reports whether a field manager is the operator under one of its names, or one of its patches or marks.
func (m managers) isOwn(manager string) bool {
	for name := range strings.SplitSeq(m.own, ",") {
		rest, found := strings.CutPrefix(manager, name)
		if name != "" && found && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// current returns the operator's field manager under its current name.
func (m managers) current() string {
	name, _, _ := strings.Cut(m.own, ",")
	return name
}

// differ reports whether an entry may be of another version. Most objects have none, so it looks for text alone.
func (m managers) differ(managedFields []byte) bool {
	const key = `"apiVersion":"`
	for at := 0; m.version != "" && at >= 0; {
		if at = bytes.Index(managedFields, []byte(key)); at >= 0 {
			managedFields = managedFields[at+len(key):]
			if rest, same := bytes.CutPrefix(managedFields, []byte(m.version)); !same || !bytes.HasPrefix(rest, []byte{'"'}) {
				return true
			}
		}
	}
	return false
}

func (m managers) marks(manager string) bool {
	for prefix := range strings.SplitSeq(m.markers, ",") {
		if prefix != "" && strings.HasPrefix(manager, prefix) {
			return true
		}
	}
	return false
}

// appendEntries appends the held managedFields entries, if there are any.
func appendEntries(out, managedFields []byte, held managers) []byte {
	if held.markers == "" && !held.hands && !held.differ(managedFields) {
		return out
	}
	before := len(out)
	for entry := range scan.Elements(managedFields) {
		if !held.hold(entry) {
			continue
		}
		if len(out) == before {
			out = append(appendKey(out, []byte("managedFields")), '[')
		} else {
			out = append(out, ',')
		}
		out = append(out, entry...)
	}
	if len(out) > before {
		out = append(out, ']')
	}
	return out
}

// appendKey appends a member's key as written, with a comma before it if needed.
func appendKey(out, key []byte) []byte {
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	return append(append(append(out, '"'), key...), '"', ':')
}

// below reports whether a member is held, and which parts of it.
func (p projection) below(key []byte) (projection, bool) {
	if len(p) == 0 {
		return nil, true
	}
	below, held := p[string(key)]
	if !held && bytes.IndexByte(key, '\\') >= 0 {
		below, held = p[scan.Key(key)]
	}
	return below, held
}

// member appends the held parts of a member. Paths do not go on in values that are not maps.
func (p projection) member(out, key, value []byte) []byte {
	if len(p) == 0 {
		return append(appendKey(out, key), value...)
	}
	if value[0] != '{' {
		return out
	}
	out = append(appendKey(out, key), '{')
	for key, value := range scan.Members(value) {
		if below, held := p.below(key); held {
			out = below.member(out, key, value)
		}
	}
	return append(out, '}')
}

// versionOf returns a resource version as a number, or as text if it is not in the form of a number.
func versionOf(text string) (number uint64, odd string) {
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil || number == 0 || strconv.FormatUint(number, 10) != text {
		return 0, text
	}
	return number, ""
}

func moment(value []byte) seconds {
	at, err := time.Parse(time.RFC3339, scan.Text(value))
	if err != nil {
		return 0
	}
	return secondsOf(at)
}

func ownersIn(references []byte) (out []owner) {
	for ref := range scan.Elements(references) {
		var kind typeMeta
		var o owner
		for key, value := range scan.Members(ref) {
			switch string(key) {
			case "apiVersion":
				kind.apiVersion = scan.Text(value)
			case "kind":
				kind.kind = scan.Text(value)
			case "name":
				o.name = scan.Text(value)
			case "uid":
				o.uid = types.UID(scan.Text(value))
			case "controller":
				o.controller = string(value) == "true"
			case "blockOwnerDeletion":
				o.block = string(value) == "true"
			}
		}
		o.kind = unique.Make(kind)
		out = append(out, o)
	}
	return out
}
