// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"
)

// functions is the library of functions that neither CEL nor Kubernetes has.
type functions struct{}

// LibraryName keeps the library from being added twice.
func (functions) LibraryName() string { return "handwerk" }

// CompileOptions declares the functions.
func (functions) CompileOptions() []cel.EnvOption {
	one := func(t *cel.Type) []*cel.Type { return []*cel.Type{t} }
	return append(append(trees(), generating(), numbers()),
		ext.Math(), ext.Bindings(),
		ext.Encoders(ext.EncodersVersion(0)), // later versions write JSON with spaces that vary between builds
		cel.Function("ready",
			cel.Overload("ready_map", one(cel.MapType(cel.StringType, cel.DynType)), cel.BoolType),
			cel.Overload("ready_null", one(cel.NullType), cel.BoolType),
			cel.SingletonUnaryBinding(func(v ref.Val) ref.Val { _, out := ready(v); return out })),
		cel.Function("hash",
			cel.Overload("hash_dyn", one(cel.DynType), cel.StringType, cel.UnaryBinding(hash))),
		cel.Function("base64",
			cel.Overload("base64_string", one(cel.StringType), cel.StringType),
			cel.Overload("base64_bytes", one(cel.BytesType), cel.StringType),
			cel.SingletonUnaryBinding(encode)),
		cel.Function("unbase64",
			cel.Overload("unbase64_string", one(cel.StringType), cel.StringType, cel.UnaryBinding(decode))),
	)
}

// ProgramOptions adds the functions to the cost model.
func (functions) ProgramOptions() []cel.ProgramOption {
	return []cel.ProgramOption{cel.CostTracking(costs{&library.CostEstimator{}}), cel.CustomDecoratorV2(heardReady), cel.CustomDecoratorV2(heardGenerate),
		cel.CostTrackerOptions(interpreter.OverloadCostTracker("list_flatten", given), interpreter.OverloadCostTracker("list_flatten_int", given))}
}

// hash returns a short digest. Equal values have equal digests: JSON sorts the keys of maps, and has one form for
// whole numbers.
func hash(v ref.Val) ref.Val {
	value, err := plainValue(v, NewRoom(mostRendered))
	if err != nil {
		return types.NewErr("hash(): %v", err)
	}
	if value == None {
		value = nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return types.NewErr("hash(): %v", err)
	}
	const length = 10
	sum := sha256.Sum256(data)
	return types.String(hex.EncodeToString(sum[:])[:length])
}

func encode(v ref.Val) ref.Val {
	switch v := v.(type) {
	case types.String:
		return types.String(base64.StdEncoding.EncodeToString([]byte(v)))
	case types.Bytes:
		return types.String(base64.StdEncoding.EncodeToString(v))
	default:
		return types.NewErr("base64(): want text or bytes, found %s", named(v.Type().TypeName()))
	}
}

func decode(v ref.Val) ref.Val {
	data, err := base64.StdEncoding.DecodeString(string(v.(types.String))) // CEL calls it only with a string
	if err != nil {
		return types.NewErr("unbase64(): the text is not base64")
	}
	if !utf8.Valid(data) {
		return types.NewErr("unbase64(): what is encoded is not text (base64.decode(…) gives the bytes)")
	}
	return types.String(data)
}

// costs is Kubernetes' cost model with our functions added.
type costs struct{ *library.CostEstimator }

// CallCost returns the cost of a call; nil means CEL's own estimate.
func (c costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	var cost uint64
	switch function {
	case "ready":
		cost = 100 // about the cost of reading some fields and the conditions
	case "hash", "base64", "unbase64", "base64.encode", "base64.decode", "sha256", "random", "generate",
		"merge", "omit", "pick", "combinations", "json", "unjson", "yaml", "unyaml":
		for _, arg := range append(slices.Clip(args), result) { // YAML with aliases gives more than it is given
			cost += uint64(math.Ceil(size(arg.Value()) / 10)) // CEL's cost for traversing a text
		}
		cost++
	default:
		return atLeast(c.CostEstimator.CallCost(function, overload, args, result), result)
	}
	return &cost
}

// given is the cost of a list that is made element by element.
func given(_ []ref.Val, result ref.Val) *uint64 {
	cost := uint64(length(result)) + 1
	return &cost
}

// atLeast returns a cost that is not below that of going through the text that a call has given: format and replace give more than
// they are charged for. Nil stands for CEL's own figure.
func atLeast(cost *uint64, result ref.Val) *uint64 {
	given, _ := result.(types.String)
	least := uint64(len(given) / 10)
	if least <= 1 || cost != nil && *cost >= least {
		return cost
	}
	return &least
}

// size estimates how many letters a value is written with.
func size(value any) float64 {
	out := 10.0
	switch value := value.(type) {
	case ref.Val:
		return size(value.Value())
	case string:
		return out + float64(len(value))
	case []byte:
		return out + float64(len(value))
	case map[string]any:
		for key, element := range value {
			out += float64(len(key)) + size(element)
		}
	case map[ref.Val]ref.Val:
		for key, element := range value {
			out += size(key) + size(element)
		}
	case []any:
		for _, element := range value {
			out += size(element)
		}
	case []ref.Val:
		for _, element := range value {
			out += size(element)
		}
	}
	return out
}
