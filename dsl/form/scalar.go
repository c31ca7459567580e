// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

// Delay is a duration that may be zero. Other durations must be positive.
type Delay time.Duration

// scalar fills a value that is neither a map nor a list. Durations have Go's form and must be positive.
func (d *Decoder) scalar(at Path, n *yaml.Node, out reflect.Value) bool {
	message := ""
	text, reads := reflect.TypeAssert[encoding.TextUnmarshaler](out.Addr())
	switch {
	case d.JSON:
		return d.readJSON(at, n, out)
	case reads:
		message = readText(n, text)
	case out.Type() == reflect.TypeFor[time.Duration]():
		message = readDuration(n, out, time.Nanosecond)
	case out.Type() == reflect.TypeFor[Delay]():
		message = readDuration(n, out, 0)
	case out.Kind() == reflect.String:
		message = readString(n, out)
	default:
		message = readExact(n, out)
	}
	if message != "" {
		d.FaultAt(n, at, "%s", message)
	}
	return message == ""
}

// readJSON reads a value as encoding/json does.
func (d *Decoder) readJSON(at Path, n *yaml.Node, out reflect.Value) bool {
	value, ok := d.Plain(at, n)
	if !ok {
		return false
	}
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, out.Addr().Interface())
	}
	if _, mismatch := errors.AsType[*json.UnmarshalTypeError](err); mismatch {
		remedy := ""
		if out.Kind() == reflect.String {
			remedy = inQuotes(n)
		}
		d.FaultAt(n, at, "want %s, found %s%s", wanted(out.Type()), Found(n), remedy)
	} else if err != nil {
		d.FaultAt(n, at, "%v", err)
	}
	return err == nil
}

// inQuotes returns advice for a text that YAML has read as another type.
func inQuotes(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && !IsNull(n) {
		return " (put it in quotes)"
	}
	return ""
}

// wanted describes values of a Go type for people.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Struct, reflect.Map:
		return "a map"
	case reflect.Slice, reflect.Array:
		return "a list"
	default:
		return "a whole number that fits"
	}
}

const wantDuration = "want a duration such as 30s or 10m"

func readDuration(n *yaml.Node, out reflect.Value, least time.Duration) string {
	duration, err := time.ParseDuration(n.Value)
	if !IsText(n) || err != nil {
		return fmt.Sprintf("%s, found %s%s", wantDuration, Found(n), noExpression(n))
	}
	switch {
	case duration >= least:
	case least == 0:
		return "must not be less than zero"
	default:
		return "must be more than zero"
	}
	out.SetInt(int64(duration))
	return ""
}

func readText(n *yaml.Node, out encoding.TextUnmarshaler) string {
	if !IsText(n) {
		return "want text, found " + Found(n) + inQuotes(n)
	}
	if err := out.UnmarshalText([]byte(n.Value)); err != nil {
		return err.Error()
	}
	return ""
}

func readString(n *yaml.Node, out reflect.Value) string {
	if c, is := reflect.TypeAssert[Choice](out); is {
		what, known := c.Choices()
		switch {
		case !IsText(n):
			return fmt.Sprintf("%s, found %s", words.Hint("", known), Found(n))
		case !slices.Contains(known, n.Value):
			return Unknown(what, n.Value, known)
		}
	}
	if !IsText(n) {
		return "want text, found " + Found(n) + inQuotes(n)
	}
	out.SetString(n.Value)
	return ""
}

// readExact reads a boolean or a number.
func readExact(n *yaml.Node, out reflect.Value) string {
	want, tags := "a whole number", []string{"!!int"}
	switch {
	case out.Kind() == reflect.Bool:
		want, tags = "true or false", []string{"!!bool"}
	case out.CanFloat():
		want, tags = "a number", []string{"!!int", "!!float"}
	case !out.CanInt() && !out.CanUint():
		panic("form: no form for values of " + out.Type().String())
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.Tag) {
		return fmt.Sprintf("want %s, found %s%s", want, Found(n), noExpression(n))
	}
	err := n.Decode(out.Addr().Interface())
	switch {
	case err == nil && (!out.CanFloat() || !math.IsNaN(out.Float()) && !math.IsInf(out.Float(), 0)):
		return ""
	case out.CanUint() && strings.HasPrefix(n.Value, "-"):
		return "must not be negative"
	case out.Kind() == reflect.Bool:
		return fmt.Sprintf("want %s, found %s", want, Found(n))
	default:
		return "the number is too large"
	}
}

// noExpression returns a hint for a text with an expression; empty for other values.
func noExpression(n *yaml.Node) string {
	if IsText(n) && strings.Contains(n.Value, "${") {
		return " (this field takes no expression)"
	}
	return ""
}

// least checks a number, or the number of entries in a map, against the min tag of its field.
func (d *Decoder) least(at Path, n *yaml.Node, field reflect.StructField, value reflect.Value) {
	tag := field.Tag.Get("min")
	if tag == "" || d.JSON {
		return
	}
	limit, err := strconv.ParseFloat(tag, 64)
	if err != nil {
		panic("form: min of " + field.Name + " is not a number")
	}
	number := float64(len(n.Content) / 2)
	if n.Kind != yaml.MappingNode {
		number = reflect.Indirect(value).Convert(reflect.TypeFor[float64]()).Float()
	}
	switch {
	case number >= limit:
	case n.Kind == yaml.MappingNode && limit == 1:
		d.FaultAt(n, at, "must not be empty")
	case limit == 0:
		d.FaultAt(n, at, "must not be negative")
	default:
		d.FaultAt(n, at, "must be at least %s", tag)
	}
}

// unique reports repeated elements of a list whose field has the unique tag.
func (d *Decoder) unique(at Path, n *yaml.Node, field reflect.StructField) {
	if field.Tag.Get("unique") == "" || d.JSON {
		return
	}
	first := map[string]bool{}
	for i, element := range n.Content {
		if first[element.Value] && element.Value != "" {
			d.FaultAt(element, at.Index(i), "%s is in the list twice", Quoted(element.Value))
		}
		first[element.Value] = true
	}
}

// IsText reports whether a node is text. Texts that look like dates are text, too.
func IsText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!timestamp" || n.Tag == "!!merge")
}

// IsNull reports whether a node is null.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// Found describes the value of a node.
func Found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!null":
		return "nothing"
	case "!!bool":
		return n.Value
	case "!!int", "!!float":
		return "the number " + n.Value
	default:
		return "the text " + Quoted(n.Value)
	}
}
