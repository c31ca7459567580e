// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Subject is what a handler is asked about: all that filters, relations and expressions get, and the part of a
// handler's [Request] that only tells. Nothing in it writes.
type Subject struct {
	// Object is the object as the cache has it, with what handlers before this one in the same pass want
	// of it, status included: a private copy that the handler may change, to no effect. For a deletion that was seen too late it is the object as it was last seen.
	Object *unstructured.Unstructured
	// Kept is what the cache holds of Object; nil for all of it.
	Kept *shape.Kept
	// Old is the essence as it was when this handler handled the object last, limited to
	// Handler.Fields when that is set; empty where there was nothing of it. It is nil on create, where only a
	// digest is kept, and always for level-triggered handlers, of which nothing is kept: see [Handler.Level].
	Old map[string]any
	// Diff is how the essence differs from Old, in which null and nothing are the same. Empty where Old is nil.
	Diff []Change
	// Handler is the id of the handler that is asked or run; empty for relations.
	Handler string
	// Cause says why the handler runs.
	Cause Cause
	// Event is for the cause [Event] what the watch told: ADDED, also for an object that is there when the
	// process starts, MODIFIED or DELETED. An attempt that is made again has that of the first one.
	Event watch.EventType
	// Attempt counts the handler's attempts for this cause, from 1.
	Attempt int
	// Log carries the resource, namespace, name, handler, cause and attempt. Package dsl/logmark makes warnings.
	Log logr.Logger
	// Children are the objects that the object owns. To expressions of a handler that runs they are as it has
	// left them so far. Nil for relations.
	Children ChildReader
	// Made are the named children that the resource's handlers make.
	Made []shape.NamedChild
	// Related are the objects that the resource's relations select. See [Resource.Relates]. Nil for relations.
	Related Related
	// Indexes are the operator's; see [Index]. Nil for relations and in indexes.
	Indexes Indexes
	// Objects are all objects of the resource, for a handler that runs for the resource as a whole,
	// sorted by namespace and name; Object has no more than apiVersion and kind then. Each is a
	// private copy, with as much as the cache holds: for CacheMetadata the metadata, for CacheLive
	// kind, namespace, name, uid and resource version. Nil for other handlers.
	Objects []*unstructured.Unstructured
	// Vars are variables of expressions beside those of all, as those of the entry that a handler of the configuration runs
	// for. Nil for most.
	Vars map[string]any
	// Secrets say what of all this may be values of Secrets: these are in no text for people.
	Secrets Secrets
	// Now is the time of the pass: the same for all of its handlers and expressions.
	Now time.Time
}

// Request is what a handler gets: what it is about, and what to act with.
type Request struct {
	Subject
	// Patch is what the handler wants changed in the object, status included.
	Patch *Patch
	// Children are those of the subject, which a handler may change.
	Children Children
	// Events reports to people who look at the object.
	Events Events
	// Client reads and writes other objects.
	Client Client
	// Params are the handler's parameters from the configuration.
	Params Params
	// Memo is the object's in this process, or that of a schedule; OperatorMemo is the operator's. See [Memo].
	Memo, OperatorMemo *Memo
	// Parts are the sub-handlers that the handler declares; see [Request.Handle].
	Parts *Parts
	// Step is for handlers that are made of steps: how many of them are done for what the handler
	// sees now. A handler sets it as it goes; when it has to be run again, the next attempt finds
	// it as the last one left it.
	Step int
	// Again is what the handler asked for with RunAgain, nil for nothing.
	Again *time.Duration

	// asked gets the type of a handler of Typed, which does nothing else then; see typeOf.
	asked *reflect.Type
}

// RunAgain has the handler run again after a time, at once when that is zero or less, unless it runs before for another
// reason: with cause [Again], if its filters hold then. A handler that asks to run at once more than ten times in a row waits a second
// each time, until somebody else changes something. It is neither an attempt nor a failure, and costs no request. Each run
// has to ask again: what an earlier one asked for does not count. Of several calls the one with the least time counts. It holds
// also when the run fails or waits: then the handler runs again at this time at the latest.
//
// It is kept in memory: a new process runs level-triggered handlers for each object anyhow, and knows nothing of what others have
// asked for. A handler that has succeeded with an object's deletion is not run again; what is not through says [Waiting].
func (r *Request) RunAgain(after time.Duration) {
	if r.Again == nil || after < *r.Again {
		r.Again = &after
	}
}

// Result keeps what the handler came to in status.<id of the handler>, with all else that it wants of its object: a map, or
// a struct, is merged into what is there, where nil removes; anything else takes its place. Nil keeps nothing. A schema that
// does not have the field drops it, and the log says so.
func (r *Request) Result(value any) {
	decoded, err := plain.Value(value)
	if err != nil {
		r.Patch.note(fmt.Errorf("keeping the result of %s: %w", r.Handler, err))
		return
	}
	if decoded != nil {
		r.Patch.Join(&Patch{Status: map[string]any{r.Handler: decoded}})
	}
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
// ones (of the same type, reason and handler) are counted rather than added. An object has 25 different
// ones at once and one more every five minutes; what handlers report beyond that is dropped, and
// counted in the metric handwerk_events_dropped_total.
type Events interface {
	// Event reports. Reason is one CamelCase word, the note a sentence; it is formatted as
	// fmt.Sprintf does.
	Event(kind EventType, reason, note string, args ...any)
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
	// Delete deletes the object, and in the background what it owns; with a uid only if it still is
	// that one.
	Delete(ctx context.Context, resource, namespace, name, uid string) error
	// DeleteObject is Delete for an object that is at hand, by its kind. Without a uid in it, it
	// deletes whatever has its name.
	DeleteObject(ctx context.Context, object *unstructured.Unstructured) error
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

// Into decodes what path leads to in the object into out, a pointer to a value of the author's own type,
// with json tags where names differ: types without generated code. Out is left as it is when there is
// nothing at the path. What the cache does not hold is an error for good: it would read as not there.
func (s *Subject) Into(path string, out any) error {
	p, err := ParsePath(path)
	if err != nil {
		return err
	}
	if err := leftOutAt(p, reflect.TypeOf(out), s.Kept); err != nil {
		return Permanent(fmt.Errorf("decoding %s: %w", path, err))
	}
	value, found := p.In(s.Object.Object)
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
