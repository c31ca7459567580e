// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"
)

// scalar fills a value that is no map and no list. Durations are written as Go writes them and are
// more than zero.
func (d *decoder) scalar(p path, n *yaml.Node, out reflect.Value) bool {
	message := ""
	text, reads := reflect.TypeAssert[encoding.TextUnmarshaler](out.Addr())
	switch {
	case reads:
		message = readText(n, text)
	case out.Type() == reflect.TypeFor[time.Duration]():
		message = readDuration(n, out)
	case out.Kind() == reflect.String:
		message = readString(n, out)
	case out.Kind() == reflect.Bool:
		message = readBool(n, out)
	case out.CanInt() || out.CanUint():
		message = readWhole(n, out)
	case out.CanFloat():
		message = readNumber(n, out)
	default:
		panic("config: no form for values of " + out.Type().String())
	}
	if message != "" {
		d.faultAt(n, p, "%s", message)
	}
	return message == ""
}

func readDuration(n *yaml.Node, out reflect.Value) string {
	const want = "want a duration such as 30s or 10m"
	if n.Kind != yaml.ScalarNode || !isText(n) {
		return fmt.Sprintf("%s, found %s", want, found(n))
	}
	duration, err := time.ParseDuration(n.Value)
	if err != nil {
		return fmt.Sprintf("%s, found %s", want, found(n))
	}
	if duration <= 0 {
		return "must be more than zero"
	}
	out.SetInt(int64(duration))
	return ""
}

func readText(n *yaml.Node, out encoding.TextUnmarshaler) string {
	if n.Kind != yaml.ScalarNode {
		return "want text, found " + found(n)
	}
	if err := out.UnmarshalText([]byte(n.Value)); err != nil {
		return err.Error()
	}
	return ""
}

func readString(n *yaml.Node, out reflect.Value) string {
	if n.Kind != yaml.ScalarNode {
		return "want text, found " + found(n)
	}
	if !isText(n) {
		return fmt.Sprintf("want text, found %s (put it in quotes)", found(n))
	}
	if c, ok := reflect.TypeAssert[choice](out); ok {
		if what, words := c.choices(); !slices.Contains(words, n.Value) {
			return unknown(what, n.Value, words)
		}
	}
	out.SetString(n.Value)
	return ""
}

func readBool(n *yaml.Node, out reflect.Value) string {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		return "want true or false, found " + found(n)
	}
	var value bool
	if err := n.Decode(&value); err != nil {
		return "want true or false, found " + found(n)
	}
	out.SetBool(value)
	return ""
}

func readWhole(n *yaml.Node, out reflect.Value) string {
	var value any
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || n.Decode(&value) != nil {
		return "want a whole number, found " + found(n)
	}
	number := reflect.ValueOf(value)
	if out.CanUint() && number.CanInt() {
		if number.Int() < 0 {
			return "must not be negative"
		}
		number = reflect.ValueOf(uint64(number.Int()))
	}
	switch {
	case out.CanInt() && number.CanInt() && !out.OverflowInt(number.Int()):
		out.SetInt(number.Int())
	case out.CanUint() && number.CanUint() && !out.OverflowUint(number.Uint()):
		out.SetUint(number.Uint())
	default:
		return "the number is too large"
	}
	return ""
}

func readNumber(n *yaml.Node, out reflect.Value) string {
	var value float64
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" && n.Tag != "!!float" || n.Decode(&value) != nil {
		return "want a number, found " + found(n)
	}
	if math.IsNaN(value) || math.IsInf(value, 0) || out.OverflowFloat(value) {
		return "the number is too large"
	}
	out.SetFloat(value)
	return ""
}

// least checks a number against the min tag of its field.
func (d *decoder) least(p path, n *yaml.Node, field reflect.StructField, value reflect.Value) {
	tag := field.Tag.Get("min")
	if tag == "" {
		return
	}
	limit, err := strconv.ParseFloat(tag, 64)
	if err != nil {
		panic("config: min of " + field.Name + " is not a number")
	}
	number := reflect.Indirect(value).Convert(reflect.TypeFor[float64]()).Float()
	switch {
	case number >= limit:
	case limit == 0:
		d.faultAt(n, p, "must not be negative")
	default:
		d.faultAt(n, p, "must be at least %s", tag)
	}
}

// isText reports whether a scalar is text. What looks like a date is text too.
func isText(n *yaml.Node) bool {
	return n.Tag == "!!str" || n.Tag == "!!timestamp" || n.Tag == "!!merge"
}

// isBlank reports whether a node is text without a character.
func isBlank(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && isText(n) && n.Value == "" }

// found says what a node is.
func found(n *yaml.Node) string {
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
		return "the text " + quoted(n.Value)
	}
}
