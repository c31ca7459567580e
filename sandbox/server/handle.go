// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// handle answers a request for objects: with a tree, a metav1.Status or a stream.
func (s *Server) handle(ctx context.Context, r Request) (any, error) {
	s.mu.Lock()
	defer s.unlock()
	if s.authorizes {
		if out, found, err := s.consult(r); found {
			return out, err
		}
		if err := s.permit(r.attributes()); err != nil {
			return nil, err
		}
	}
	switch r.Resource.GroupResource() {
	case reviews():
		return s.review(r)
	case rulesReviews():
		return entitle(r)
	case introductions():
		return introduce(r)
	case componentStatuses():
		return r.components()
	case bindings():
		if r.Verb == "create" {
			r = r.toPod()
		}
	}
	t, err := s.find(r.Resource)
	if err != nil {
		return nil, err
	}
	return s.handleTable(ctx, t, r)
}

// handleTable answers a request for the objects of a resource. The lock is held.
func (s *Server) handleTable(ctx context.Context, t *table, r Request) (any, error) {
	binary := s.hasProtobuf(t, r.Resource.Version)
	shape, acceptable := negotiate(r.accept, binary)
	r.shape = shape
	// The error for a client that takes only the binary form has it, too.
	r.reply.protobuf = shape.protobuf || !acceptable && strings.HasPrefix(r.accept, runtime.ContentTypeProtobuf)
	if err := s.authorize(r); err != nil && !r.trusted {
		return nil, err
	}
	if err := cmp.Or(t.routes(r), t.has(r), r.acceptable(t, binary)); err != nil {
		return nil, err
	}
	if text, found := t.deprecated[r.Resource.Version]; found {
		r.reply.warn(text)
	}
	r.view = t.viewIn(r.Resource.Version)
	if r.tabular() {
		r.columns, r.clock = s.columnsOf(t, r.Resource.Version), s.clock
	}
	return s.dispatch(ctx, t, r)
}

// isPatchFor reports whether a patch has a form that a resource takes.
func (r Request) isPatchFor(t *table) bool {
	return r.malformed == nil && (!t.custom || r.contentType != string(types.StrategicMergePatchType))
}

// dispatch answers a request that a resource can have.
func (s *Server) dispatch(ctx context.Context, t *table, r Request) (any, error) {
	if r.Verb == "patch" && !r.isPatchFor(t) {
		return nil, unsupportedPatch(t)
	}
	if r.Verb == "deletecollection" { // before its other options
		if _, _, err := s.selection(t, r); err != nil {
			return nil, err
		}
	}
	dry, err := r.check()
	if err != nil {
		return nil, err
	}
	s.dry = dry
	defer func() { s.dry = false }()
	return s.execute(ctx, t, r)
}

// execute answers a request whose options are right.
func (s *Server) execute(ctx context.Context, t *table, r Request) (any, error) {
	switch r.Subresource {
	case "scale":
		return s.rescale(t, r)
	case "binding":
		return s.bind(t, r)
	case "eviction":
		return s.evict(t, r)
	case "finalize":
		return s.finalize(t, r)
	}
	if t.reaches(r) {
		return s.reach(t, r)
	}
	switch r.Verb {
	case "list":
		return s.list(t, r)
	case "watch":
		return s.watch(ctx, t, r)
	case "get":
		return s.get(t, r)
	case "delete":
		return s.remove(t, r)
	case "deletecollection":
		return s.clear(t, r)
	}
	o, err := s.retry(t, r, func(r Request) (*unstructured.Unstructured, error) { return s.single(t, r) })
	if err != nil {
		return nil, err
	}
	s.warnUnenforced(t, r, o)
	return s.answered(t, r, o), nil
}

// shown is a stored object as a client wants it.
type shown struct {
	table   *table
	request Request
	row     *store.Row
}

// answered answers a write with its object. A stored one is encoded already.
func (s *Server) answered(t *table, r Request, o *unstructured.Unstructured) any {
	row := t.objects.Get(o.GetNamespace(), o.GetName())
	if s.dry || row == nil || strconv.FormatInt(row.Version, 10) != o.GetResourceVersion() {
		return present(t, r, o)
	}
	return shown{t, r, row}
}

// get answers a read with an object, which is encoded without the server's lock.
func (s *Server) get(t *table, r Request) (any, error) {
	version, err := versionOf(r.options.Get("resourceVersion"))
	if err != nil {
		return nil, internalError(err)
	}
	row := t.objects.Get(r.Namespace, r.Name)
	if row == nil {
		return nil, apierrors.NewNotFound(t.name(), r.Name)
	}
	return shown{t, r, row}, s.future(version)
}

// single handles a write of one object, except a deletion, and returns the object.
func (s *Server) single(t *table, r Request) (*unstructured.Unstructured, error) {
	if r.Verb == "create" {
		o, err := r.object(t)
		if err != nil {
			return nil, err
		}
		return s.create(t, r, o)
	}
	old := t.get(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	if t.custom { // a built-in object changes in the version in which it is stored
		var err error
		if old, err = r.view.read(old); err != nil {
			return nil, err
		}
	}
	switch found := old != nil; {
	case r.Verb == "patch" && (found || r.contentType == string(types.ApplyPatchType)):
		return s.patch(t, r, old)
	case !found && r.Verb == "update" && r.Subresource == "" && t.createsByUpdate():
		return s.createByUpdate(t, r)
	case !found:
		return nil, s.missing(t, r)
	case r.Verb == "update":
		sent, err := r.object(t)
		if err != nil {
			return nil, err
		}
		return s.update(t, r, old, sent)
	}
	return nil, apierrors.NewMethodNotSupported(t.name(), r.Verb)
}

// missing returns the error for a write of an absent object. The body of an update is looked at first.
func (s *Server) missing(t *table, r Request) error {
	err := error(apierrors.NewNotFound(t.name(), r.Name))
	if r.Verb != "update" {
		return err
	}
	sent, malformed := r.object(t)
	if malformed != nil {
		return malformed
	}
	return s.decodedBefore(t, r, sent, cmp.Or(r.named(sent), err))
}

// decodedBefore returns why the object of an update or a patch cannot be decoded, or the error that comes after decoding it.
func (s *Server) decodedBefore(t *table, r Request, sent *unstructured.Unstructured, after error) error {
	if after == nil || r.Verb != "update" && r.Verb != "patch" || r.applies() {
		return after
	}
	return cmp.Or(s.decode(t, r, sent.DeepCopy(), nil), after)
}

// createsByUpdate reports whether an update of an absent object creates it.
func (t *table) createsByUpdate() bool {
	switch t.group + "/" + t.plural {
	case "/endpoints", "/events", "/limitranges", "/services", "coordination.k8s.io/leases", "events.k8s.io/events",
		"node.k8s.io/runtimeclasses", "rbac.authorization.k8s.io/clusterrolebindings", "rbac.authorization.k8s.io/clusterroles",
		"rbac.authorization.k8s.io/rolebindings", "rbac.authorization.k8s.io/roles":
		return true
	}
	return false
}

// createByUpdate creates the object of an update, if the user may create it.
func (s *Server) createByUpdate(t *table, r Request) (*unstructured.Unstructured, error) {
	o, err := r.object(t)
	if err != nil {
		return nil, err
	}
	right := r.attributes()
	right.Verb = "create"
	if err := s.decodedBefore(t, r, o, cmp.Or(r.named(o), s.otherUID(t, o, ""), unreadable(o.GetResourceVersion()), s.permit(right))); err != nil {
		return nil, err
	}
	if r.reply != nil {
		r.reply.code = http.StatusCreated
	}
	return s.create(t, r, o)
}

// routes returns the error for a request whose path does not have the scope of the resource, or not the verb.
func (t *table) routes(r Request) error {
	scoped := t.namespaced == (r.Namespace != "")
	switch {
	case r.Verb == "deletecollection" && t.name() == namespaces():
		return notAllowed()
	case r.Verb == "create" && r.Name != "" && r.Subresource == "" && !t.custom:
		return notAllowed()
	case scoped, t.namespaced && (r.Verb == "list" || r.Verb == "watch"):
		return nil
	case t.custom:
		return &apierrors.StatusError{ErrStatus: notServed()}
	case t.namespaced && r.Name == "":
		return notAllowed()
	}
	return notFound()
}

// has returns the error for a subresource that a resource does not have, or that does not have the verb.
func (t *table) has(r Request) error {
	name, below, _ := strings.Cut(r.Subresource, "/")
	if special, found := t.special(name); found && (below == "" || name == "proxy") {
		if !slices.Contains(special.verbs, r.Verb) {
			return notAllowed()
		}
		return nil
	}
	switch {
	case r.Subresource == "":
		return nil
	case r.Subresource == "status" && t.status, r.Subresource == "scale" && t.scale != nil:
	case t.custom:
		return apierrors.NewNotFound(t.name(), r.Name)
	default:
		return notFound()
	}
	switch r.Verb {
	case "get", "update", "patch":
		return nil
	}
	if t.custom {
		return apierrors.NewMethodNotSupported(t.name(), r.Verb)
	}
	return notAllowed()
}

// present returns an object in the form that the client asks for.
func present(t *table, r Request, o *unstructured.Unstructured) map[string]any {
	if r.tabular() {
		return tableOf(t, r, o)
	}
	if r.partial() {
		return map[string]any{
			"kind": "PartialObjectMetadata", "apiVersion": r.shape.apiVersion(), "metadata": o.Object["metadata"],
		}
	}
	out := maps.Clone(r.view.show(o).Object)
	out["apiVersion"] = t.apiVersion(r.Resource.Version)
	return out
}
