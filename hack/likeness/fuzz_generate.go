// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed fuzz.yaml
var fuzzData []byte

// pools are what requests are made of.
type pools struct {
	Kinds []fuzzKind
	// Fields are values for fields that all kinds have, by their paths, and Queries values for parameters by what a request does.
	Fields  map[string][]any
	Queries map[string]map[string][]string
	// Bodies are no objects, and Options are bodies of deletions.
	Bodies  []string
	Options []any
}

// fuzzKind is a kind of objects.
type fuzzKind struct {
	// Path is that of its list.
	Path         string
	Object       map[string]any
	Fields       map[string][]any
	Subresources []string
}

// data returns what requests are made of. It is not to be changed.
var data = sync.OnceValue(func() (out pools) {
	if err := yaml.Unmarshal(fuzzData, &out); err != nil {
		panic("likeness: reading fuzz.yaml: " + err.Error()) // not reached: a test reads it
	}
	return out
})

// outside returns the lists of objects outside of namespaces.
func outside() (out []string) {
	for _, kind := range data().Kinds {
		if !strings.Contains(kind.Path, "$ns") {
			out = append(out, kind.Path)
		}
	}
	return out
}

// generator makes the requests of a sequence, which are about one kind.
type generator struct {
	*rand.Rand
	kind fuzzKind
}

// mostRequests is how many requests a sequence can have.
const mostRequests = 8

// generate returns a sequence. Its first request creates an object, most often a valid one.
func generate(random *rand.Rand) (out []request) {
	g := generator{random, pick(random, data().Kinds)}
	out = append(out, g.create())
	for range 1 + random.IntN(mostRequests-1) {
		out = append(out, g.next())
	}
	return out
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// next returns a request of any sort.
func (g generator) next() request {
	switch n := g.IntN(100); {
	case n < 20:
		return g.create()
	case n < 28:
		return g.with("get", request{method: http.MethodGet, path: g.name()})
	case n < 40:
		return g.with("list", request{method: http.MethodGet, path: g.kind.Path})
	case n < 55:
		return g.with("write", request{method: http.MethodPut, path: g.target(), body: encode(g.object())})
	case n < 82:
		return g.patch()
	case n < 92:
		return g.deletion(g.name())
	case n < 95:
		return g.deletion(g.kind.Path)
	}
	return g.with("write", request{method: pick(g.Rand, []string{http.MethodPost, http.MethodPut}), path: g.target(), body: pick(g.Rand, data().Bodies)})
}

// name returns the path of one of a few objects, of which some are there.
func (g generator) name() string {
	return g.kind.Path + "/" + pick(g.Rand, []string{"a", "a", "a", "b"})
}

// target returns the path of an object or of one of its subresources.
func (g generator) target() string {
	if len(g.kind.Subresources) > 0 && g.IntN(5) == 0 {
		return g.name() + "/" + pick(g.Rand, g.kind.Subresources)
	}
	return g.name()
}

func (g generator) create() request {
	return g.with("write", request{method: http.MethodPost, path: g.kind.Path, body: encode(g.object())})
}

func (g generator) deletion(path string) request {
	r := g.with("delete", request{method: http.MethodDelete, path: path})
	if g.IntN(2) == 0 {
		r.body = encode(pick(g.Rand, data().Options))
	}
	return r
}

// patch returns a patch of one of four sorts.
func (g generator) patch() request {
	r := request{method: http.MethodPatch, path: g.target()}
	object := g.object()
	switch g.IntN(4) {
	case 0:
		r.header, r.body = patchType("json-patch+json"), encode(g.operations())
	case 1:
		r.header, r.body = patchType("apply-patch+yaml"), encode(object)
		return g.with("apply", r)
	case 2:
		r.header, r.body = patchType("merge-patch+json"), encode(g.changes())
	case 3:
		r.header, r.body = patchType("strategic-merge-patch+json"), encode(g.changes())
	}
	return g.with("write", r)
}

func patchType(kind string) map[string]string {
	return map[string]string{"Content-Type": "application/" + kind}
}

// object returns an object of the kind in which some fields have other values.
func (g generator) object() map[string]any {
	out := clone(g.kind.Object).(map[string]any)
	set(out, []string{"metadata", "name"}, pick(g.Rand, []string{"a", "a", "a", "b"}))
	for range pick(g.Rand, []int{0, 0, 1, 1, 2}) {
		path, value := g.field()
		set(out, path, value)
	}
	return out
}

// changes returns the body of a merge patch.
func (g generator) changes() map[string]any {
	out := map[string]any{}
	for range 1 + g.IntN(2) {
		path, value := g.field()
		set(out, path, value)
	}
	return out
}

// operations returns the body of a JSON patch.
func (g generator) operations() (out []any) {
	for range 1 + g.IntN(2) {
		path, value := g.field()
		for i := range path {
			path[i] = strings.ReplaceAll(strings.ReplaceAll(path[i], "~", "~0"), "/", "~1")
		}
		one := map[string]any{"op": pick(g.Rand, []string{"add", "replace", "remove", "test", "copy", "other"}), "path": "/" + strings.Join(path, "/"), "value": value}
		if one["op"] == "copy" {
			one["from"] = "/metadata/name"
		}
		if one["op"] == "remove" {
			delete(one, "value")
		}
		out = append(out, one)
	}
	return out
}

// field returns a path and a value for it: one of the kind, or of all kinds.
func (g generator) field() ([]string, any) {
	from := g.kind.Fields
	if len(from) == 0 || g.IntN(3) == 0 {
		from = data().Fields
	}
	path := pick(g.Rand, slices.Sorted(maps.Keys(from)))
	return strings.Split(path, "."), clone(pick(g.Rand, from[path]))
}

// with adds parameters to the query of a request.
func (g generator) with(what string, r request) request {
	known := data().Queries[what]
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if g.IntN(len(known)+2) == 0 {
			separator := "?"
			if strings.Contains(r.path, "?") {
				separator = "&"
			}
			r.path += separator + name + "=" + pick(g.Rand, known[name])
		}
	}
	return r
}

// set sets a field of an object; what is no object on its way becomes one.
func set(object map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		below, is := object[name].(map[string]any)
		if !is {
			below = map[string]any{}
			object[name] = below
		}
		object = below
	}
	object[path[len(path)-1]] = value
}

func clone(value any) (out any) {
	if err := json.Unmarshal([]byte(encode(value)), &out); err != nil {
		panic("likeness: " + err.Error()) // not reached: it was encoded just now
	}
	return out
}

func encode(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("likeness: encoding %v: %v", value, err)) // not reached: trees can be encoded
	}
	return string(out)
}
