// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"net/http"
	"testing"
)

// invalid is the beginning of the message for an invalid Foo.
const invalid = `422 Foo.example.com "a" is invalid: `

func TestInvalidObjectsAreRefused(t *testing.T) {
	for _, c := range []struct{ name, spec, sent, want string }{
		{
			"a field of another type", "properties: {size: {type: integer}}", "spec: {size: big}",
			invalid + `spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"`,
		},
		{
			"a required field that is absent, and a value that is none of the enumeration",
			"required: [size]\nproperties: {size: {type: integer}, color: {type: string, enum: [red, blue]}}", "spec: {color: green}",
			invalid + `[spec.color: Unsupported value: "green": supported values: "red", "blue", spec.size: Required value]`,
		},
		{
			"numbers, texts and lists out of their bounds",
			"properties: {size: {type: integer, minimum: 1, maximum: 3}, text: {type: string, minLength: 3, pattern: '^[a-z]+$'}, list: {type: array, maxItems: 1, items: {type: string}}}",
			"spec: {size: 4, text: A, list: [a, b]}",
			invalid + `[spec.list: Too many: 2: must have at most 1 item, spec.size: Invalid value: 4: spec.size in body should be less than or equal to 3, spec.text: Invalid value: "A": spec.text in body should be at least 3 chars long]`,
		},
		{
			"formats that are known", "properties: {ip: {type: string, format: ipv4}, at: {type: string, format: date-time}, who: {type: string, format: email}, any: {type: string, format: unheard}}",
			"spec: {ip: 1.2.3, at: '2020-01-01', who: x, any: z}", invalid + `[spec.at: Invalid value: "2020-01-01": spec.at in body must be of type date-time: "2020-01-01", spec.ip: Invalid value: "1.2.3": spec.ip in body must be of type ipv4: "1.2.3", spec.who: Invalid value: "x": spec.who in body must be of type email: "x"]`,
		},
		{
			"a duplicate in a set", "properties: {list: {type: array, x-kubernetes-list-type: set, items: {type: string}}}", "spec: {list: [a, b, a]}",
			invalid + `spec.list[2]: Duplicate value: "a"`,
		},
		{
			"a duplicate key in a map",
			"properties: {list: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name, port], items: {type: object, required: [name], properties: {name: {type: string}, port: {type: integer, default: 80}}}}}",
			"spec: {list: [{name: a}, {name: a, port: 81}, {name: a, port: 80}]}", invalid + `spec.list[2]: Duplicate value: {"name":"a","port":80}`,
		},
		{
			"an embedded object without a kind and with an invalid name",
			"properties: {pod: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}",
			"spec: {pod: {apiVersion: v1, metadata: {name: a/b, labels: {x: '-'}}}}", invalid + `[spec.pod.kind: Required value, spec.pod.metadata.name: Invalid value: "a/b": may not contain '/', spec.pod.metadata.labels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')]`,
		},
		{
			"the metadata of an embedded object of another type",
			"properties: {pod: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}",
			"spec: {pod: {apiVersion: v1, kind: Pod, metadata: {labels: x}}}", `400 Foo in version "v1" cannot be handled as a Foo: spec.pod.metadata: Invalid value: {"labels":"x"}: json: cannot unmarshal string into Go struct field ObjectMeta.labels of type map[string]string`,
		},
		{"labels of another type", "properties: {}", "metadata: {name: a, labels: {x: 1}}", `400 Foo in version "v1" cannot be handled as a Foo: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string`},
		{"an invalid name and an invalid label", "properties: {}", "metadata: {name: A, labels: {x: '-'}}", `422 Foo.example.com "A" is invalid: [metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), metadata.labels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')]`},
		{
			"a broken rule, with its own message", "x-kubernetes-validations: [{rule: self.min <= self.max, message: min is above max}]\nproperties: {min: {type: integer}, max: {type: integer}}",
			"spec: {min: 2, max: 1}", invalid + `spec: Invalid value: min is above max`,
		},
		{
			"a broken rule with a message that is computed, a reason and a field",
			"x-kubernetes-validations: [{rule: 'self.min <= self.max', messageExpression: '\"the minimum is \" + (self.min > 1 ? \"above\" : \"below\")', reason: FieldValueForbidden, fieldPath: .min}]\nproperties: {min: {type: integer, maximum: 100}, max: {type: integer, maximum: 100}}",
			"spec: {min: 2, max: 1}", invalid + `spec.min: Forbidden: the minimum is above`,
		},
		{
			"a broken rule without a message, in an element of a list",
			"properties: {list: {type: array, maxItems: 5, items: {type: object, properties: {name: {type: string, maxLength: 10, x-kubernetes-validations: [{rule: self.startsWith('x')}]}}}}}",
			"spec: {list: [{name: x}, {name: b}]}", invalid + `spec.list[1].name: Invalid value: "b": failed rule: self.startsWith('x')`,
		},
		{
			"rules are not checked of an object whose types are wrong",
			"x-kubernetes-validations: [{rule: self.min <= self.max}]\nproperties: {min: {type: integer}, max: {type: integer}}",
			"spec: {min: x, max: 1}", invalid + `[spec.min: Invalid value: "string": spec.min in body must be of type integer: "string", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`,
		},
		{
			"a rule that fails", "x-kubernetes-validations: [{rule: self.min <= self.max}]\nproperties: {min: {type: integer}, max: {type: integer}}",
			"spec: {min: 1}", invalid + `spec: Invalid value: "object": no such key: max evaluating rule: self.min <= self.max`,
		},
		{
			"alternatives of which none holds", "properties: {a: {type: object, properties: {b: {type: string}, c: {type: string}}, oneOf: [{required: [b]}, {required: [c]}]}}",
			"spec: {a: {}}", invalid + `[<nil>: Invalid value: "": "spec.a" must validate one and only one schema (oneOf). Found none valid, spec.a.b: Required value]`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			w.ok(http.MethodPost, crds, crd(specOf(c.spec)))
			if got := w.send(http.MethodPost, foos, foo(c.sent)).failure(); got != c.want {
				t.Errorf("refused with:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}
