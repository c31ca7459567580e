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

// Subject is what filters, relations and expressions get, and the part of a handler's [Request] that only reads. It
// cannot write.
type Subject struct {
	// Object is a private copy of the object from the cache, with the changes of earlier handlers in the same reconcile,
	// status included. The handler may change it, without effect. For an object that is gone already, it is the
	// last known one.
	Object *unstructured.Unstructured
	// Kept says which parts of Object exist, because of the cache or of [Reads]; nil means all.
	Kept *shape.Kept
	// Old is the essence that this handler handled last, limited to Handler.Fields or Handler.Reads if set; empty if
	// these fields did not exist. It is nil on create, and when the engine keeps only a digest. It is always nil for
	// level-triggered handlers, for which the engine stores nothing: see [Handler.Level].
	Old map[string]any
	// Diff is the difference between Old and the essence. Null and a missing field are equal. Empty if Old is nil.
	Diff []Change
	// Prefix begins the operator's own marks on objects. Expressions that copy metadata leave them out.
	Prefix string
	// Handler is the id of the handler; empty for relations.
	Handler string
	// Cause says why the handler runs.
	Cause Cause
	// Event is, for the cause [Event], the type of the event: ADDED, also for an object that exists when the
	// process starts, MODIFIED or DELETED. A retry has the event of the first attempt.
	Event watch.EventType
	// Attempt counts the handler's attempts for this cause, from 1.
	Attempt int
	// Log carries the resource, namespace, name, handler, cause and attempt. Package dsl/logmark makes warnings.
	Log logr.Logger
	// Children are the objects that the object owns. Expressions of a running handler also see the handler's writes
	// so far. Nil for relations.
	Children ChildReader
	// Made are the named children that the resource's handlers apply.
	Made []shape.NamedChild
	// Related are the objects that the resource's relations select. See [Resource.Relates]. Nil for relations.
	Related Related
	// Indexes are the operator's; see [Index]. Nil for relations and in indexes.
	Indexes Indexes
	// Outcomes has the outcomes that other handlers' expressions read. Handlers declared before this one have theirs of this
	// reconcile, later ones of the last reconcile. Nil if there are none.
	Outcomes Outcomes
	// Objects are all objects of the resource, sorted by namespace and name, for a handler that runs for the
	// resource as a whole. Object then has only apiVersion and kind. Each is a private copy of what the cache
	// holds: for CacheMetadata the metadata; for CacheLive kind, namespace, name, uid and resource version. Nil for
	// other handlers.
	Objects []*unstructured.Unstructured
	// Vars are additional variables for expressions, such as the entry that a handler with forEach runs for. Mostly
	// nil.
	Vars map[string]any
	// Secrets say which values of this request may come from Secrets. Such values must not appear in texts for
	// people.
	Secrets Secrets
	// Now is the time of the reconcile, the same for all of its handlers and expressions.
	Now time.Time
}

// Request is the request of a handler: the subject, and the means to act.
type Request struct {
	Subject
	// Patch has the changes that the handler wants in the object, status included.
	Patch *Patch
	// Children are the children of Subject.Children, which a handler may also write.
	Children Children
	// Targets are objects that are no children, and some of whose fields the handler owns.
	Targets Targets
	// Events sends Kubernetes Events of the object.
	Events Events
	// Client reads and writes other objects.
	Client Client
	// Params are the handler's parameters from the configuration.
	Params Params
	// Memo is the memo of the object, or of a schedule, in this process. OperatorMemo is the operator's. See
	// [Memo].
	Memo, OperatorMemo *Memo
	// Parts are the sub-handlers that the handler declares; see [Request.Handle].
	Parts *Parts
	// Step, for handlers that are made of steps, is how many steps are done for the current view. The handler sets
	// it. The next attempt gets the value that the last one left.
	Step int
	// Again is the time that the handler has given to RunAgain, or nil.
	Again *time.Duration

	// asked receives the type of a handler made by Typed, which then does nothing else; see typeOf.
	asked *reflect.Type
}

// RunAgain runs the handler again after a time, with cause [Again] and if its filters match then, unless another
// cause runs it before. A time of zero or less means at once. A handler that asks for a run at once more than ten
// times in a row waits a second each time, until the object is changed by somebody else. The run is neither an
// attempt nor a failure, and costs no request. Each run must ask again. Of several calls in one run, the shortest
// time counts. It also holds when the run fails or waits: the handler then runs again at this time at the latest.
//
// The time is kept in memory. A new process runs level-triggered handlers for each object anyway; the requests of
// other handlers are lost. A handler that has succeeded with an object's deletion does not run again; return
// [Waiting] until the work is done.
func (r *Request) RunAgain(after time.Duration) {
	if r.Again == nil || after < *r.Again {
		r.Again = &after
	}
}

// Result stores a result in status.<id of the handler>, together with the handler's other changes. A map, or a
// struct, is merged into the existing value, and nil removes keys; any other value replaces it. Result(nil) does
// nothing. If the schema lacks the field, the API server drops it, and the log says so. The result of a probe stands behind its name in
// /healthz?verbose or /readyz?verbose.
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

// The kinds of changes.
const (
	Added   Op = "add"
	Changed Op = "change"
	Removed Op = "remove"
)

// Change is one difference between two essences. Lists are compared as a whole.
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

// Events sends Kubernetes Events of the object. Repeated ones (of the same type, reason and handler) are counted in
// one Event. An object may have 25 different ones at once, and one more every five minutes. Further Events of
// handlers are dropped, and counted in the metric handwerk_events_dropped_total.
type Events interface {
	// Event sends an Event. Reason is one CamelCase word, the note a sentence, which is formatted as by
	// fmt.Sprintf.
	Event(kind EventType, reason, note string, args ...any)
	// EventAbout is Event about another object, such as a child, in the namespace of that object. The object is a value as [Object] takes
	// it; one that the API server has returned also has a uid, by which kubectl describe finds the Event. The error says that the
	// value is no object. The rights of `operator rbac` cover Events in the operator's namespaces.
	EventAbout(object any, kind EventType, reason, note string, args ...any) error
}

// Client reads and writes objects other than the handled one. Reads of a resource that the operator watches come
// from its cache; all others go to the server. Writes carry the operator's field manager. They are refused after
// the handler's context has ended or leadership is lost. The object's next reconcile waits until the cache has them.
// Errors are those of the API machinery, so apierrors.IsNotFound and the like work.
type Client interface {
	// Get returns one object. Namespace is empty for cluster-scoped resources.
	Get(ctx context.Context, resource, namespace, name string) (*unstructured.Unstructured, error)
	// List returns the objects that match the label selector, sorted by namespace and name. An empty namespace
	// means all.
	List(ctx context.Context, resource, namespace, selector string) ([]*unstructured.Unstructured, error)
	// Apply creates or updates an object by server-side apply, and takes over conflicting fields.
	Apply(ctx context.Context, desired any) (*unstructured.Unstructured, error)
	// Create creates the object.
	Create(ctx context.Context, object any) (*unstructured.Unstructured, error)
	// MergePatch sends a merge patch (RFC 7386), to a subresource if one is given.
	MergePatch(ctx context.Context, resource, namespace, name string, patch map[string]any, subresource ...string) (*unstructured.Unstructured, error)
	// Delete deletes the object, and in the background the objects that it owns. With a uid, it deletes only the
	// object of that uid.
	Delete(ctx context.Context, resource, namespace, name, uid string) error
	// DeleteObject is Delete for an object in hand, by its kind. If the object has no uid, it deletes whichever
	// object has its name.
	DeleteObject(ctx context.Context, object *unstructured.Unstructured) error
}

// Params are a handler's parameters as plain JSON values.
type Params map[string]any

// Into decodes the parameters into out, a pointer to a struct with json tags.
func (p Params) Into(out any) error {
	if err := decode(p, out); err != nil {
		return fmt.Errorf("decoding parameters: %w", err)
	}
	return nil
}

// Into decodes the value at a path of the object into out, a pointer to a value of the author's type, with json tags
// where names differ. The type needs no generated code. If there is no value at the path, out is left as it is. If the
// cache does not hold the value, or [Reads] does not list it, the error is permanent, because the value would seem to
// be missing.
func (s *Subject) Into(path string, out any) error {
	p, err := ParsePath(path)
	if err != nil {
		return err
	}
	if err := leftOutAt(p, reflect.TypeOf(out), s.Kept); err != nil {
		if s.Kept.Missed != nil {
			s.Kept.Missed(p)
		}
		return Permanent(fmt.Errorf("decoding %s: %w", path, err))
	}
	value, found := p.In(s.Object.Object)
	if !found {
		return nil
	}
	if s.Kept != nil && s.Kept.Missed != nil {
		value = listed(value)
	}
	if err := decode(value, out); err != nil {
		return fmt.Errorf("decoding %s: %w", path, err)
	}
	return nil
}

// decode goes by way of JSON, so that encoding/json treats the authors' structs as they expect.
func decode(value, out any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, out)
}
