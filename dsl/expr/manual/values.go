// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package manual

// values are the operators, and the functions for texts, lists, optional values and types.
func values() []Group {
	return []Group{
		{"Operators", operators()},
		{"Texts", texts()},
		{"Lists", lists()},
		{"Optional values", optional()},
		{"Types", types()},
	}
}

// operators have their sign for a name.
func operators() []Function {
	return []Function{
		entry("+", "a + b", "as a and b", "The sum of numbers, texts or lists behind each other, a time or a duration that is later or longer.",
			`[1] + [2]`, `[1,2]`),
		entry("- * / %", "a - b", "as a and b", "Arithmetic. A division of whole numbers gives a whole number; % is its rest.",
			`7 / 2 * 10 + 7 % 2`, `31`),
		entry("== != < <= > >=", "a == b", "true or false", "A comparison. Numbers of two kinds may be compared; == compares lists and maps with all that is in them.",
			`{"a": [1]} == {"a": [1]}`, `true`),
		entry("&& || !", "a && b", "true or false", "And, or, not. What the left side decides, an error on the right side does not change.",
			`true || 1 / 0 == 0`, `true`),
		entry("?:", "condition ? a : b", "as a or b", "One of two values. Both must be of one kind; dyn() around each of them lifts that.",
			`2 > 1 ? "more" : "less"`, `"more"`),
		entry("in", "value in list, key in map", "true or false", "Whether a list has an element, or a map a key.",
			`"a" in {"a": 1} && 2 in [1, 2]`, `true`),
		entry("[]", "list[index], map[key]", "value", "An element of a list, from 0 on, or a value of a map. A field whose name has other signs than letters, digits and _ is asked for so.",
			`{"app.kubernetes.io/name": "web"}["app.kubernetes.io/name"]`, `"web"`),
		entry(".? [?]", "value.?field, list[?index]", "optional value", "A field or an element that may not be there. What follows it may not be there either.",
			`{"spec": {"replicas": 3}}.?spec.port.orValue(80)`, `80`),
	}
}

func texts() []Function {
	return []Function{
		entry("size", "text.size(), size(text)", "whole number", "The number of characters; of bytes, how many they are.",
			`"häuser".size()`, `6`),
		entry("contains", "text.contains(part)", "true or false", "Whether the text has the part in it.",
			`"a-b-c".contains("-b")`, `true`),
		entry("startsWith", "text.startsWith(beginning)", "true or false", "Whether the text begins so.",
			`"team-a".startsWith("team-")`, `true`),
		entry("endsWith", "text.endsWith(end)", "true or false", "Whether the text ends so.",
			`"web.yaml".endsWith(".yaml")`, `true`),
		entry("matches", "text.matches(pattern)", "true or false", "Whether a regular expression (RE2) matches a part of the text; ^ and $ stand for its ends.",
			`"web-12".matches("^[a-z]+-[0-9]+$")`, `true`),
		entry("find", "text.find(pattern)", "text", "The first part that a regular expression matches; empty if there is none.",
			`"web-12".find("[0-9]+")`, `"12"`),
		entry("findAll", "text.findAll(pattern), text.findAll(pattern, most)", "list of text", "All parts that a regular expression matches, or the first ones.",
			`"a1b22".findAll("[0-9]+")`, `["1","22"]`),
		entry("replace", "text.replace(old, new), text.replace(old, new, most)", "text", "The text with a part replaced, everywhere or the first times.",
			`"a.b.c".replace(".", "-")`, `"a-b-c"`),
		entry("split", "text.split(separator), text.split(separator, most)", "list of text", "The parts between separators. The last of at most so many parts is the rest.",
			`"a,b,c".split(",", 2)`, `["a","b,c"]`),
		entry("join", "list.join(), list.join(separator)", "text", "The texts of a list as one text.",
			`["a", "b"].join("-")`, `"a-b"`),
		entry("substring", "text.substring(from), text.substring(from, to)", "text", "A part of the text, by the places of its characters, from 0 on; the one at to is not part of it.",
			`"handler".substring(0, 4)`, `"hand"`),
		entry("charAt", "text.charAt(index)", "text", "The character at a place, from 0 on.",
			`"abc".charAt(1)`, `"b"`),
		entry("indexOf", "text.indexOf(part), text.indexOf(part, from)", "whole number", "The place of the first such part, from 0 on; -1 if there is none.",
			`"a-b-c".indexOf("-")`, `1`),
		entry("lastIndexOf", "text.lastIndexOf(part), text.lastIndexOf(part, from)", "whole number", "The place of the last such part, from 0 on; -1 if there is none.",
			`"a-b-c".lastIndexOf("-")`, `3`),
		entry("trim", "text.trim()", "text", "The text without space at its ends.",
			`" a b\n".trim()`, `"a b"`),
		entry("lowerAscii", "text.lowerAscii()", "text", "The text with the letters A to Z as small ones.",
			`"WebApp".lowerAscii()`, `"webapp"`),
		entry("upperAscii", "text.upperAscii()", "text", "The text with the letters a to z as capitals.",
			`"log_level".upperAscii()`, `"LOG_LEVEL"`),
		entry("format", "text.format(values)", "text", "The text with values for %s, %d (whole numbers), %f (as in %.2f), %e, %b, %o, %x and %X. %% is a percent sign.",
			`"%s-%d: %.1f%%".format([dyn("web"), dyn(3), dyn(99.5)])`, `"web-3: 99.5%"`),
		entry("strings.quote", "strings.quote(text)", "text", "The text in quotes, with its control characters escaped.",
			`strings.quote("a\n")`, `"\"a\\n\""`),
	}
}

func lists() []Function {
	return []Function{
		entry("size", "list.size(), map.size()", "whole number", "How many elements a list has, or how many keys a map has.",
			`[1, 2, 3].size()`, `3`),
		entry("slice", "list.slice(from, to)", "list", "A part of the list, by places from 0 on; the element at to is not part of it.",
			`[1, 2, 3, 4].slice(1, 3)`, `[2,3]`),
		entry("first last", "list.first(), list.last()", "optional value", "The first or the last element; absent if the list is empty.",
			`[1, 2, 3].last().value()`, `3`),
		entry("flatten", "list.flatten(), list.flatten(depth)", "list", "The elements of the lists in a list, as one list; with a depth, also those of lists in these.",
			`[[1], [2, 3]].flatten()`, `[1,2,3]`),
		entry("distinct", "list.distinct()", "list", "Each element once, in the order of the list.",
			`["b", "a", "b"].distinct()`, `["b","a"]`),
		entry("reverse", "list.reverse()", "list", "The elements from the last one to the first.",
			`[1, 2, 3].reverse()`, `[3,2,1]`),
		entry("sort", "list.sort()", "list", "The elements in their order: numbers, texts, times or durations, all of one kind.",
			`["b", "a"].sort()`, `["a","b"]`),
		entry("sortBy", "list.sortBy(x, key)", "list", "The elements in the order of a key that is worked out for each, x.",
			`[{"n": 2}, {"n": 1}].sortBy(x, x.n)`, `[{"n":1},{"n":2}]`),
		entry("isSorted", "list.isSorted()", "true or false", "Whether the elements are in their order.",
			`[1, 2, 2].isSorted()`, `true`),
		entry("min max", "list.min(), list.max()", "as an element", "The least or the greatest element. An empty list is an error.",
			`[3, 1, 2].max()`, `3`),
		entry("sum", "list.sum()", "as an element", "The sum of numbers or durations; 0 for an empty list.",
			`[1, 2, 3].sum()`, `6`),
		entry("indexOf", "list.indexOf(element)", "whole number", "The place of the first such element, from 0 on; -1 if there is none.",
			`["a", "b", "b"].indexOf("b")`, `1`),
		entry("lastIndexOf", "list.lastIndexOf(element)", "whole number", "The place of the last such element, from 0 on; -1 if there is none.",
			`["a", "b", "b"].lastIndexOf("b")`, `2`),
		entry("lists.range", "lists.range(n)", "list of whole numbers", "The numbers from 0 to n-1, for a child that there is n times.",
			`lists.range(3)`, `[0,1,2]`),
		entry("sets.contains", "sets.contains(list, part)", "true or false", "Whether all elements of the second list are in the first one.",
			`sets.contains([1, 2, 3], [3, 1])`, `true`),
		entry("sets.equivalent", "sets.equivalent(a, b)", "true or false", "Whether two lists have the same elements, in any order and number.",
			`sets.equivalent([1, 2], [2, 1, 1])`, `true`),
		entry("sets.intersects", "sets.intersects(a, b)", "true or false", "Whether two lists have an element in common.",
			`sets.intersects([1, 2], [2, 3])`, `true`),
	}
}

func optional() []Function {
	return []Function{
		entry("orValue", "optional.orValue(default)", "as the default", "The value, or the default if it is absent.",
			`{"a": 1}.?b.orValue(0)`, `0`),
		entry("or", "optional.or(other)", "optional value", "The value, or another optional one if it is absent.",
			`{"b": 2}.?a.or({"b": 2}.?b).value()`, `2`),
		entry("hasValue", "optional.hasValue()", "true or false", "Whether there is a value.",
			`{"a": 1}.?b.hasValue()`, `false`),
		entry("value", "optional.value()", "value", "The value. An absent one is an error.",
			`{"a": 1}.?a.value()`, `1`),
		entry("optMap", "optional.optMap(x, expression)", "optional value", "What the expression makes of the value, x; absent if that is.",
			`{"a": 2}.?a.optMap(x, x * 10).orValue(0)`, `20`),
		entry("optFlatMap", "optional.optFlatMap(x, expression)", "optional value", "As optMap, for an expression whose result is optional itself.",
			`{"a": {"b": 1}}.?a.optFlatMap(x, x.?b).value()`, `1`),
		entry("optional.of", "optional.of(value)", "optional value", "A value as an optional one.",
			`optional.of(1).orValue(0)`, `1`),
		entry("optional.none", "optional.none()", "optional value", "The absent value. As the value of a field in a template, it leaves the field out.",
			`optional.none()`, `null`),
		entry("optional.ofNonZeroValue", "optional.ofNonZeroValue(value)", "optional value", "A value as an optional one; absent if it is empty, 0 or false.",
			`optional.ofNonZeroValue("").hasValue()`, `false`),
		entry("optional.unwrap", "optional.unwrap(list)", "list", "The values of a list of optional ones, without absent ones.",
			`optional.unwrap([{"a": 1}.?a, {"a": 1}.?b])`, `[1]`),
		entry("unwrapOpt", "list.unwrapOpt()", "list", "As optional.unwrap, behind the list.",
			`[{"a": 1}.?a, {"a": 1}.?b].unwrapOpt()`, `[1]`),
	}
}

func types() []Function {
	return []Function{
		entry("string", "string(value)", "text", "A number, true or false, a time, a duration, an address, or bytes that are text, as text.",
			`string(8080)`, `"8080"`),
		entry("int", "int(value)", "whole number", "A text or a number as a whole one; what is behind the point is cut off. Of a time, the seconds since 1970.",
			`int("8080") + 1`, `8081`),
		entry("uint", "uint(value)", "whole number", "A text or a number as a whole one that is not negative.",
			`uint("7")`, `7`),
		entry("double", "double(value)", "number", "A text or a whole number as one that may have a fraction, to calculate with others of these.",
			`double(3) * 1.5`, `4.5`),
		entry("bool", "bool(text)", "true or false", "The word true or false as its value.",
			`bool("true")`, `true`),
		entry("bytes", "bytes(text)", "bytes", "The bytes of a text in UTF-8.",
			`size(bytes("ä"))`, `2`),
		entry("type", "type(value)", "type", "What kind of value it is, to be compared with bool, int, uint, double, string, bytes, list, map and null_type.",
			`type(1.5) == double`, `true`),
		entry("dyn", "dyn(value)", "value", "The value, of a kind that is known only when it is worked out: for lists and maps with values of several kinds.",
			`{"path": dyn("/"), "port": dyn(80)}`, `{"path":"/","port":80}`),
	}
}
