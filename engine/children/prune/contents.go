// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// mostKinds is how many kinds count in a register, for all resources together.
const mostKinds = 1000

// contents has the entries of a ConfigMap that count, and the number of the others.
type contents struct {
	kinds map[string][]schema.GroupKind
	// foreign are the keys that somebody else wrote last. They do not count.
	foreign []string
	// faulty counts the lines that name no kind, and surplus the kinds beyond mostKinds.
	faulty, surplus int
}

// read returns the contents of a ConfigMap; empty for nil. Only entries by one of these field managers count.
func read(o *unstructured.Unstructured, managers []string) contents {
	c := contents{kinds: map[string][]schema.GroupKind{}}
	if o == nil {
		return c
	}
	data, _, _ := unstructured.NestedMap(o.Object, "data")
	ours, count := written(o, managers), 0
	for _, resource := range slices.Sorted(maps.Keys(data)) {
		if !ours[resource] {
			c.foreign = append(c.foreign, resource)
			continue
		}
		text, _ := data[resource].(string)
		for line := range strings.FieldsSeq(text) {
			kind, sound := parse(line)
			switch {
			case !sound:
				c.faulty++
			case count == mostKinds:
				c.surplus++
			default:
				c.kinds[resource] = append(c.kinds[resource], kind)
				count++
			}
		}
	}
	return c
}

// whole reports whether all of the ConfigMap counts.
func (c contents) whole() bool { return len(c.foreign) == 0 && c.faulty == 0 && c.surplus == 0 }

// number returns the number of kinds.
func (c contents) number() (n int) {
	for _, kinds := range c.kinds {
		n += len(kinds)
	}
	return n
}

// parse parses a line. Sound is true if the line names a possible kind.
func parse(line string) (kind schema.GroupKind, sound bool) {
	kind = schema.ParseGroupKind(line)
	sound = len(validation.IsDNS1035Label(strings.ToLower(kind.Kind))) == 0 &&
		(kind.Group == "" || len(validation.IsDNS1123Subdomain(kind.Group)) == 0)
	return kind, sound
}

// written returns the keys whose values these field managers wrote. If somebody else writes another value, the key is
// theirs alone.
func written(o *unstructured.Unstructured, managers []string) map[string]bool {
	keys := map[string]bool{}
	for _, entry := range o.GetManagedFields() {
		if slices.Contains(managers, entry.Manager) {
			for _, key := range dataOf(entry) {
				keys[key] = true
			}
		}
	}
	return keys
}

// writers returns the other field managers that have written data.
func writers(o *unstructured.Unstructured, managers []string) (out []string) {
	for _, entry := range o.GetManagedFields() {
		if !slices.Contains(managers, entry.Manager) && len(dataOf(entry)) > 0 {
			out = append(out, entry.Manager)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// dataOf returns the keys of data that an entry has.
func dataOf(entry metav1.ManagedFieldsEntry) (keys []string) {
	var fields struct {
		Data map[string]any `json:"f:data"`
	}
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return nil
	}
	for field := range fields.Data {
		if key, is := strings.CutPrefix(field, "f:"); is {
			keys = append(keys, key)
		}
	}
	return keys
}

// RegisteredKinds returns the kinds in a ConfigMap, as far as one of these field managers wrote them; none for nil.
func RegisteredKinds(o *unstructured.Unstructured, managers []string) (out []schema.GroupKind) {
	kinds := read(o, managers).kinds
	for _, resource := range slices.Sorted(maps.Keys(kinds)) {
		out = append(out, kinds[resource]...)
	}
	return out
}
