// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"reflect"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// has reports whether a value has what is wanted: maps may have more keys, lists are as long as wanted.
func has(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		tree, is := got.(map[string]any)
		if !is {
			return false
		}
		for key, value := range want {
			found, there := tree[key]
			if value == nil && !there {
				continue
			}
			if !there || !has(found, value) {
				return false
			}
		}
		return true
	case []any:
		list, is := got.([]any)
		if !is || len(list) != len(want) {
			return false
		}
		for i := range want {
			if !has(list[i], want[i]) {
				return false
			}
		}
		return true
	default:
		return same(got, want)
	}
}

// same compares plain values; numbers by their value.
func same(a, b any) bool {
	x, isNumber := number(a)
	y, too := number(b)
	if isNumber && too {
		return x == y
	}
	return reflect.DeepEqual(a, b)
}

func number(value any) (float64, bool) {
	switch n := value.(type) {
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// difference shows where a value lacks what is wanted: a line with - is wanted, one with + is there.
func difference(got, want any) string {
	d := &differ{}
	d.value("", got, true, want)
	return strings.Join(d.lines, "\n")
}

type differ struct {
	lines []string
	depth int
}

func (d *differ) line(mark, text string) {
	d.lines = append(d.lines, mark+" "+strings.Repeat("  ", d.depth)+text)
}

// value shows the difference of the values at a key.
func (d *differ) value(key string, got any, there bool, want any) {
	tree, isMap := want.(map[string]any)
	found, too := got.(map[string]any)
	if isMap && too {
		d.below(key, func() {
			for _, name := range sortedKeys(tree) {
				value, there := found[name]
				if !has(map[string]any{name: value}, map[string]any{name: tree[name]}) || !there && tree[name] != nil {
					d.value(name, value, there, tree[name])
				}
			}
		})
		return
	}
	list, isList := want.([]any)
	items, too := got.([]any)
	if isList && too && len(list) == len(items) {
		d.below(key, func() {
			for i := range list {
				if !has(items[i], list[i]) {
					d.value("["+strconv.Itoa(i)+"]", items[i], true, list[i])
				}
			}
		})
		return
	}
	d.whole("-", key, want)
	if there {
		d.whole("+", key, got)
	} else {
		d.line("+", "("+key+" is not there)")
	}
}

// whole shows a value in one line, or in several if it is long.
func (d *differ) whole(mark, key string, value any) {
	const wide, most = 120, 30
	text := labelled(key, value)
	if len(text) <= wide {
		d.line(mark, text)
		return
	}
	if key != "" {
		value = map[string]any{key: value}
	}
	data, err := yaml.Marshal(value)
	if err != nil {
		d.line(mark, text)
		return
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	for _, line := range lines[:min(len(lines), most)] {
		d.line(mark, line)
	}
	if len(lines) > most {
		d.line(mark, "…")
	}
}

func (d *differ) below(key string, show func()) {
	if key == "" {
		show()
		return
	}
	d.line(" ", key+":")
	d.depth++
	show()
	d.depth--
}

func labelled(key string, value any) string {
	text := compact(value)
	if s, is := value.(string); is && plainText(s) {
		text = s
	}
	if key == "" {
		return text
	}
	return key + ": " + text
}

// plainText reports whether text cannot be taken for another value.
func plainText(s string) bool {
	if s == "" || strings.ContainsAny(s, "\n\t\"") || s == "true" || s == "false" || s == "null" {
		return false
	}
	_, err := strconv.ParseFloat(s, 64)
	return err != nil
}
