// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package manual

// loops are the macros. Over a map, the one variable is the key; of two variables the first one is the index or the key.
func loops() []Group {
	return []Group{{"Loops and names", []Function{
		entry("all", "list.all(x, condition), map.all(key, condition)", "true or false", "Whether a condition holds for every element, or for every key of a map.",
			`[1, 2, 3].all(x, x > 0)`, `true`),
		entry("all", "list.all(i, x, condition), map.all(key, x, condition)", "true or false", "The same with the index or the key, too.",
			`{"a": 1, "b": 2}.all(key, x, key != "c" && x > 0)`, `true`),
		entry("exists", "list.exists(x, condition), map.exists(key, condition)", "true or false", "Whether a condition holds for an element, or for a key of a map.",
			`["a", "b"].exists(x, x == "b")`, `true`),
		entry("exists", "list.exists(i, x, condition), map.exists(key, x, condition)", "true or false", "The same with the index or the key, too.",
			`[5, 1].exists(i, x, i == x)`, `true`),
		entry("exists_one", "list.exists_one(x, condition)", "true or false", "Whether a condition holds for one element and no other.",
			`[1, 2, 2].exists_one(x, x == 2)`, `false`),
		entry("existsOne exists_one", "list.existsOne(i, x, condition)", "true or false", "The same with the index or the key, too.",
			`["a", "b", "a"].existsOne(i, x, i > 0 && x == "a")`, `true`),
		entry("filter", "list.filter(x, condition), map.filter(key, condition)", "list", "The elements, or the keys of a map, for which a condition holds.",
			`[1, 2, 3].filter(x, x > 1)`, `[2,3]`),
		entry("map", "list.map(x, expression), map.map(key, expression)", "list", "What an expression makes of each element, or of each key of a map.",
			`[1, 2, 3].map(x, x * 10)`, `[10,20,30]`),
		entry("map", "list.map(x, condition, expression)", "list", "The same for the elements for which a condition holds.",
			`[1, 2, 3].map(x, x > 1, x * 10)`, `[20,30]`),
		entry("transformList", "list.transformList(i, x, expression), map.transformList(key, x, expression)", "list", "What an expression makes of each element with its index, or of each entry of a map.",
			`["a", "b"].transformList(i, x, x + string(i))`, `["a0","b1"]`),
		entry("transformList", "list.transformList(i, x, condition, expression)", "list", "The same where a condition holds.",
			`["a", "b", "c"].transformList(i, x, i > 0, x + string(i))`, `["b1","c2"]`),
		entry("transformMap", "map.transformMap(key, x, expression)", "map", "The map with other values.",
			`{"a": 1, "b": 2}.transformMap(key, x, x * 10)`, `{"a":10,"b":20}`),
		entry("transformMap", "map.transformMap(key, x, condition, expression)", "map", "The same with the entries for which a condition holds.",
			`{"a": 1, "b": 2}.transformMap(key, x, x > 1, x * 10)`, `{"b":20}`),
		entry("transformMapEntry", "list.transformMapEntry(i, x, {key: value}), map.transformMapEntry(key, x, {key: value})", "map", "A map that is made of other entries. A key twice is an error.",
			`["a", "b"].transformMapEntry(i, x, {x: i})`, `{"a":0,"b":1}`),
		entry("transformMapEntry", "list.transformMapEntry(i, x, condition, {key: value})", "map", "The same where a condition holds.",
			`["a", "b"].transformMapEntry(i, x, i > 0, {x: i})`, `{"b":1}`),
		entry("cel.bind", "cel.bind(x, value, expression)", "as the expression", "A name for a value that an expression needs several times.",
			`cel.bind(x, 3 + 4, x * x)`, `49`),
	}}}
}
