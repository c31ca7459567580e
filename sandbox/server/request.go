// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/handwerk-dev/handwerk/sandbox/clock"
	"github.com/handwerk-dev/handwerk/sandbox/server/print"
	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// Request is a request of a client.
type Request struct {
	// Verb is the verb in RBAC's form.
	Verb string
	// Resource is the resource, and Subresource a subresource, such as "status".
	Resource    schema.GroupVersionResource
	Subresource string
	// Namespace and Name identify the object; both may be empty.
	Namespace, Name string
	// Body is the body; nil if it is empty.
	Body map[string]any
	// Number counts the server's requests: a request that was sent because of another one's effect has a higher number, also
	// if its response was there first. It is 0 until the server gets the request.
	Number int64

	// user is the sender; without a name if the server has no users.
	user rbac.User
	// view is how the version shows objects.
	view view
	// columns are those of the table that the client wants.
	columns []print.Column
	// clock is the server's.
	clock clock.Clock
	// trusted: the client has all rights.
	trusted bool
	options url.Values
	// raw is the body as it was sent, or as JSON if that was YAML, and malformed why it is no object.
	raw       []byte
	malformed error
	// twice says which fields of the body are there twice.
	twice       []string
	contentType string
	accept      string
	// shape is how the client takes the answer.
	shape shape
	agent string
	// foreign: a patch has made the custom resource one of another kind, whose fields have no managers.
	foreign bool
	// prefix is that of a name which the server has made.
	prefix string
	// reply is what the response says beside its body; nil means that there is no client.
	reply *reply
}

// reply is what a response says beside its body.
type reply struct {
	// request is the request that is answered.
	request  *http.Request
	warnings []string
	// code is that of a success; 0 is the usual one of the verb.
	code int
	// protobuf: the body is in the binary form.
	protobuf bool
}

// Writes reports whether the request is a write.
func (r Request) Writes() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	}
	asked := r.Resource.GroupResource()
	return asked != reviews() && asked != rulesReviews() && asked != introductions()
}

// applies reports whether the request is a server-side apply.
func (r Request) applies() bool {
	return r.Verb == "patch" && r.contentType == string(types.ApplyPatchType)
}

// manager returns the field manager.
func (r Request) manager() string {
	if name := r.options.Get("fieldManager"); name != "" {
		return name
	}
	name, _, _ := strings.Cut(r.agent, "/")
	if name == "" {
		return "unknown"
	}
	return name
}

func (r Request) partial() bool { return r.shape.as == "PartialObjectMetadata" }

// unknown handles fields that an object has and its schema lacks, or that the body has twice, as the client wishes: it
// refuses them, warns of them or ignores them. Without a wish, it warns.
func (r Request) unknown(t *table, o *unstructured.Unstructured, paths []string) error {
	all := slices.Clone(r.twice)
	for _, path := range paths {
		all = append(all, fmt.Sprintf("unknown field %q", path))
	}
	switch wish := r.options.Get("fieldValidation"); {
	case len(all) == 0, wish == metav1.FieldValidationIgnore:
		return nil
	case wish == metav1.FieldValidationStrict:
		return r.undecodable(t, o, "strict decoding error: "+strings.Join(all, ", "))
	}
	r.reply.warn(all...)
	return nil
}

// inOrder returns paths of fields in the order in which the body has their names.
func (r Request) inOrder(paths []string) []string {
	place := func(path string) int {
		return bytes.Index(r.raw, []byte(strconv.Quote(path[strings.LastIndexByte(path, '.')+1:])))
	}
	out := slices.Clone(paths)
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	return out
}

// undecodable returns the error for an object that is not of its kind's form. If a patch made it, it is the patch that
// is invalid.
func (r Request) undecodable(t *table, o *unstructured.Unstructured, why string) error {
	if r.Verb != "patch" || r.contentType == string(types.ApplyPatchType) {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %s", t.kind, r.Resource.Version, t.kind, why))
	}
	value := fmt.Sprintf("%+v", r.Body)
	if r.contentType == string(types.StrategicMergePatchType) {
		why = cmp.Or(r.unconvertible(t, o), why) // a real server reads no JSON here
	} else {
		data, err := json.Marshal(o.Object)
		if err != nil {
			return err
		}
		value = string(data)
	}
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), value, why)})
}

// unconvertible returns why an object cannot become one of its Go type, or nothing.
func (r Request) unconvertible(t *table, o *unstructured.Unstructured) string {
	into, err := scheme.Scheme.New(r.Resource.GroupVersion().WithKind(t.kind))
	if err != nil {
		return ""
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		return err.Error()
	}
	return ""
}

// convertible returns the error for an apply whose result cannot become an object of its Go type, or nil.
func (r Request) convertible(t *table, o *unstructured.Unstructured) error {
	why := r.unconvertible(t, o)
	if why == "" {
		return nil
	}
	sent, kind := unstructured.Unstructured{Object: r.Body}, r.Resource.GroupVersion().WithKind(t.kind)
	return internalError(fmt.Errorf("failed to convert new object (%s/%s; %s) to proper version: unable to convert unstructured object to %s: %s",
		sent.GetNamespace(), sent.GetName(), kind, kind, why))
}

// warn adds warnings to the response. A warning is said once.
func (r *reply) warn(texts ...string) {
	if r == nil {
		return
	}
	for _, text := range texts {
		if !slices.Contains(r.warnings, text) {
			r.warnings = append(r.warnings, text)
		}
	}
}

// UserAgent returns the user agent of the client that sent the request.
func (r Request) UserAgent() string { return r.agent }

// AddWarning adds a warning to the response; agents are not named. It makes a reply a recorder of warnings for schemas.
func (r *reply) AddWarning(_, text string) { r.warn(text) }

// parse parses a request for objects. It is not found if the path is not that of a resource.
func parse(h *http.Request) (Request, error) {
	kind, _, _ := strings.Cut(h.Header.Get("Content-Type"), ";")
	r := Request{
		options: h.URL.Query(), contentType: strings.TrimSpace(kind),
		accept: h.Header.Get("Accept"), agent: h.Header.Get("User-Agent"),
	}
	if !r.locate(strings.Split(strings.Trim(h.URL.Path, "/"), "/")) {
		return r, &apierrors.StatusError{ErrStatus: notServed()}
	}
	if r.Verb = r.verb(h.Method); r.Verb == "" {
		return r, notAllowed()
	}
	r.shape, _ = negotiate(r.accept, false)
	if h.Body == nil {
		return r, r.read(strings.NewReader(""))
	}
	defer h.Body.Close()
	return r, r.read(h.Body)
}

// notAllowed returns the error for a method that a path does not have.
func notAllowed() error { return unrouted(http.StatusMethodNotAllowed, "") }

// notFound returns the error for a path below a group of the server's own that has no such resource.
func notFound() error { return unrouted(http.StatusNotFound, "") }

// unrouted returns the error for a request that the router of a real server has no route for.
func unrouted(code int, why string) error {
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", why, 0, false)
}

// locate parses a path.
func (r *Request) locate(path []string) bool {
	switch {
	case len(path) > 2 && path[0] == "api":
		r.Resource.Version, path = path[1], path[2:]
	case len(path) > 3 && path[0] == "apis":
		r.Resource.Group, r.Resource.Version, path = path[1], path[2], path[3:]
	default:
		return false
	}
	if path[0] == "watch" && len(path) > 1 { // the older form of a watch
		path = path[1:]
		defer r.watches()
	}
	if path[0] == "namespaces" && len(path) > 2 && path[2] != "status" && path[2] != "finalize" {
		r.Namespace, path = path[1], path[2:]
	}
	r.Resource.Resource = path[0]
	if len(path) > 1 {
		r.Name = path[1]
	}
	if len(path) > 2 {
		r.Subresource = strings.Join(path[2:], "/") // no resource has one with several parts
	}
	return true
}

// watches makes a request a watch, of one object if it names one.
func (r *Request) watches() {
	if r.Name != "" {
		r.options.Set("fieldSelector", "metadata.name="+r.Name)
		r.Name = ""
	}
	r.options.Set("watch", "true")
}

// verb returns the verb of a method, or nothing if the path does not have the method.
func (r *Request) verb(method string) string {
	one := r.Name != ""
	switch {
	case method == http.MethodPost: // to an object, that is one only for a CRD
		return "create"
	case method == http.MethodPut && one:
		return "update"
	case method == http.MethodPatch && one:
		return "patch"
	case method == http.MethodDelete && one:
		return "delete"
	case method == http.MethodDelete:
		return "deletecollection"
	case method != http.MethodGet:
		return ""
	case one:
		return "get" // also with watch=1, which a real server ignores here
	case isTrue(r.options.Get("watch")):
		return "watch"
	}
	return "list"
}
