// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestPatchesOfEachKind(t *testing.T) {
	w := newFoos(t)
	for name, c := range map[string]struct {
		path  string
		patch types.PatchType
		body  string
		want  string // a field of the answer
	}{
		"a JSON patch":            {foos + "/a", types.JSONPatchType, `[{"op":"test","path":"/spec/x","value":1},{"op":"add","path":"/spec/list","value":[1]},{"op":"add","path":"/spec/list/-","value":2}]`, "list:[1 2]"},
		"a merge patch":           {foos + "/a", types.MergePatchType, `{"spec":{"y":{"z":null,"n":1}}}`, "y:map[n:1]"},
		"a strategic merge patch": {inDefault + "/a", types.StrategicMergePatchType, `{"data":{"k":"v"}}`, "k:v"},
		"an apply in YAML":        {foos + "/a?fieldManager=me", types.ApplyPatchType, "apiVersion: example.com/v1\nkind: Foo\nmetadata: {name: a}\nspec: {mine: true}\n", "mine:true"},
		"an apply in JSON":        {foos + "/new?fieldManager=me", types.ApplyPatchType, `{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"new"},"spec":{"mine":1}}`, "mine:1"},
	} {
		out := w.send(http.MethodPatch, c.path, c.body, "Content-Type", string(c.patch))
		if out.code != http.StatusOK && !strings.Contains(c.path, "/new") || !strings.Contains(fmt.Sprint(out.json["spec"], out.json["data"]), c.want) {
			t.Errorf("%s: %d %s", name, out.code, out.text)
		}
	}
}

func TestPatchesThatTheServerRefuses(t *testing.T) {
	w := newFoos(t)
	foo, configMap := "PATCH "+foos+"/a", "PATCH "+inDefault+"/a"
	const edit, merge, strategic, apply = string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyPatchType)
	const unprocessable, modified = "422 the server rejected our request due to an error in our request",
		`409 Operation cannot be fulfilled on foos.example.com "a": the object has been modified; please apply your changes to the latest version and try again`
	w.refuses(map[string]refusal{
		"a path that is absent":    {foo, `[{"op":"replace","path":"/spec/zz/y","value":1}]`, edit, unprocessable},
		"a test that fails":        {foo, `[{"op":"test","path":"/spec/x","value":5}]`, edit, unprocessable},
		"an unknown operation":     {foo, `[{"op":"bad","path":"/spec/x","value":5}]`, edit, unprocessable},
		"no list":                  {foo, `{"op":"bad"}`, edit, "400 error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"},
		"no JSON":                  {foo, `[bad`, edit, "400 invalid JSON patch"},
		"nothing":                  {foo, ``, edit, "400 invalid JSON patch"},
		"another name":             {foo, `[{"op":"replace","path":"/metadata/name","value":"b"}]`, edit, "400 the name of the object (b) does not match the name on the URL (a)"},
		"an old version":           {foo, `[{"op":"replace","path":"/metadata/resourceVersion","value":"1"}]`, edit, modified},
		"another kind":             {foo, `[{"op":"replace","path":"/kind","value":"Bar"}]`, edit, `422 Bar.example.com "a" is invalid: kind: Invalid value: "Bar": must be Foo`},
		"another API version":      {foo, `[{"op":"replace","path":"/apiVersion","value":"example.com/v3"}]`, edit, `422 Foo.example.com "a" is invalid: apiVersion: Invalid value: "example.com/v3": must be example.com/v1`},
		"too many operations":      {foo, "[" + strings.Repeat(`{"op":"test","path":"/spec/x","value":1},`, 10_000) + `{"op":"test","path":"/spec/x","value":1}]`, edit, "413 Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"},
		"an unknown object":        {"PATCH " + foos + "/zzz", `[]`, edit, `404 foos.example.com "zzz" not found`},
		"a merge of a list":        {foo, `[]`, merge, "400 error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"},
		"a merge that is no JSON":  {foo, `{bad`, merge, "400 invalid JSON patch"},
		"a merge's other name":     {foo, `{"metadata":{"name":"b"}}`, merge, "400 the name of the object (b) does not match the name on the URL (a)"},
		"a merge's namespace":      {foo, `{"metadata":{"namespace":"b"}}`, merge, "400 the namespace of the provided object does not match the namespace sent on the request"},
		"a merge's old version":    {foo, `{"metadata":{"resourceVersion":"1"}}`, merge, modified},
		"a merge's uid":            {foo, `{"metadata":{"uid":"1"}}`, merge, `422 Foo.example.com "a" is invalid: metadata.uid: Invalid value: "1": field is immutable`},
		"strategic of a CRD":       {foo, `{}`, strategic, "415 the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"},
		"strategic with a list":    {configMap, `[]`, strategic, "400 json: cannot unmarshal array into Go value of type map[string]interface {}"},
		"an unknown type":          {foo, `{}`, "application/x", "415 the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"},
		"an apply without manager": {configMap, `{}`, apply, `422 PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch`},
		"an apply without kind":    {configMap + "?fieldManager=x", `{}`, apply, "400 invalid object type: /, Kind="},
		"an apply of another kind": {configMap + "?fieldManager=x", `{"apiVersion":"v1","kind":"Pod"}`, apply, "400 invalid object type: /v1, Kind=Pod"},
		"an apply of bad YAML":     {configMap + "?fieldManager=x", `bad: [`, apply, "400 error encoding patch: yaml: line 1: did not find expected node content"},
		"an apply's other name":    {configMap + "?fieldManager=x", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`, apply, "400 the name of the object (b) does not match the name on the URL (a)"},
		"an apply's conflict":      {foo + "?fieldManager=x", `{"apiVersion":"example.com/v1","kind":"Foo","spec":{"x":3}}`, apply, `409 Apply failed with 1 conflict: conflict with "wire" using example.com/v1: .spec.x`},
		"an apply's new uid":       {"PATCH " + foos + "/new?fieldManager=x", `{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"new","uid":"1"}}`, apply, `409 Operation cannot be fulfilled on foos.example.com "new": uid mismatch: the provided object specified uid 1, and no existing object was found`},
		"force without apply":      {configMap + "?force=true", `{}`, merge, `422 PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch`},
		"a long manager":           {configMap + "?fieldManager=" + strings.Repeat("x", 140), `{}`, merge, `422 PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes`},
	})
	if out := w.send(http.MethodGet, foos+"/a", ""); out.meta("generation") != "1" {
		t.Errorf("a refused patch has changed the object: %s", out.text)
	}
}
