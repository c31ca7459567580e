// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
)

func TestAnEventIsReadAsTheServerWritesIt(t *testing.T) {
	const metadata = `"metadata":{"annotations":{"a":"{\"name\":\"other\"}"},"creationTimestamp":"2026-01-02T03:04:05Z",` +
		`"managedFields":[{"fieldsV1":{"f:metadata":{"f:name":{}}},"manager":"name"}],"name":"foo-1","namespace":"n",` +
		`"resourceVersion":"12","uid":"u-1"`
	for name, c := range map[string]struct {
		frame string
		want  event
	}{
		"a new Foo": {
			`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Foo",` + metadata + `},"spec":{"deploymentName":"d","replicas":3}}}`,
			event{name: "foo-1", uid: "u-1", wanted: 3, reported: -1},
		},
		"one that has its status": {
			`{"type":"MODIFIED","object":{` + metadata + `},"spec":{"replicas":3},"status":{"conditions":[{"type":"a"}],"availableReplicas":2}}}`,
			event{name: "foo-1", uid: "u-1", wanted: 3, reported: 2},
		},
		"one that is being deleted": {
			`{"type":"MODIFIED","object":{` + metadata + `,"deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["x","` + mine + `"]},"spec":{"replicas":1}}}`,
			event{name: "foo-1", uid: "u-1", wanted: 1, reported: -1, deleting: true, held: true},
		},
		"one that is gone": {
			`{"type":"DELETED","object":{` + metadata + `},"spec":{"replicas":1}}}`,
			event{name: "foo-1", uid: "u-1", wanted: 1, reported: -1, gone: true},
		},
		"the end of what there was": {
			`{"type":"BOOKMARK","object":{"kind":"Foo","metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"creationTimestamp":null,"resourceVersion":"12"},"spec":{"deploymentName":""}}}`,
			event{wanted: -1, reported: -1, end: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var version []byte
			got, err := parse([]byte(c.frame), readFoo, &version)
			if err != nil || got != c.want || string(version) != "12" {
				t.Errorf("got %+v, version %s, %v, want %+v", got, version, err, c.want)
			}
		})
	}
	if _, err := parse([]byte(`{"type":"ERROR","object":{"kind":"Status","code":410}}`), readFoo, new([]byte)); err == nil {
		t.Error("an error of the server is taken for an event")
	}
}
