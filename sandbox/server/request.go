// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/sandbox/server/print"
	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
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
	// reply is what the response says beside its body; nil means that there is no client.
	reply *reply
}

// reply is what a response says beside its body.
type reply struct {
	warnings []string
	// created: an apply has created the object.
	created bool
}

// Writes reports whether the request is a write.
func (r Request) Writes() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	}
	asked := r.Resource.GroupResource()
	return asked != reviews() && asked != introductions()
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

// undecodable returns the error for an object that is not of its kind's form. If a patch made it, it is the patch that
// is invalid.
func (r Request) undecodable(t *table, o *unstructured.Unstructured, why string) error {
	if r.Verb != "patch" || r.contentType == string(types.ApplyPatchType) {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %s", t.kind, r.Resource.Version, t.kind, why))
	}
	value := fmt.Sprintf("%+v", r.Body)
	if r.contentType != string(types.StrategicMergePatchType) {
		data, err := json.Marshal(o.Object)
		if err != nil {
			return err
		}
		value = string(data)
	}
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), value, why)})
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
	r.shape, _ = negotiate(r.accept)
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
	if path[0] == "namespaces" && len(path) > 2 && path[2] != "status" {
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

// verb returns the verb of a method, or nothing if the path does not have the method.
func (r *Request) verb(method string) string {
	one := r.Name != ""
	switch {
	case method == http.MethodPost && (!one || r.Subresource != ""):
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
