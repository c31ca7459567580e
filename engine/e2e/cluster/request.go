// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

var requestInfo = request.RequestInfoFactory{
	APIPrefixes: sets.NewString("apis", "api"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// Request is a request to a [Proxy].
type Request struct {
	// Verb is the API's verb: get, list, watch, create, update, patch, delete or deletecollection.
	Verb string
	// Resource is empty for other paths, such as discovery. It includes a subresource, as in foos/status.
	Group, Version, Resource, Namespace, Name string
	// URI is the path with the query.
	URI, UserAgent string
	// Code is the HTTP status of the API server or a fault; zero before the response.
	Code int
	// Torn: the sender aborted it before its end, so it has no effect.
	Torn bool
	// At is when it arrived.
	At time.Time
}

// Match selects requests.
type Match func(Request) bool

// On matches a verb on a resource, with a subresource if given: On("patch", "foos/status"). The verb "write" stands
// for all writes, and "*" for any verb or resource. As in [Cluster.Writes], writes of Events, leases and access
// reviews match only by the resource's name.
func On(verb, resource string) Match {
	return func(r Request) bool {
		if resource != "*" && resource != r.Resource || resource == "*" && verb == "write" && slices.Contains(uncounted[:], r.Resource) {
			return false
		}
		return verb == "*" || verb == r.Verb || verb == "write" && r.writes()
	}
}

func (r Request) writes() bool {
	return r.Resource != "" && slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

func newRequest(r *http.Request) *Request {
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil { // also for paths that the API server does not know
		info = &request.RequestInfo{}
	}
	seen := &Request{
		Verb: info.Verb, Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource,
		Namespace: info.Namespace, Name: info.Name, URI: r.URL.RequestURI(), UserAgent: r.UserAgent(), At: time.Now(),
	}
	if info.Subresource != "" {
		seen.Resource += "/" + info.Subresource
	}
	return seen
}
