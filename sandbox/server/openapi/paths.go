// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a resource whose paths are in a document.
type Resource struct {
	Kind       schema.GroupVersionKind
	Plural     string
	Namespaced bool
	// Model and List are the names of the schemas of its objects and of their lists.
	Model, List string
	// Custom says that it comes from a CRD.
	Custom bool
	// Collection says that all its objects can be deleted at once, and Returned that a deletion is answered with the object.
	Collection, Returned bool
	Subresources         []Subresource
}

// Subresource is a part of the objects of a resource with a path of its own.
type Subresource struct {
	Name string
	// Kind is that of its objects, and Model their schema.
	Kind  schema.GroupVersionKind
	Model string
	// Methods are those of HTTP that it has, such as put.
	Methods []string
}

// shared is the beginning of the names of schemas of the API machinery.
const shared = "io.k8s.apimachinery.pkg.apis.meta.v1."

// Paths returns the paths of the resources of a version with their operations, as a v3 document has them.
func Paths(version schema.GroupVersion, resources []Resource) map[string]any {
	root := "/apis/" + version.String() + "/"
	if version.Group == "" {
		root = "/api/" + version.Version + "/"
	}
	v := author{version: version, style: builtinStyle()}
	if !slices.ContainsFunc(resources, func(r Resource) bool { return !r.Custom }) {
		v.style = customStyle()
	}
	get := v.operation("get", "get available resources", "get"+v.identifier()+"APIResources")
	delete(get, "x-kubernetes-action")
	get["responses"] = responses(v.style.answers, shared+"APIResourceList", "200")
	out := map[string]any{root: map[string]any{"get": get}}
	for _, r := range resources {
		v.Resource = r
		maps.Copy(out, v.paths(root))
	}
	return out
}

// paths returns the paths of the resource.
func (a author) paths(root string) map[string]any {
	below, placed := "", []string{"pretty"}
	if a.Namespaced {
		below, placed = "namespaces/{namespace}/", append(placed, "namespace")
	}
	named := append(slices.Clone(placed), "name")
	list := root + below + a.Plural
	out := map[string]any{
		list:             a.item(a.collection(), placed, ""),
		list + "/{name}": a.item(a.object(), named, a.Kind.Kind),
	}
	if a.Namespaced {
		out[root+a.Plural] = a.item(map[string]any{"get": a.list("ForAllNamespaces")}, []string{"pretty"}, "")
	}
	for _, sub := range a.Subresources {
		out[list+"/{name}/"+sub.Name] = a.item(a.part(sub), named, sub.Kind.Kind)
	}
	if a.Custom {
		return out
	}
	watch := func(end string, names []string, one bool) map[string]any {
		return a.item(map[string]any{"get": a.watch(end, one)}, append(listing(), names...), a.Kind.Kind)
	}
	out[root+"watch/"+below+a.Plural] = watch("List", placed, false)
	out[root+"watch/"+below+a.Plural+"/{name}"] = watch("", named, true)
	if a.Namespaced {
		out[root+"watch/"+a.Plural] = watch("ListForAllNamespaces", []string{"pretty"}, false)
	}
	return out
}

// item returns operations with parameters that all of them have. The path can have the name of an object of a kind. A single
// operation has no parameters of its own.
func (a author) item(operations map[string]any, names []string, kind string) map[string]any {
	given := a.parameters(names)
	for _, only := range operations {
		if op := only.(map[string]any); len(operations) == 1 {
			own, _ := op["parameters"].([]any)
			given = append(given, own...)
			delete(op, "parameters")
		}
	}
	slices.SortFunc(given, func(x, y any) int {
		return strings.Compare(x.(map[string]any)["name"].(string), y.(map[string]any)["name"].(string))
	})
	for _, each := range given {
		if p := each.(map[string]any); p["name"] == "name" {
			p["description"] = "name of the " + kind
		}
	}
	operations["parameters"] = given
	return operations
}

// listing returns the names of the parameters of lists.
func listing() []string {
	return []string{"allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "shardSelector", "timeoutSeconds", "watch"}
}

// managerOfPatch is the parameter with the manager of a patch, which has another text than that of other writes.
const managerOfPatch = "fieldManager of a patch"

// writing returns the names of the parameters of writes.
func writing() []string { return []string{"dryRun", "fieldManager", "fieldValidation"} }

// deleting returns the names of the parameters of deletions.
func deleting() []string {
	return []string{"dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential", "orphanDependents", "propagationPolicy"}
}

// parameters returns parameters by their names.
func (a author) parameters(names []string) (out []any) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for _, name := range names {
		known := parameters()[name]
		name, _, _ = strings.Cut(name, " ")
		p := map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": known.Type, "uniqueItems": true}, "description": known.Text}
		if name == "name" || name == "namespace" {
			p["in"], p["required"] = "path", true
		}
		out = append(out, p)
	}
	return out
}

// identifier is the version in the names of operations, such as AppsV1.
func (a author) identifier() string {
	group := strings.TrimSuffix(a.version.Group, ".k8s.io")
	if group == "" {
		group = "core"
	}
	var out strings.Builder
	for part := range strings.FieldsFuncSeq(group+"."+a.version.Version, func(r rune) bool { return r == '.' || r == '-' }) {
		out.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return out.String()
}

// tag is the word by which operations are grouped, such as apps_v1.
func (a author) tag() string {
	end := strings.ToUpper(a.version.Version[:1]) + a.version.Version[1:]
	group := strings.TrimSuffix(a.identifier(), end)
	return strings.ToLower(group[:1]) + group[1:] + "_" + a.version.Version
}
