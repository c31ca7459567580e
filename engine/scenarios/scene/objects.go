// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// The resources of the tests, in the spelling of operators.
const (
	Foos        = "foos.v1.example.com"
	Bars        = "bars.v1.example.org"
	ConfigMaps  = "configmaps.v1"
	CRDs        = "customresourcedefinitions.v1.apiextensions.k8s.io"
	Deployments = "deployments.v1.apps"
	Jobs        = "jobs.v1.batch"
	Leases      = "leases.v1.coordination.k8s.io"
	Secrets     = "secrets.v1"
	Services    = "services.v1"
)

// What an operator named op keeps on objects.
const (
	Finalizer        = "op.handwerk.dev/finalizer"
	StateAnnotation  = "op.handwerk.dev/state"
	RecordAnnotation = "op.handwerk.dev/children" // of an owner: the record of its children
	ChildAnnotation  = "op.handwerk.dev/child"    // of a child: the handler that made it
)

// OpsNamespace is the namespace of operators that have a register.
const OpsNamespace = "ops"

// StatusWrite is the request that writes web's status.
const StatusWrite = "patch foos/status default/web"

// Web is the Foo that most tests are about. The others have its name, too.
const (
	Web             = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, color: red}}`
	WebWithoutColor = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1}}`
	// GoldWeb is for operators that select what is gold.
	GoldWeb = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {tier: gold}}, spec: {size: 1, color: red}}`
	// WebThatShares is for handlers of MakesShared: both of its fields name one child.
	WebThatShares = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {size: 1, one: shared, two: shared}}`
)

// PlainSecret is a Secret whose values begin with hush. [Texts.WantNoSecret] looks for them.
const PlainSecret = `{apiVersion: v1, kind: Secret, metadata: {name: creds}, type: Opaque, data: {one: aHVzaCBodXNoOiV6eig=, list: aHVzaCB0d28saHVzaCB0d28=, "true": YQ==}}`

// FooIn returns a Foo.
func FooIn(namespace, name string, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"namespace": namespace, "name": name}, "spec": spec}
}

// FooWithRef returns a Foo whose spec.ref names another object or a key.
func FooWithRef(name, ref string) string {
	return fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: %s}, spec: {ref: %s}}`, name, ref)
}

// ConfigMapIn returns an empty ConfigMap.
func ConfigMapIn(namespace, name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": namespace}}
}

// ConfigMapWithValue returns a ConfigMap named web with a value.
func ConfigMapWithValue(namespace, value string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "web", "namespace": namespace}, "data": map[string]any{"value": value}}
}

// SpoilValue changes the value of a ConfigMapWithValue.
func SpoilValue(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"value": "drifted"} }

// DeploymentNamed returns a Deployment with so many replicas.
func DeploymentNamed(name string, replicas any) map[string]any {
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"replicas": replicas},
	}
}

// OwnedObject returns an object in the default namespace that the owner controls.
func OwnedObject(owner *unstructured.Unstructured, apiVersion, kind, name string) map[string]any {
	return map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "ownerReferences": []any{map[string]any{
			"apiVersion": owner.GetAPIVersion(), "kind": owner.GetKind(), "name": owner.GetName(), "uid": string(owner.GetUID()), "controller": true,
		}}},
	}
}

// AddConditions adds status.conditions to the schema of a CRD.
func AddConditions(crd *unstructured.Unstructured) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	_ = unstructured.SetNestedField(versions[0].(map[string]any), map[string]any{"type": "array"},
		"schema", "openAPIV3Schema", "properties", "status", "properties", "conditions")
	_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
}

// ValueAt returns the value at a path of an object, nil if there is none.
func ValueAt(o *unstructured.Unstructured, path string) any {
	if o == nil {
		return nil
	}
	value, _ := dsl.MustParsePath(path).In(o.Object)
	return value
}

// SizeOf returns spec.size of an object.
func SizeOf(o *unstructured.Unstructured) int64 {
	size, _, _ := unstructured.NestedInt64(o.Object, "spec", "size")
	return size
}

// SetField returns a change that sets a field.
func SetField(value any, path ...string) func(o *unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

// Condition returns a condition of an object, nil if there is none of that type.
func Condition(o *unstructured.Unstructured, kind string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if fields, _ := c.(map[string]any); fields["type"] == kind {
			return fields
		}
	}
	return nil
}

// ConditionMessage returns the message of a condition, empty if there is none.
func ConditionMessage(o *unstructured.Unstructured, kind string) string {
	text, _ := Condition(o, kind)["message"].(string)
	return text
}
