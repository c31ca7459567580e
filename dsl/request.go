// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Request is what a handler gets.
type Request struct {
	// Object is the object as the cache has it: a private copy that the handler may change, to no
	// effect. For a deletion that was seen too late it is the object as it was last seen.
	Object *unstructured.Unstructured
	// Old is the essence as it was when the object was last handled whole, limited to
	// Handler.Field when that is set. It is nil on create, and where only a digest is kept.
	Old map[string]any
	// Diff is how the essence differs from Old. Empty where Old is nil.
	Diff []Change
	// Cause says why the handler runs.
	Cause Cause
	// Attempt counts the handler's attempts for this cause, from 1.
	Attempt int
	// Log carries the resource, namespace, name, handler, cause and attempt.
	Log logr.Logger
	// Patch is what the handler wants changed in the object, status included.
	Patch *Patch
	// Children are the objects that this object owns.
	Children Children
	// Events reports to people who look at the object.
	Events Events
	// Client reads and writes other objects.
	Client Client
	// Params are the handler's parameters from the configuration.
	Params Params
}

// Op says how a field changed.
type Op string

// The ways in which a field changes.
const (
	Added   Op = "add"
	Changed Op = "change"
	Removed Op = "remove"
)

// Change is one difference between two essences. Lists are compared whole.
type Change struct {
	Op       Op
	Path     Path
	Old, New any
}

// EventType is the type of a Kubernetes Event.
type EventType string

// The types of Events.
const (
	Normal  EventType = "Normal"
	Warning EventType = "Warning"
)

// Events reports to people: what is said becomes a Kubernetes Event of the object, and repeated
// ones are counted rather than added.
type Events interface {
	// Event reports. Reason is one CamelCase word, the note a sentence; it is formatted as
	// fmt.Sprintf does.
	Event(kind EventType, reason, note string, args ...any)
}

// Children are the objects that the handled object owns.
type Children interface {
	// Apply makes the child as desired says, by server-side apply under the operator's field
	// manager: fields that desired does not have are left to others. Desired is a map or any
	// value that is an object in JSON; apiVersion, kind and metadata.name are required, the
	// namespace defaults to the owner's. The owner reference is added.
	//
	// Nothing is sent when the child is so already. An object of that name that this object does
	// not own is left alone, and the error is a [NotOwnedError]. Result is the child as the
	// server returned it, or as the cache has it.
	Apply(ctx context.Context, desired any) (*unstructured.Unstructured, error)
	// Get returns the child of that name from the cache, nil when there is none. The resource
	// must be one that the handled resource owns. Where the owner has no namespace but the child
	// has, the name is "namespace/name", here and for Delete.
	Get(resource, name string) (*unstructured.Unstructured, error)
	// List returns the object's children of that resource from the cache, sorted by name.
	List(resource string) ([]*unstructured.Unstructured, error)
	// Delete deletes the child of that name when this object owns it. One that is not there is
	// no error.
	Delete(ctx context.Context, resource, name string) error
}

// Client reads and writes objects other than the handled one. Reads of a resource that the
// operator watches come from its cache; all others go to the server. Writes carry the operator's
// field manager, are refused once the handler's context has ended or leadership is lost, and the
// object's next pass waits until the cache has them. Errors are those of the API machinery, so
// apierrors.IsNotFound and the like apply.
type Client interface {
	// Get returns one object. Namespace is empty for resources without one.
	Get(ctx context.Context, resource, namespace, name string) (*unstructured.Unstructured, error)
	// List returns the objects that the label selector selects, in all namespaces when namespace
	// is empty, sorted by namespace and name.
	List(ctx context.Context, resource, namespace, selector string) ([]*unstructured.Unstructured, error)
	// Apply makes the object as desired says, by server-side apply, taking over conflicting
	// fields.
	Apply(ctx context.Context, desired any) (*unstructured.Unstructured, error)
	// Create creates the object.
	Create(ctx context.Context, object any) (*unstructured.Unstructured, error)
	// MergePatch sends a merge patch in the sense of RFC 7386, to a subresource if one is given.
	MergePatch(ctx context.Context, resource, namespace, name string, patch map[string]any, subresource ...string) (*unstructured.Unstructured, error)
	// Delete deletes the object; with a uid only if it still is that one.
	Delete(ctx context.Context, resource, namespace, name, uid string) error
}

// Params are a handler's parameters: plain values as JSON has them.
type Params map[string]any

// Into decodes the parameters into out, a pointer to the author's struct with json tags.
func (p Params) Into(out any) error {
	if err := decode(p, out); err != nil {
		return fmt.Errorf("decoding parameters: %w", err)
	}
	return nil
}

// Into decodes what path leads to in the request's object into out, a pointer to a value of the
// author's own type, with json tags where names differ: types without generated code. Out is left
// as it is when there is nothing at the path.
func Into(r *Request, path string, out any) error {
	p, err := ParsePath(path)
	if err != nil {
		return err
	}
	value, found := p.In(r.Object.Object)
	if !found {
		return nil
	}
	if err := decode(value, out); err != nil {
		return fmt.Errorf("decoding %s: %w", path, err)
	}
	return nil
}

// decode goes by way of JSON: the authors' structs are theirs, and what encoding/json does with
// them is what they expect.
func decode(value, out any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, out)
}
