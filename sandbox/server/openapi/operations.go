// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	_ "embed" // for the parameters
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// author writes the operations of a resource in a version.
type author struct {
	Resource
	version schema.GroupVersion
	style   style
}

// style is what documents of built-in resources and those of CRDs say in different ways.
type style struct {
	// answers, watches, bodies and patches are media types: those of answers, those that a list has beside them, and those of the
	// bodies of requests.
	answers, watches, bodies, patches []string
	// lists is the beginning of the text about a list.
	lists string
	// reads and clears are the parameters of a read and of the deletion of a collection.
	reads, clears []string
	// applies says that a patch may create an object, and required that a body has to be there.
	applies, required bool
}

func builtinStyle() style {
	clears := slices.DeleteFunc(append(listing(), deleting()...), func(name string) bool { return name == "watch" || name == "allowWatchBookmarks" })
	return style{
		answers: []string{"application/json", "application/vnd.kubernetes.protobuf", "application/yaml"},
		watches: []string{"application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"},
		bodies:  []string{"*/*"},
		patches: []string{"application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"},
		lists:   "list or watch objects of kind ", clears: clears, applies: true, required: true,
	}
}

func customStyle() style {
	return style{
		answers: []string{"application/json", "application/yaml"}, bodies: []string{"application/json", "application/yaml"},
		patches: []string{"application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"},
		lists:   "list objects of kind ", reads: []string{"resourceVersion"}, clears: listing(),
	}
}

// operation returns an operation without its parameters and answers.
func (a author) operation(action, text, id string) map[string]any {
	return map[string]any{"description": text, "operationId": id, "tags": []any{a.tag()}, "x-kubernetes-action": action}
}

// on returns an operation on objects of the resource. The middle and the end are those of its name.
func (a author) on(action, text, verb, middle, end string) map[string]any {
	scope := ""
	if a.Namespaced && end != "ForAllNamespaces" && end != "ListForAllNamespaces" {
		scope = "Namespaced"
	}
	out := a.operation(action, text, verb+a.identifier()+middle+scope+a.Kind.Kind+end)
	out["x-kubernetes-group-version-kind"] = kindOf(a.Kind)
	return out
}

func kindOf(kind schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}
}

// list returns the operation that lists objects.
func (a author) list(end string) map[string]any {
	out := a.on("list", a.style.lists+a.Kind.Kind, "list", "", end)
	out["parameters"] = a.parameters(listing())
	out["responses"] = responses(append(slices.Clone(a.style.answers), a.style.watches...), a.List, "200")
	return out
}

// watch returns the operation of a path of the old form for watches.
func (a author) watch(end string, one bool) map[string]any {
	const instead = "deprecated: use the 'watch' parameter with a list operation instead"
	action, text := "watchlist", "watch individual changes to a list of "+a.Kind.Kind+". "+instead+"."
	if one {
		action, text = "watch", "watch changes to an object of kind "+a.Kind.Kind+". "+instead+", filtered to a single item with the 'fieldSelector' parameter."
	}
	out := a.on(action, text, "watch", "", end)
	out["responses"] = responses(append(slices.Clone(a.style.answers), a.style.watches...), shared+"WatchEvent", "200")
	return out
}

// collection returns the operations on all objects.
func (a author) collection() map[string]any {
	out := map[string]any{"get": a.list(""), "post": a.write("post", Subresource{Kind: a.Kind, Model: a.Model})}
	if a.Collection {
		all := a.on("deletecollection", "delete collection of "+a.Kind.Kind, "delete", "Collection", "")
		all["parameters"], all["responses"] = a.parameters(a.style.clears), responses(a.style.answers, shared+"Status", "200")
		if !a.Custom {
			all["requestBody"] = map[string]any{"content": content(a.style.bodies, shared+"DeleteOptions")}
		}
		out["delete"] = all
	}
	return out
}

// object returns the operations on one object.
func (a author) object() map[string]any {
	out := a.part(Subresource{Kind: a.Kind, Model: a.Model, Methods: []string{"get", "put", "patch"}})
	one := a.on("delete", "delete "+withArticle(a.Kind.Kind), "delete", "", "")
	one["parameters"] = a.parameters(deleting())
	one["requestBody"] = map[string]any{"content": content(a.style.bodies, shared+"DeleteOptions")}
	answer := shared + "Status"
	if a.Returned {
		answer = a.Model
	}
	one["responses"] = responses(a.style.answers, answer, "200", "202")
	out["delete"] = one
	return out
}

// part returns the operations on a subresource, or on the object itself if that has no name.
func (a author) part(sub Subresource) map[string]any {
	out := map[string]any{}
	for _, method := range sub.Methods {
		out[method] = a.write(method, sub)
	}
	return out
}

// write returns an operation that reads or writes an object or a subresource.
func (a author) write(method string, sub Subresource) map[string]any {
	of, end := " ", ""
	if sub.Name != "" {
		of, end = " "+sub.Name+" of ", strings.ToUpper(sub.Name[:1])+sub.Name[1:]
	}
	verbs := map[string]string{"get": "read", "put": "replace", "patch": "patch", "post": "create"}
	text := map[string]string{"get": "read", "put": "replace", "patch": "partially update"}[method] + of + "the specified " + a.Kind.Kind
	if method == "post" {
		text = "create" + of + withArticle(a.Kind.Kind)
	}
	out := a.on(method, text, verbs[method], "", end)
	out["x-kubernetes-group-version-kind"] = kindOf(sub.Kind)
	names, codes, bodies, model := writing(), []string{"200", "201"}, a.style.bodies, sub.Model
	switch method {
	case "get":
		names, codes, bodies = a.style.reads, codes[:1], nil
	case "post":
		codes = append(codes, "202")
	case "patch":
		names, bodies, model = append(names[:1:1], managerOfPatch, "fieldValidation", "force"), a.style.patches, shared+"Patch"
		if !a.style.applies {
			codes = codes[:1]
		}
	}
	if given := a.parameters(names); given != nil {
		out["parameters"] = given
	}
	if bodies != nil {
		body := map[string]any{"content": content(bodies, model)}
		if a.style.required || method == "patch" {
			body["required"] = true
		}
		out["requestBody"] = body
	}
	out["responses"] = responses(a.style.answers, sub.Model, codes...)
	return out
}

// responses returns the answers of an operation by their codes.
func responses(forms []string, model string, codes ...string) map[string]any {
	words := map[string]string{"200": "OK", "201": "Created", "202": "Accepted"}
	out := map[string]any{"401": map[string]any{"description": "Unauthorized"}}
	for _, code := range codes {
		out[code] = map[string]any{"description": words[code], "content": content(forms, model)}
	}
	return out
}

// content returns a schema for each media type.
func content(forms []string, model string) map[string]any {
	out := map[string]any{}
	for _, form := range forms {
		out[form] = map[string]any{}
		if model != "" {
			out[form] = map[string]any{"schema": map[string]any{"$ref": components + model}}
		}
	}
	return out
}

// withArticle returns a word after its article, which a plural has not.
func withArticle(word string) string {
	if strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") {
		return word
	}
	if strings.ContainsAny(word[:1], "AEIOU") {
		return "an " + word
	}
	return "a " + word
}

// texts has the types and the texts of parameters. `make kinds` makes it from a document of a real API server.
//
//go:embed parameters.json
var texts []byte

// parameter is what a document says of a parameter.
type parameter struct{ Type, Text string }

// parameters returns all parameters by their names. They are not to be changed.
var parameters = sync.OnceValue(func() map[string]parameter {
	out := map[string]parameter{}
	if err := json.Unmarshal(texts, &out); err != nil {
		panic("openapi: " + err.Error()) // not reached: a test reads the file
	}
	return out
})
