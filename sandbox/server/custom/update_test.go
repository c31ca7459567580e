// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"net/http"
	"testing"
)

const mergePatch = "application/merge-patch+json"

func TestWhatDidNotChangePasses(t *testing.T) {
	const (
		loose  = "properties: {size: {type: integer}, color: {type: string}, list: {type: array, maxItems: 9, items: {type: object, properties: {name: {type: string}}}}}"
		strict = `
required: [owner]
properties:
  owner: {type: string}
  size: {type: integer, maximum: 3}
  color: {type: string, maxLength: 10, x-kubernetes-validations: [{rule: self == 'red'}]}
  list: {type: array, maxItems: 9, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string, maxLength: 1}}}}`
	)
	const stored = "spec: {size: 5, color: blue, list: [{name: aa}, {name: aa}]}"
	for _, c := range []struct{ name, stored, patch, want string }{
		{"a label changes, and the spec is invalid as before", stored, "metadata: {labels: {x: z}}", ""},
		{"a field that is invalid changes", stored, "spec: {size: 6}", invalid + `[spec.owner: Required value, spec.size: Invalid value: 6: spec.size in body should be less than or equal to 3, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`},
		{"a field that breaks a rule changes", stored, "spec: {owner: me, color: green}", invalid + `spec.color: Invalid value: "green": failed rule: self == 'red'`},
		{"a list with duplicates gets another one", stored, "spec: {owner: me, list: [{name: aa}, {name: aa}, {name: aa}]}", ""},
		{"a valid field changes beside invalid ones", stored, "spec: {owner: me}", ""},
		{"a list without duplicates gets one", "spec: {list: [{name: a}]}", "spec: {owner: me, list: [{name: a}, {name: a}]}", invalid + `spec.list[1]: Duplicate value: {"name":"a"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			w.ok(http.MethodPost, crds, crd(specOf(loose)))
			w.ok(http.MethodPost, foos, foo(c.stored))
			if failure := w.redefine(specOf(strict)).failure(); failure != "" {
				t.Fatal(failure)
			}
			if got := w.send(http.MethodPatch, foos+"/a", c.patch, mergePatch).failure(); got != c.want {
				t.Errorf("refused with:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestRulesSeeTheStoredObject(t *testing.T) {
	const schema = `
properties:
  size: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf, message: it cannot shrink}]}
  name: {type: string, maxLength: 5, x-kubernetes-validations: [{rule: self == oldSelf, reason: FieldValueForbidden}]}
  once: {type: string, maxLength: 5, x-kubernetes-validations: [{rule: '!oldSelf.hasValue()', optionalOldSelf: true}]}`
	for _, c := range []struct{ name, patch, want string }{
		{"it grows", "spec: {size: 6}", ""},
		{"it shrinks", "spec: {size: 4}", invalid + `spec.size: Invalid value: 4: it cannot shrink`},
		{"it is set for the first time", "spec: {once: a}", ""},
		{"a fixed field changes", "spec: {name: b}", invalid + `spec.name: Forbidden: failed rule: self == oldSelf`},
		{"a fixed field is removed", "spec: {name: null}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			w.ok(http.MethodPost, crds, crd(specOf(schema)))
			w.ok(http.MethodPost, foos, foo("spec: {size: 5, name: a}"))
			if got := w.send(http.MethodPatch, foos+"/a", c.patch, mergePatch).failure(); got != c.want {
				t.Errorf("refused with:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestTheStatusIsValidatedByItself(t *testing.T) {
	const schema = `
subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}}
schema:
  openAPIV3Schema:
    type: object
    required: [spec]
    properties:
      spec: {type: object, properties: {replicas: {type: integer}}}
      status:
        type: object
        properties:
          replicas: {type: integer}
          selector: {x-kubernetes-int-or-string: true}
          phase: {type: string, enum: [Up, Down]}
          ready: {type: boolean, default: false}
        x-kubernetes-validations: [{rule: "!has(self.phase) || self.phase == 'Up' || !self.ready", message: what is down is not ready}]`
	for _, c := range []struct{ name, path, patch, want, status string }{
		{"its defaults are set", "/status", "status: {phase: Up}", "", `{"phase":"Up","ready":false}`},
		{"an unknown phase", "/status", "status: {phase: Lost}", invalid + `[status.phase: Unsupported value: "Lost": supported values: "Up", "Down", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`, ``},
		{"a broken rule", "/status", "status: {phase: Down, ready: true}", invalid + `status: Invalid value: what is down is not ready`, ``},
		{"negative replicas", "/status", "status: {replicas: -1}", invalid + `.status.replicas: Invalid value: -1: should be a non-negative integer`, ``},
		{"a selector that is no text", "/status", "status: {selector: 1}", invalid + `.status.selector: Invalid value: "": .status.selector accessor error: 1 is of the type int64, expected string`, ``},
		{"an invalid spec is left out", "/status", "{spec: {replicas: x}, status: {phase: Up}}", "", `{"phase":"Up","ready":false}`},
		{"an invalid status of the whole object is left out", "", "{spec: {replicas: 1}, status: {phase: Lost}}", "", `null`},
		{"negative wanted replicas", "", "{spec: {replicas: -1}}", invalid + `.spec.replicas: Invalid value: -1: should be a non-negative integer`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			w.ok(http.MethodPost, crds, crd(schema))
			w.ok(http.MethodPost, foos, foo("spec: {replicas: 2}\nstatus: {phase: wrong}"))
			got := w.send(http.MethodPatch, foos+"/a"+c.path, c.patch, mergePatch)
			if got := got.failure(); got != c.want {
				t.Errorf("refused with:\n%s\nwant:\n%s", got, c.want)
			}
			if got := got.json("status"); c.want == "" && got != c.status {
				t.Errorf("status:\n%s\nwant:\n%s", got, c.status)
			}
		})
	}
}

// redefine changes the version of the CRD.
func (w wire) redefine(version string) answer {
	w.t.Helper()
	stored := w.ok(http.MethodGet, crds+"/foos.example.com", "")
	return w.send(http.MethodPut, crds+"/foos.example.com",
		crdOf("name: foos.example.com, resourceVersion: "+stored.json("metadata", "resourceVersion"), version))
}
