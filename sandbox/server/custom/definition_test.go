// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"net/http"
	"strings"
	"testing"
)

// faulty is the beginning of the message for a faulty CRD.
const faulty = `422 CustomResourceDefinition.apiextensions.k8s.io "foos.example.com" is invalid: `

// plain is a version without fields.
const plain = "{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}"

// define returns a CRD with names and versions in YAML, as a body.
func define(group, names, versions, more string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.example.com}
spec:
  group: ` + group + `
  scope: Namespaced
  names: ` + names + `
  versions: ` + versions + "\n" + indent(more, "  ")
}

func TestFaultyCRDsAreRefused(t *testing.T) {
	const names = "{plural: foos, kind: Foo}"
	for _, c := range []struct{ name, body, want string }{
		{"a name that is not of the plural and the group", define("example.com", "{plural: bars, kind: Foo}", "["+plain+"]", ""), faulty + `metadata.name: Invalid value: "foos.example.com": must be spec.names.plural+"."+spec.group`},
		{"a group without a dot", define("example", names, "["+plain+"]", ""), faulty + `[metadata.name: Invalid value: "foos.example.com": must be spec.names.plural+"."+spec.group, spec.group: Invalid value: "example": should be a domain with at least one dot]`},
		{"an unknown scope", strings.Replace(define("example.com", names, "["+plain+"]", ""), "Namespaced", "World", 1), faulty + `spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced"`},
		{"no names", define("example.com", "{}", "["+plain+"]", ""), faulty + `[metadata.name: Invalid value: "foos.example.com": must be spec.names.plural+"."+spec.group, spec.names.plural: Required value, spec.names.singular: Required value, spec.names.kind: Required value, spec.names.listKind: Required value]`},
		{"names that are no labels", define("example.com", "{plural: foos, kind: F_o, singular: F, shortNames: [A]}", "["+plain+"]", ""), faulty + `[spec.names.singular: Invalid value: "F": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?'), spec.names.kind: Invalid value: "F_o": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?'), spec.names.listKind: Invalid value: "F_oList": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?'), spec.names.shortNames[0]: Invalid value: "A": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')]`},
		{"a kind that is the kind of the list", define("example.com", "{plural: foos, kind: Foo, listKind: Foo}", "["+plain+"]", ""), faulty + `spec.names.listKind: Invalid value: "Foo": kind and listKind may not be the same`},
		{"no version", define("example.com", names, "[]", ""), faulty + `[spec.versions: Invalid value: []: must have exactly one version marked as storage version, status.storedVersions: Invalid value: null: must have at least one stored version]`},
		{"no version of storage", define("example.com", names, "[{name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}]", ""), faulty + `[spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: must have exactly one version marked as storage version, status.storedVersions: Invalid value: null: must have at least one stored version]`},
		{"a version twice", define("example.com", names, "["+plain+", "+strings.Replace(plain, "storage: true", "storage: false", 1)+"]", ""), faulty + `spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":true,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null},{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: must contain unique version names`},
		{"a version without a schema, another with a faulty one", define("example.com", names, "[{name: v1, served: true, storage: true}, {name: 2, served: true, storage: false, schema: {openAPIV3Schema: {type: text}}}]", ""), `400 CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: json: cannot unmarshal number into Go struct field CustomResourceDefinitionVersion.spec.versions.name of type string`},
		{"unknown fields that are preserved by the CRD", define("example.com", names, "["+plain+"]", "preserveUnknownFields: true"), faulty + `spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead`},
		{"a webhook without an address", define("example.com", names, "["+plain+"]", "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v7], clientConfig: {}}}"), faulty + `[spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required, spec.conversion.conversionReviewVersions: Invalid value: ["v7"]: must include at least one of v1, v1beta1]`},
		{"an unknown strategy of conversion", define("example.com", names, "["+plain+"]", "conversion: {strategy: Magic}"), faulty + `spec.conversion.strategy: Unsupported value: "Magic": supported values: "None", "Webhook"`},
		{"a group of the community", strings.ReplaceAll(define("example.k8s.io", names, "["+plain+"]", ""), "foos.example.com", "foos.example.k8s.io"), `422 CustomResourceDefinition.apiextensions.k8s.io "foos.example.k8s.io" is invalid: metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111`},
		{"a field of another type", define("example.com", names, "{}", ""), `400 CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: json: cannot unmarshal object into Go struct field CustomResourceDefinitionSpec.spec.versions of type []v1.CustomResourceDefinitionVersion`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := newWire(t).send(http.MethodPost, crds, c.body).failure(); got != c.want {
				t.Errorf("refused with:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestFaultyPartsOfVersionsAreRefused(t *testing.T) {
	for _, c := range []struct{ name, version, want string }{
		{"printer columns", "schema: {openAPIV3Schema: {type: object}}\nadditionalPrinterColumns: [{name: a, type: text, jsonPath: spec}, {jsonPath: .spec, type: string, format: x}, {name: b, type: date}]", faulty + `[spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string, spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec": must be a simple json path starting with ., spec.additionalPrinterColumns[1].name: Required value, spec.additionalPrinterColumns[1].format: Invalid value: "x": must be one of byte,date,date-time,double,float,int32,int64,password, spec.additionalPrinterColumns[2].JSONPath: Required value]`},
		{"paths of the scale", "schema: {openAPIV3Schema: {type: object}}\nsubresources: {scale: {specReplicasPath: .status.a, statusReplicasPath: replicas, labelSelectorPath: .x}}", faulty + `[spec.subresources.scale.specReplicasPath: Invalid value: ".status.a": should be a json path under .spec, spec.subresources.scale.statusReplicasPath: Invalid value: "replicas": must be a simple json path starting with ., spec.subresources.scale.labelSelectorPath: Invalid value: ".x": should be a json path under either .spec or .status]`},
		{"a warning of a version that is not deprecated", "schema: {openAPIV3Schema: {type: object}}\ndeprecationWarning: old", faulty + `spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions`},
		{"selectable fields", "schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}, b: {type: array, items: {type: string}}}}}}}\nselectableFields: [{jsonPath: .spec.a}, {jsonPath: .spec.a}, {jsonPath: .spec.b}, {jsonPath: .spec.c}, {jsonPath: .metadata.name}]", faulty + `[spec.selectableFields[1].jsonPath: Duplicate value: ".spec.a", spec.selectableFields[2].jsonPath: Invalid value: ".spec.b": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed., spec.selectableFields[3].jsonPath: Invalid value: ".spec.c": is an invalid path: does not refer to a valid field, spec.selectableFields[4].jsonPath: Invalid value: ".metadata.name": is an invalid path: does not refer to a valid field]`},
		{"a root with a status that has alternatives", "subresources: {status: {}}\nschema: {openAPIV3Schema: {type: object, maxProperties: 3}}", faulty + `spec.validation.openAPIV3Schema: Invalid value: {"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false,"Format":"","Title":"","Default":null,"Maximum":null,"ExclusiveMaximum":false,"Minimum":null,"ExclusiveMinimum":false,"MaxLength":null,"MinLength":null,"Pattern":"","MaxItems":null,"MinItems":null,"UniqueItems":false,"MultipleOf":null,"Enum":null,"MaxProperties":3,"MinProperties":null,"Required":null,"Items":null,"AllOf":null,"OneOf":null,"AnyOf":null,"Not":null,"Properties":null,"AdditionalProperties":null,"PatternProperties":null,"Dependencies":null,"AdditionalItems":null,"Definitions":null,"ExternalDocs":null,"Example":null,"XPreserveUnknownFields":null,"XEmbeddedResource":false,"XIntOrString":false,"XListMapKeys":null,"XListType":null,"XMapType":null,"XValidations":null}: only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled`},
		{"a root that is not an object", "subresources: {status: {}}\nschema: {openAPIV3Schema: {type: array, items: {type: string}}}", faulty + `[spec.validation.openAPIV3Schema.type: Invalid value: "array": only "object" is allowed as the type at the root of the schema if the status subresource is enabled, spec.validation.openAPIV3Schema.type: Invalid value: "array": must be object at the root]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := newWire(t).send(http.MethodPost, crds, crd(c.version)).failure(); got != c.want {
				t.Errorf("refused with:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestFaultySchemasAreRefused(t *testing.T) {
	for _, c := range []struct{ name, spec, want string }{
		{"no type", "properties: {a: {properties: {b: {type: string}}}}", faulty + `spec.validation.openAPIV3Schema.properties[spec].properties[a].type: Required value: must not be empty for specified object fields`},
		{"an unknown type", "properties: {a: {type: text}}", faulty + `spec.validation.openAPIV3Schema.properties[spec].properties[a].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"`},
		{"alternatives with types", "properties: {a: {type: object, anyOf: [{type: object, properties: {b: {type: string}}}]}}", faulty + `[spec.validation.openAPIV3Schema.properties[spec].properties[a].anyOf[0].properties[b].type: Forbidden: must be empty to be structural, spec.validation.openAPIV3Schema.properties[spec].properties[a].anyOf[0].type: Forbidden: must be empty to be structural]`},
		{"fields and other fields", "properties: {a: {type: object, properties: {b: {type: string}}, additionalProperties: {type: string}}}", faulty + `spec.validation.openAPIV3Schema.properties[spec].properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive`},
		{"what is not supported", "properties: {a: {type: object, $ref: '#/x', uniqueItems: true, definitions: {x: {type: string}}}}", faulty + `[spec.validation.openAPIV3Schema.properties[spec].properties[a].definitions: Forbidden: definitions is not supported, spec.validation.openAPIV3Schema.properties[spec].properties[a].$ref: Forbidden: $ref is not supported, spec.validation.openAPIV3Schema.properties[spec].properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic]`},
		{"a default of another type, and one with unknown fields", "properties: {a: {type: integer, default: x}, b: {type: object, default: {c: 1}}}", faulty + `[spec.validation.openAPIV3Schema.properties[spec].properties[a].default: Invalid value: "string":  in body must be of type integer: "string", spec.validation.openAPIV3Schema.properties[spec].properties[b].default: Invalid value: {"c":1}: must not have unknown fields]`},
		{"a set of objects", "properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: object}}}", faulty + `spec.validation.openAPIV3Schema.properties[spec].properties[a].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set`},
		{"a map without keys", "properties: {a: {type: array, x-kubernetes-list-type: map, items: {type: object}}}", faulty + `spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map`},
		{"a map with keys that are not required, unknown or twice", "properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, l, k, m], items: {type: object, properties: {k: {type: string}, m: {type: object}}}}}", faulty + `[spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-list-map-keys: Invalid value: ["k","l","k","m"]: entries must all be names of item properties, spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-list-map-keys: Invalid value: ["k","l","k","m"]: must not contain duplicate entries, spec.validation.openAPIV3Schema.properties[spec].properties[a].items.properties[m].type: Invalid value: "object": must be a scalar type if parent array's x-kubernetes-list-type is map, spec.validation.openAPIV3Schema.properties[spec].properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property, spec.validation.openAPIV3Schema.properties[spec].properties[a].items.properties[m].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property]`},
		{"keys without a map", "properties: {a: {type: array, x-kubernetes-list-map-keys: [k], items: {type: object}}}", faulty + `spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty`},
		{"an unknown kind of list and of map", "properties: {a: {type: array, x-kubernetes-list-type: bag, items: {type: string}}, b: {type: object, x-kubernetes-map-type: bag}, c: {type: string, x-kubernetes-map-type: atomic}}", faulty + `[spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map", spec.validation.openAPIV3Schema.properties[spec].properties[b].x-kubernetes-map-type: Unsupported value: "bag": supported values: "atomic", "granular", spec.validation.openAPIV3Schema.properties[spec].properties[c].type: Invalid value: "string": must be object if x-kubernetes-map-type is specified]`},
		{"unknown fields that are not preserved", "properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: false}}", faulty + `spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined`},
		{"a rule that is no expression", "x-kubernetes-validations: [{rule: 'self.a >'}]\nproperties: {a: {type: integer}}", faulty + `spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.a \u003e","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:9: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}` + "\n | self.a >\n | ........^"},
		{"a rule of an unknown field", "x-kubernetes-validations: [{rule: 'self.z > 1'}]\nproperties: {a: {type: integer}}", faulty + `spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.z \u003e 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field 'z'` + "\n | self.z > 1\n | ....^"},
		{"a rule that is no condition", "x-kubernetes-validations: [{rule: 'self.a'}]\nproperties: {a: {type: integer}}", faulty + `spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.a","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: cel expression must evaluate to a bool`},
		{"a rule without words, a message of lines, an unknown reason and path", "x-kubernetes-validations: [{rule: ' '}, {rule: 'true', message: \"a\\nb\"}, {rule: 'true', reason: Bad, fieldPath: .z}]\nproperties: {a: {type: integer}}", faulty + `[spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Required value: rule is not specified, spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[1].message: Invalid value: "a\nb": must not contain line breaks, spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[2].reason: Unsupported value: "Bad": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired", spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[2].fieldPath: Invalid value: ".z": must be a valid path]`},
		{"a rule that costs too much", "properties: {a: {type: array, items: {type: object, properties: {b: {type: array, items: {type: string}}}, x-kubernetes-validations: [{rule: 'self.b.all(x, self.b.all(y, x == y || x.contains(y)))'}]}}}", faulty + `[spec.validation.openAPIV3Schema.properties[spec].properties[a].items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared), spec.validation.openAPIV3Schema.properties[spec].properties[a].items.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema, spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)]`},
		{"a rule of the older value in a list", "properties: {a: {type: array, items: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}}}", faulty + `[spec.validation.openAPIV3Schema.properties[spec].properties[a].items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared), spec.validation.openAPIV3Schema.properties[spec].properties[a].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec].properties[a], spec.validation.openAPIV3Schema.properties[spec].properties[a].items.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema, spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)]`},
		{"an optional older value that is not used", "x-kubernetes-validations: [{rule: 'true', optionalOldSelf: true}]\nproperties: {a: {type: integer}}", faulty + `spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule`},
		{"a message that is no text", "x-kubernetes-validations: [{rule: 'true', messageExpression: '1'}]\nproperties: {a: {type: integer}}", faulty + `spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].messageExpression: Invalid value: {"Rule":"true","Message":"","MessageExpression":"1","Reason":null,"FieldPath":"","OptionalOldSelf":null}: messageExpression must evaluate to a string`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := newWire(t).send(http.MethodPost, crds, crd(specOf(c.spec))).failure(); got != c.want {
				t.Errorf("refused with:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestSomePartsOfCRDsCannotChange(t *testing.T) {
	const names = "{plural: foos, kind: Foo}"
	second := "{name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}"
	for _, c := range []struct{ name, patch, want string }{
		{"the scope and the kind", "{spec: {scope: Cluster, names: {kind: Bar}}}", faulty + `[spec.scope: Invalid value: "Cluster": field is immutable, spec.names.kind: Invalid value: "Bar": field is immutable]`},
		{"the group and the plural", "{spec: {group: example.org, names: {plural: bars}}}", faulty + `[spec.group: Invalid value: "example.org": field is immutable, spec.names.plural: Invalid value: "bars": field is immutable]`},
		{"a version in which objects are stored", "{spec: {versions: [" + second + "]}}", faulty + `status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			w.ok(http.MethodPost, crds, define("example.com", names, "["+plain+"]", ""))
			if got := w.send(http.MethodPatch, crds+"/foos.example.com", c.patch, mergePatch).failure(); got != c.want {
				t.Errorf("refused with:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestCRDsAreBroughtIntoForm(t *testing.T) {
	w := newWire(t)
	w.ok(http.MethodPost, crds, define("example.com", "{plural: foos, kind: Foo}", "["+plain+"]", ""))
	first := strings.Replace(plain, "storage: true", "storage: false", 1)
	second := "{name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}"
	w.ok(http.MethodPatch, crds+"/foos.example.com", "{spec: {versions: ["+first+", "+second+"]}}", mergePatch)
	got := w.ok(http.MethodGet, crds+"/foos.example.com", "")
	for path, want := range map[string]string{
		"spec.names":            `{"kind":"Foo","listKind":"FooList","plural":"foos","singular":"foo"}`,
		"spec.conversion":       `{"strategy":"None"}`,
		"status.acceptedNames":  `{"kind":"Foo","listKind":"FooList","plural":"foos","singular":"foo"}`,
		"status.storedVersions": `["v1","v2"]`,
	} {
		if got := got.json(strings.Split(path, ".")...); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	strict := w.send(http.MethodPost, crds+"?fieldValidation=Strict", strings.Replace(define("example.com", "{plural: foos, kind: Foo}", "["+plain+"]", "scoop: a"), "foos.example.com", "bars.example.com", 1))
	const want = `400 CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: strict decoding error: unknown field "spec.scoop"`
	if got := strict.failure(); got != want {
		t.Errorf("refused with %s, want %s", got, want)
	}
}
