// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package roundtrip

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// generator makes values that mostly fit a schema. The same seed makes the same values.
type generator struct{ *rand.Rand }

// letters are what texts are made of.
const letters = "abcdefghijklmnopqrstuvwxyz"

// most is how many elements more than it must a list or map has at most, and how often a part of a pattern repeats.
const most = 3

// value makes a value. Null means that there is no value.
func (g generator) value(s *spec.Schema) any {
	switch {
	case s == nil:
		return nil
	case len(s.Enum) > 0:
		value, _ := plain.Value(s.Enum[g.IntN(len(s.Enum))]) // it came from JSON
		return value
	case s.Type.Contains("object"):
		return g.object(s)
	case s.Type.Contains("array"):
		return g.list(s)
	case s.Type.Contains("boolean"):
		return g.IntN(2) == 0
	case s.Type.Contains("integer"):
		return int64(g.number(s))
	case s.Type.Contains("number"):
		return g.number(s) + 0.5
	case s.Type.Contains("string"):
		return g.text(s)
	case len(s.AnyOf) > 0: // a whole number or a text
		return int64(g.IntN(1000))
	}
	return g.word()
}

// object makes an object: with its required fields, and some of the others.
func (g generator) object(s *spec.Schema) any {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		if p.Default == nil && !slices.Contains(s.Required, name) && g.IntN(4) == 0 {
			continue
		}
		if value := g.value(&p); value != nil {
			out[name] = value
		}
	}
	more := s.AdditionalProperties
	if more == nil || more.Schema == nil || len(s.Properties) > 0 {
		return out
	}
	for range g.count(s.MinProperties, s.MaxProperties) {
		out[g.word()] = g.value(more.Schema)
	}
	return out
}

// list makes a list. Elements that must differ do, as far as they can.
func (g generator) list(s *spec.Schema) any {
	out := []any{}
	if s.Items == nil {
		return out
	}
	for range g.count(s.MinItems, s.MaxItems) {
		out = append(out, g.value(s.Items.Schema))
	}
	return out
}

// count chooses a number of elements.
func (g generator) count(from, to *int64) int64 {
	lowest, highest := int64(0), int64(most)
	if from != nil {
		lowest, highest = *from, *from+most
	}
	if to != nil {
		highest = min(highest, *to)
	}
	return lowest + g.Int64N(max(highest-lowest, 0)+1)
}

// number chooses a whole number within the bounds of a schema.
func (g generator) number(s *spec.Schema) float64 {
	lowest, highest := 0.0, 1000.0
	if s.Minimum != nil {
		lowest, highest = *s.Minimum, *s.Minimum+1000
	}
	if s.Maximum != nil {
		highest = *s.Maximum
		lowest = max(lowest, highest-1000)
		if s.Minimum == nil {
			lowest = min(0, highest)
		}
	}
	out := lowest + float64(g.Int64N(int64(highest-lowest)+1))
	if m := s.MultipleOf; m != nil && *m > 0 {
		out -= float64(int64(out) % max(int64(*m), 1))
	}
	return out
}

// text makes a text of a format, by a pattern, or of a length.
func (g generator) text(s *spec.Schema) string {
	if out := g.formatted(s.Format); out != "" {
		return out
	}
	if s.Pattern != "" {
		return g.matching(s.Pattern)
	}
	out := g.word()
	if s.MinLength != nil {
		for int64(len(out)) < *s.MinLength {
			out += g.word()
		}
	}
	if s.MaxLength != nil && int64(len(out)) > *s.MaxLength {
		out = out[:*s.MaxLength]
	}
	return out
}

// formatted makes a text of a format; an empty one for other formats.
func (g generator) formatted(format string) string {
	at := time.Unix(g.Int64N(2e9), 0).UTC()
	switch format {
	case "date-time", "datetime":
		return at.Format(time.RFC3339)
	case "date":
		return at.Format(time.DateOnly)
	case "duration":
		return fmt.Sprintf("%dm", g.IntN(100))
	case "byte":
		return base64.StdEncoding.EncodeToString([]byte(g.word()))
	case "uri":
		return "https://" + g.word() + ".example.com"
	case "hostname":
		return g.word() + ".example.com"
	case "email":
		return g.word() + "@example.com"
	case "ipv4":
		return fmt.Sprintf("10.0.0.%d", g.IntN(256))
	case "ipv6":
		return fmt.Sprintf("fd00::%x", g.IntN(1<<16))
	case "cidr":
		return fmt.Sprintf("10.%d.0.0/16", g.IntN(256))
	}
	return ""
}

func (g generator) word() string {
	var out strings.Builder
	for range 3 + g.IntN(5) {
		out.WriteByte(letters[g.IntN(len(letters))])
	}
	return out.String()
}
