// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"gopkg.in/yaml.v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// trees declares the functions that make maps of maps, and texts of values.
func trees() []cel.EnvOption {
	object, names := cel.MapType(cel.StringType, cel.DynType), cel.ListType(cel.StringType)
	one := func(t *cel.Type) []*cel.Type { return []*cel.Type{t} }
	return []cel.EnvOption{
		cel.Function("merge",
			cel.Overload("merge_map_map", []*cel.Type{object, object}, object, cel.BinaryBinding(merge))),
		cel.Function("combinations",
			cel.Overload("combinations_map", one(object), cel.ListType(object), cel.UnaryBinding(combinations))),
		cel.Function("omit",
			cel.Overload("omit_map_list", []*cel.Type{object, names}, object, cel.BinaryBinding(omit))),
		cel.Function("pick",
			cel.Overload("pick_map_list", []*cel.Type{object, names}, object, cel.BinaryBinding(pick))),
		cel.Function("json", cel.Overload("json_dyn", one(cel.DynType), cel.StringType, cel.UnaryBinding(toJSON))),
		cel.Function("unjson", cel.Overload("unjson_string", one(cel.StringType), cel.DynType, cel.UnaryBinding(fromJSON))),
		cel.Function("yaml", cel.Overload("yaml_dyn", one(cel.DynType), cel.StringType, cel.UnaryBinding(toYAML))),
		cel.Function("unyaml", cel.Overload("unyaml_string", one(cel.StringType), cel.DynType, cel.UnaryBinding(fromYAML))),
		cel.Function("sha256",
			cel.Overload("sha256_string", one(cel.StringType), cel.StringType),
			cel.Overload("sha256_bytes", one(cel.BytesType), cel.StringType),
			cel.SingletonUnaryBinding(digest)),
		cel.Function("random",
			cel.Overload("random_int_string", []*cel.Type{cel.IntType, cel.StringType}, cel.StringType, cel.BinaryBinding(random))),
	}
}

// tree returns a value of a function's argument as a plain one; nil for an absent optional.
func tree(function string, v ref.Val) (any, ref.Val) {
	value, err := plainValue(v, NewRoom(mostRendered))
	if err != nil {
		return nil, types.NewErr("%s(): %v", function, err)
	}
	if value == None {
		value = nil
	}
	return value, nil
}

// object is tree for an argument that is a map.
func object(function string, v ref.Val) (map[string]any, ref.Val) {
	value, fault := tree(function, v)
	if fault != nil {
		return nil, fault
	}
	out, is := value.(map[string]any)
	if !is {
		return nil, types.NewErr("%s(): want a map, found %s", function, named(v.Type().TypeName()))
	}
	return out, nil
}

func value(of any) ref.Val { return types.DefaultTypeAdapter.NativeToValue(of) }

// merge lays the second map over the first one: maps at all depths, while everything else is replaced.
func merge(under, over ref.Val) ref.Val {
	a, fault := object("merge", under)
	if fault != nil {
		return fault
	}
	b, fault := object("merge", over)
	if fault != nil {
		return fault
	}
	return value(laid(a, b))
}

// laid changes the first map.
func laid(under, over map[string]any) map[string]any {
	for key, b := range over {
		below, belowIs := under[key].(map[string]any)
		above, aboveIs := b.(map[string]any)
		if belowIs && aboveIs {
			b = laid(below, above)
		}
		under[key] = b
	}
	return under
}

// mostCombinations bounds what combinations makes, and mostEntries how many entries these have together: who writes the handled
// object may choose the keys, too.
const (
	mostCombinations = 10_000
	mostEntries      = 20 * mostCombinations
)

// combinations returns a map for each way to take one entry of each list of a map. The first keys change last.
func combinations(of ref.Val) ref.Val {
	lists, fault := object("combinations", of)
	if fault != nil {
		return fault
	}
	total := min(len(lists), 1)
	for _, each := range lists {
		list, is := each.([]any)
		if !is && each != nil {
			return types.NewErr("combinations(): want a list for each key")
		}
		total = min(total, mostCombinations+1) * len(list) // no lists are so long that this overflows
	}
	switch {
	case total > mostCombinations:
		return types.NewErr("combinations(): there are more than %d", mostCombinations)
	case total*len(lists) > mostEntries:
		return types.NewErr("combinations(): there are %d of %d entries, and %d entries are the limit", total, len(lists), mostEntries)
	}
	out := make([]any, total)
	for i := range out {
		out[i] = make(map[string]any, len(lists))
	}
	run := total // how many combinations in a row have the same entry
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		list, _ := lists[name].([]any)
		run /= max(len(list), 1)
		for i, one := range out {
			one.(map[string]any)[name] = list[i/run%len(list)]
		}
	}
	return value(out)
}

func omit(of, keys ref.Val) ref.Val { return chosen("omit", of, keys, false) }

func pick(of, keys ref.Val) ref.Val { return chosen("pick", of, keys, true) }

// chosen returns the entries of a map whose keys are wanted, or all others.
func chosen(function string, of, keys ref.Val, wanted bool) ref.Val {
	out, fault := object(function, of)
	if fault != nil {
		return fault
	}
	names, fault := tree(function, keys)
	if fault != nil {
		return fault
	}
	list, _ := names.([]any)
	named := map[any]bool{}
	for _, name := range list {
		named[name] = true
	}
	maps.DeleteFunc(out, func(key string, _ any) bool { return named[key] != wanted })
	return value(out)
}

func toJSON(v ref.Val) ref.Val {
	of, fault := tree("json", v)
	if fault != nil {
		return fault
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(of); err != nil {
		return types.NewErr("json(): %v", err)
	}
	return types.String(bytes.TrimSuffix(out.Bytes(), []byte("\n")))
}

func fromJSON(v ref.Val) ref.Val {
	var out any
	if err := utiljson.Unmarshal([]byte(v.(types.String)), &out); err != nil { // CEL calls it only with a string
		return types.NewErr("unjson(): the text is not JSON") // the error may quote the text, which may be a Secret's
	}
	return value(out)
}

func toYAML(v ref.Val) ref.Val {
	of, fault := tree("yaml", v)
	if fault != nil {
		return fault
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(inYAML(of)); err != nil {
		return types.NewErr("yaml(): %v", err)
	}
	return types.String(out.String())
}

// inYAML returns a tree with its fractions as nodes, because the encoder gives numbers from a million on an exponent.
func inYAML(of any) any {
	switch of := of.(type) {
	case float64:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: plain.Text(of)}
	case []any:
		out := make([]any, len(of))
		for i := range of {
			out[i] = inYAML(of[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(of))
		for key := range of {
			out[key] = inYAML(of[key])
		}
		return out
	}
	return of
}

// fromYAML reads YAML as kubectl does.
func fromYAML(v ref.Val) ref.Val {
	var out any
	if err := kyaml.Unmarshal([]byte(v.(types.String)), &out); err != nil {
		return types.NewErr("unyaml(): the text is not YAML, or its aliases make it too large")
	}
	return value(out)
}

// digest returns the SHA-256 digest of a text in UTF-8, or of bytes, in hexadecimal digits.
func digest(v ref.Val) ref.Val {
	switch v := v.(type) {
	case types.String:
		sum := sha256.Sum256([]byte(v))
		return types.String(hex.EncodeToString(sum[:]))
	case types.Bytes:
		sum := sha256.Sum256(v)
		return types.String(hex.EncodeToString(sum[:]))
	default:
		return types.NewErr("sha256(): want text or bytes, found %s", named(v.Type().TypeName()))
	}
}

const (
	// letters are 32 that are hard to mistake for each other, and may all stand in a name.
	letters = "abcdefghijkmnpqrstuvwxyz23456789"
	// mostLetters bounds what random makes.
	mostLetters = 1000
)

// random returns n letters that look random, and are the same for the same seed.
func random(n, seed ref.Val) ref.Val {
	count, from := int64(n.(types.Int)), string(seed.(types.String)) // CEL calls it only with these
	if count < 1 || count > mostLetters {
		return types.NewErr("random(): want 1 to %d letters", mostLetters)
	}
	out := make([]byte, 0, count+sha256.Size)
	for block := uint64(0); len(out) < int(count); block++ {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(from), block))
		for _, b := range sum {
			out = append(out, letters[b%byte(len(letters))])
		}
	}
	return types.String(out[:count])
}
