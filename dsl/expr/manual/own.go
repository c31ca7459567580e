// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package manual

// own are the functions that neither CEL nor Kubernetes has.
func own() []Group {
	return []Group{{"Objects and maps", []Function{
		entry("ready", "ready(object)", "true or false",
			"Whether an object has become what its spec says, by the rules of kstatus, for any kind. False for an object that is missing or is being deleted.",
			`ready({"apiVersion": "v1", "kind": "ConfigMap"})`, `true`),
		entry("merge", "merge(under, over)", "map",
			"The first map with the second one laid over it. Maps are merged at all depths; lists and other values are replaced.",
			`merge({"cpu": {"request": 1}}, {"cpu": {"limit": 2}})`, `{"cpu":{"limit":2,"request":1}}`),
		entry("pick", "pick(map, keys)", "map", "The entries with these keys. A key that is not there is ignored.",
			`pick({"a": 1, "b": 2, "c": 3}, ["a", "c"])`, `{"a":1,"c":3}`),
		entry("omit", "omit(map, keys)", "map", "The entries but for those with these keys.",
			`omit({"a": 1, "b": 2, "c": 3}, ["a", "c"])`, `{"b":2}`),
		entry("combinations", "combinations(map of lists)", "list",
			"A map for each way to take one entry of each list, 10,000 of them and 200,000 entries at most: for a forEach over several lists, with a key as in ${item.zone}-${item.size}.",
			`combinations({"size": ["s", "m"], "zone": ["a"]})`, `[{"size":"s","zone":"a"},{"size":"m","zone":"a"}]`),
		entry("has", "has(value.field)", "true or false", "Whether a field is there. Every field before the last one must be there.",
			`has({"host": "a"}.host)`, `true`),
		entry("hash", "hash(value)", "text",
			"Ten hexadecimal digits that are the same for equal values: for a name, or for an annotation whose change rolls Pods out.",
			`hash({"a": 1})`, `"015abd7f5c"`),
	}}, {"Encodings", []Function{
		entry("json", "json(value)", "text", "The value as JSON in one line, with sorted keys.",
			`json({"b": [1, 2], "a": [3]})`, `"{\"a\":[3],\"b\":[1,2]}"`),
		entry("unjson", "unjson(text)", "value", "The value of a text in JSON.",
			`unjson("{\"a\": [1, 2]}").a`, `[1,2]`),
		entry("yaml", "yaml(value)", "text", "The value as YAML, with sorted keys and an indent of two spaces.",
			`yaml({"b": 2, "a": 1})`, `"a: 1\nb: 2\n"`),
		entry("unyaml", "unyaml(text)", "value", "The value of a text in YAML, read as kubectl reads it.",
			`unyaml("a: 1\nb: [x]")`, `{"a":1,"b":["x"]}`),
		entry("base64", "base64(text or bytes)", "text", "The base64 of a text or of bytes, as the data of a Secret wants it.",
			`base64("hello")`, `"aGVsbG8="`),
		entry("unbase64", "unbase64(text)", "text", "The text of a base64. Other content than text is an error; see base64.decode.",
			`unbase64("aGVsbG8=")`, `"hello"`),
		entry("base64.encode", "base64.encode(bytes)", "text", "CEL's own base64, of bytes.",
			`base64.encode(b"hello")`, `"aGVsbG8="`),
		entry("base64.decode", "base64.decode(text)", "bytes", "The bytes of a base64.",
			`size(base64.decode("aGVsbG8="))`, `5`),
		entry("sha256", "sha256(text or bytes)", "text", "The SHA-256 digest in 64 hexadecimal digits.",
			`sha256("hello")`, `"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"`),
		entry("random", "random(n, seed)", "text",
			"Letters and digits, 1 to 1,000 of them, that are the same for the same seed, as in random(5, self.metadata.uid). Who knows the seed knows them, so they are no password.",
			`random(5, "a")`, `"spccw"`),
		entry("generate", "generate(n)", "text",
			"Letters and digits, 1 to 1,000 of them, as a password has them. It is only for a field that keeps it, as in current.secret.?data.?password.orValue(base64(generate(24))).",
			`size(generate(24))`, `24`),
	}}}
}
