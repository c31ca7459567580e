// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// aggregated is the content type of aggregated discovery.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discover answers a request for what the server has, its version or its health.
func (s *Server) discover(h *http.Request) (kind string, body any, found bool, err error) {
	path := strings.Split(strings.Trim(h.URL.Path, "/"), "/")
	kind = "application/json"
	switch first := path[0]; {
	case first == "healthz", first == "livez", first == "readyz":
		kind, body, found = "text/plain; charset=utf-8", health(first, h), isCheck(path)
	case first == ".well-known", first == "openid":
		kind, body, found, err = s.openID(path, h)
	case first == "metrics" && len(path) == 1:
		kind, body, found = metricsText, s.metrics(), true
	case len(path) == 1 && (first == "" || first == "version"):
		body, found = s.page(first), true
	case first == "openapi" && len(path) >= 2:
		body, found = s.openapi(path)
	case first == "api" && len(path) <= 2, first == "apis" && len(path) <= 3:
		kind, body, found, err = s.discovery(path, h)
	}
	if found && h.Method != http.MethodGet {
		err = notAllowed()
	}
	return kind, body, found, err
}

// isCheck reports whether a path is one of the health as a whole, or of one of its checks.
func isCheck(path []string) bool {
	if len(path) == 2 {
		synced := path[0] == "readyz" && path[1] == "informer-sync" // it serves when it is ready
		return synced || slices.Contains(checks(), path[1])
	}
	return len(path) == 1
}

// discovery returns the groups, versions or resources of a path, in the form that the client takes.
func (s *Server) discovery(path []string, h *http.Request) (kind string, body any, found bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(path) == 1 && aggregates(h.Header.Get("Accept")) {
		return aggregated, tagged{aggregated, s.groups(path[0])}, true, nil
	}
	if body, found, err = s.unaggregated(path, h.Host); !found && (path[0] == "api" || s.own(path[1])) {
		found, err = true, notFound()
	}
	return "application/json", body, found, err
}

// tagged is a document with a tag that differs when its content does. Clients keep it, and ask whether it is still current.
type tagged struct {
	kind string
	body any
}

// response answers a request for the document. A client that has it gets no body.
func (t tagged) response(h *http.Request) *http.Response {
	out := answer(h, http.StatusOK, t.kind, t.body)
	data, err := io.ReadAll(out.Body)
	if err != nil {
		return failure(h, err) // not reached: the body is in memory
	}
	tag := fmt.Sprintf("%q", fmt.Sprintf("%X", sha256.Sum256(data)))
	if h.Header.Get("If-None-Match") == tag {
		out = respond(h, http.StatusNotModified, "", http.NoBody, 0)
		out.Header.Del("Content-Type")
	} else {
		out = whole(h, http.StatusOK, t.kind, data)
	}
	out.Header.Set("Etag", tag)
	out.Header.Set("Vary", "Accept")
	return out
}

// page returns the document of a path without others below it.
func (s *Server) page(path string) any {
	if path == "version" {
		return serverVersion()
	}
	return map[string]any{"paths": s.paths()}
}

// paths returns the paths of which all others are below.
func (s *Server) paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []string{"/healthz", "/livez", "/readyz", "/version", "/openapi/v2", "/openapi/v3", "/api", "/api/v1", "/apis"}
	for _, group := range s.groups("apis").Items {
		out = append(out, "/apis/"+group.Name)
		for _, version := range group.Versions {
			out = append(out, "/apis/"+group.Name+"/"+version.Version)
		}
	}
	slices.Sort(out)
	return out
}

// aggregates reports whether a client takes the aggregated form.
func aggregates(accept string) bool {
	for clause := range strings.SplitSeq(accept, ",") {
		if strings.Contains(clause, "as=APIGroupDiscoveryList") && strings.Contains(clause, "v=v2") && !strings.Contains(clause, "v=v2beta1") {
			return true
		}
	}
	return false
}

// checks are the parts of the server's health that a client can ask for. If it answers, they all are well.
func checks() []string { return []string{"ping", "log", "etcd"} }

// health returns the text of a check.
func health(check string, h *http.Request) string {
	if _, verbose := h.URL.Query()["verbose"]; !verbose {
		return "ok"
	}
	var out strings.Builder
	for _, part := range checks() {
		out.WriteString("[+]" + part + " ok\n")
	}
	return out.String() + check + " check passed\n"
}

// serverVersion is the version of Kubernetes whose answers the server gives: that of what it knows of built-in kinds.
func serverVersion() version.Info {
	return version.Info{
		Major: "1", Minor: "37", EmulationMajor: "1", EmulationMinor: "37", MinCompatibilityMajor: "1", MinCompatibilityMinor: "36",
		GitVersion: "v1.37.1", GitTreeState: "clean", BuildDate: "1970-01-01T00:00:00Z",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// LagDiscovery freezes discovery at its current state, or ends that.
func (s *Server) LagDiscovery(lag bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lagging = nil
	if lag {
		now := s.groups("apis")
		s.lagging = &now
	}
}

// groups returns the groups below a path: that without a name below api, and the others below apis.
func (s *Server) groups(below string) discoveryv2.APIGroupDiscoveryList {
	if below == "apis" && s.lagging != nil {
		return *s.lagging
	}
	out := discoveryv2.APIGroupDiscoveryList{}
	out.Kind, out.APIVersion = "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2"
	for _, t := range s.sorted() {
		if (t.group == "") != (below == "api") || !t.isServed() {
			continue
		}
		if n := len(out.Items); n == 0 || out.Items[n-1].Name != t.group {
			out.Items = append(out.Items, discoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: t.group}})
		}
		group := &out.Items[len(out.Items)-1]
		for _, version := range t.versions {
			s.describe(group, version, t)
		}
	}
	if below == "apis" && s.authorizes {
		out.Items = append(out.Items, reviewGroups()...)
	}
	if below == "api" && s.authorizes {
		first := &out.Items[0].Versions[0]
		first.Resources = append(unstored(), first.Resources...)
	}
	known := ranks()
	rank := func(group discoveryv2.APIGroupDiscovery) int {
		if at, builtin := known[group.Name]; builtin {
			return at
		}
		return len(known) // that of a CRD comes last
	}
	slices.SortStableFunc(out.Items, func(a, b discoveryv2.APIGroupDiscovery) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// ranks has the places of groups in discovery: those which they have on a real server. Clients that look for a kind take the
// first group that has it. It is not to be changed.
var ranks = sync.OnceValue(func() map[string]int {
	const groups = `apiregistration.k8s.io apps events.k8s.io authentication.k8s.io authorization.k8s.io autoscaling batch
		certificates.k8s.io networking.k8s.io policy rbac.authorization.k8s.io storage.k8s.io admissionregistration.k8s.io
		apiextensions.k8s.io scheduling.k8s.io coordination.k8s.io node.k8s.io discovery.k8s.io resource.k8s.io
		flowcontrol.apiserver.k8s.io storagemigration.k8s.io`
	out := map[string]int{}
	for i, group := range strings.Fields(groups) {
		out[group] = i
	}
	return out
})

// describe adds a resource to a group's version.
func (s *Server) describe(group *discoveryv2.APIGroupDiscovery, version string, t *table) {
	i := slices.IndexFunc(group.Versions, func(v discoveryv2.APIVersionDiscovery) bool { return v.Version == version })
	if i < 0 {
		i = len(group.Versions)
		group.Versions = append(group.Versions, discoveryv2.APIVersionDiscovery{Version: version, Freshness: discoveryv2.DiscoveryFreshnessCurrent})
	}
	v := &group.Versions[i]
	if s.broken[t.group] {
		v.Freshness = discoveryv2.DiscoveryFreshnessStale
		return
	}
	v.Resources = append(v.Resources, t.discovered(version))
}

// discovered returns what discovery says of a resource.
func (t *table) discovered(version string) discoveryv2.APIResourceDiscovery {
	kind := &metav1.GroupVersionKind{Group: t.group, Version: version, Kind: t.kind}
	out := discoveryv2.APIResourceDiscovery{
		Resource: t.plural, ResponseKind: kind, Scope: discoveryv2.ScopeCluster,
		SingularResource: t.singular, ShortNames: t.short, Categories: t.categories,
		Verbs: []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
	}
	if t.custom {
		out.Verbs = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"} // as of a real server
	}
	if t.namespaced {
		out.Scope = discoveryv2.ScopeNamespace
	}
	if t.name() == namespaces() {
		out.Verbs = slices.DeleteFunc(out.Verbs, func(verb string) bool { return verb == "deletecollection" })
	}
	if t.status {
		out.Subresources = append(out.Subresources, discoveryv2.APISubresourceDiscovery{
			Subresource: "status", ResponseKind: kind, Verbs: []string{"get", "patch", "update"},
		})
	}
	if t.scale != nil {
		scale := scaleKind()
		out.Subresources = append(out.Subresources, discoveryv2.APISubresourceDiscovery{
			Subresource: "scale", Verbs: []string{"get", "patch", "update"},
			ResponseKind: &metav1.GroupVersionKind{Group: scale.Group, Version: scale.Version, Kind: scale.Kind},
		})
	}
	for _, special := range t.specials() {
		out.Subresources = append(out.Subresources, discoveryv2.APISubresourceDiscovery{
			Subresource: special.name, Verbs: special.verbs, ResponseKind: special.kind,
		})
	}
	if !t.custom { // those of a real server are sorted
		slices.SortFunc(out.Subresources, func(a, b discoveryv2.APISubresourceDiscovery) int { return cmp.Compare(a.Subresource, b.Subresource) })
	}
	return out
}

// unaggregated returns discovery in the form that has a document for each version of a group.
func (s *Server) unaggregated(path []string, host string) (body any, found bool, err error) {
	groups := s.groups(path[0])
	switch name := path[len(path)-1]; {
	case len(path) == 1 && path[0] == "api":
		return coreVersions(groups, host), true, nil
	case len(path) == 1:
		return groupList(groups), true, nil
	case path[0] == "apis" && len(path) == 2:
		for _, group := range groups.Items {
			if group.Name == name {
				return groupOf(group, true), true, nil
			}
		}
	default:
		for _, group := range groups.Items {
			for _, version := range group.Versions {
				if (path[0] == "api" || group.Name == path[1]) && version.Version == name {
					return s.resourcesOf(group.Name, version)
				}
			}
		}
	}
	return nil, false, nil
}

func (s *Server) resourcesOf(group string, version discoveryv2.APIVersionDiscovery) (any, bool, error) {
	if s.broken[group] {
		return nil, true, apierrors.NewServiceUnavailable("service unavailable")
	}
	out := resourceList(group, version)
	for i := range out.APIResources {
		r := &out.APIResources[i]
		if t := s.tables[schema.GroupResource{Group: group, Resource: r.Name}]; t != nil {
			r.StorageVersionHash = t.storageHash()
		}
	}
	return out, true, nil
}

// storageHash returns the hash by which clients compare the version in which objects are stored.
func (t *table) storageHash() string {
	group, version := t.group, cmp.Or(t.storage, t.versions[0])
	switch {
	case !slices.Contains(t.versions, version): // it is not served
		return ""
	case group == "events.k8s.io": // the objects are those of the core group
		group = ""
	case group == "apiextensions.k8s.io", group == "storagemigration.k8s.io":
		version = "v1beta1"
	}
	hash := sha256.Sum256([]byte(group + "/" + version + "/" + t.kind))
	return base64.StdEncoding.EncodeToString(hash[:8])
}
