// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/klog/v2"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

// warningsMost is the greatest number of remembered warnings. When it is reached, all are logged once more.
const warningsMost = 1000

// warnings logs the warnings of responses, each text once for a resource, with the first object. It does not log warnings that
// may quote a Secret.
type warnings struct {
	mu    sync.Mutex
	known map[warning]bool
}

// warning is a text about a resource, without the name of an object.
type warning struct{ resource, text string }

// wrap returns a transport that looks at the responses of another one.
func (w *warnings) wrap(next http.RoundTripper) http.RoundTripper { return warningTransport{next, w} }

type warningTransport struct {
	next http.RoundTripper
	*warnings
}

// RoundTrip implements [http.RoundTripper].
func (t warningTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil && len(response.Header["Warning"]) > 0 {
		t.log(r, response.Header["Warning"])
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the connections underneath, to close idle ones.
func (t warningTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// log logs the new warnings of a response.
func (w *warnings) log(r *http.Request, headers []string) {
	if dsl.Discreet(r.Context()) {
		return
	}
	about := aboutOf(r)
	all, _ := net.ParseWarningHeaders(headers) // what cannot be read is left out
	for _, one := range all {
		if one.Code != 299 || one.Text == "" || !w.first(warning{about.resource, logmark.Unnamed(one.Text, about.name)}) {
			continue
		}
		klog.FromContext(r.Context()).Info("the API server warns", logmark.Warning, true, "warning", one.Text, "about", about.String(), "verb", r.Method)
	}
}

// first reports whether a warning is new, and notes it.
func (w *warnings) first(one warning) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known[one] {
		return false
	}
	if w.known == nil || len(w.known) >= warningsMost {
		w.known = map[warning]bool{}
	}
	w.known[one] = true
	return true
}

// about is the resource of a request, and mostly one object.
type about struct{ resource, namespace, name string }

// aboutOf reads the resource and the object from the path of a request. A request that creates an object has the name in its body.
func aboutOf(r *http.Request) (out about) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	version, group := "", ""
	switch {
	case len(path) > 2 && path[0] == "api":
		version, path = path[1], path[2:]
	case len(path) > 3 && path[0] == "apis":
		group, version, path = "."+path[1], path[2], path[3:]
	default:
		return about{resource: r.URL.Path}
	}
	if path[0] == "namespaces" && len(path) > 2 && path[2] != "status" && path[2] != "finalize" {
		out.namespace, path = path[1], path[2:]
	}
	if out.resource = path[0] + "." + version + group; len(path) > 1 {
		out.name = path[1]
	} else if r.Method == http.MethodPost {
		out.name = nameIn(r)
	}
	return out
}

// nameIn returns the name in a request's body; empty if it cannot be read.
func nameIn(r *http.Request) string {
	if r.GetBody == nil {
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	var object struct {
		Metadata struct{ Name, GenerateName string }
	}
	if json.NewDecoder(body).Decode(&object) != nil {
		return ""
	}
	return object.Metadata.Name + object.Metadata.GenerateName
}

// String returns the resource and the object.
func (a about) String() string {
	switch {
	case a.name == "":
		return strings.TrimSpace(a.resource + " " + a.namespace)
	case a.namespace == "":
		return a.resource + " " + a.name
	}
	return a.resource + " " + a.namespace + "/" + a.name
}
