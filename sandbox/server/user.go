// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Administrator is the user with all rights.
func Administrator() rbac.User {
	return rbac.User{Name: "kubernetes-admin", Groups: []string{rbac.Masters, rbac.Authenticated}}
}

// As returns a connection of a user. With [Settings].Authorize it has the rights of the user's roles.
func (s *Server) As(user rbac.User) *Client {
	c := s.Client(nil, nil)
	c.user = user
	return c
}

// Token returns a new bearer token of a user. It has no end.
func (s *Server) Token(user rbac.User) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := strings.ToLower(rand.Text())
	s.tokens[out] = bearer{user: user}
	return out
}

// bearer is the owner of a token, and for whom and how long that is valid.
type bearer struct {
	user rbac.User
	// audiences are those who may take the token; none means everybody.
	audiences []string
	// ends is zero for a token without an end.
	ends time.Time
	// bound is the object with which the token ends; nil if there is none.
	bound *bound
}

// bearerOf returns the owner of a token that is valid. That of a ServiceAccount which is gone is not.
func (s *Server) bearerOf(token string) (bearer, bool) {
	b, found := s.tokens[token]
	if !found || !b.ends.IsZero() && s.clock.Now().After(b.ends) {
		return bearer{}, false
	}
	if b.bound != nil {
		if o := s.tables[b.bound.resource].get(b.bound.key); o == nil || o.GetUID() != b.bound.uid {
			return bearer{}, false
		}
	}
	if account, ok := strings.CutPrefix(b.user.Name, "system:serviceaccount:"); ok && b.user.UID != "" {
		namespace, name, _ := strings.Cut(account, ":")
		o := s.tables[serviceAccounts()].get(types.NamespacedName{Namespace: namespace, Name: name})
		return b, o != nil && string(o.GetUID()) == b.user.UID
	}
	return b, true
}

// Guarded serves requests that come over the network, each with the rights of the user whose bearer token it has.
func (s *Server) Guarded() *Client {
	c := s.Client(nil, nil)
	c.guarded = true
	return c
}

// Certify makes the server give all namespaces a certificate, in PEM, by which its listener is known. Namespaces that
// are there already get it at once.
func (s *Server) Certify(certificate string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.certificate = certificate
	if s.garbage == nil {
		return
	}
	t := s.tables[configMaps()]
	for _, row := range s.tables[namespaces()].objects.In("") {
		if o := t.get(types.NamespacedName{Namespace: row.Name, Name: rootCA}); o != nil {
			next := o.DeepCopy()
			next.Object["data"] = map[string]any{"ca.crt": certificate}
			s.commit(t, "MODIFIED", next)
		}
	}
}

// sender returns the user of a request: that of its connection or of its token, or the one whom that impersonates.
func (c *Client) sender(h *http.Request) (rbac.User, error) {
	user := c.user
	if c.trusted {
		user = Administrator()
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.guarded {
		token, found := strings.CutPrefix(h.Header.Get("Authorization"), "Bearer ")
		b, known := c.server.bearerOf(token)
		known = known && len(common([]string{issuer}, b.audiences)) > 0
		switch user = b.user; {
		case found && !known:
			return user, apierrors.NewUnauthorized("Unauthorized")
		case !found:
			user = rbac.User{Name: anonymous, Groups: []string{rbac.Unauthenticated}}
		}
	}
	return c.server.impersonated(h, user)
}

// UserOf returns the user whose bearer token a request has that came over the network; false if it has no valid one, or acts as
// somebody else.
func (s *Server) UserOf(h *http.Request) (rbac.User, bool) {
	token, found := strings.CutPrefix(h.Header.Get("Authorization"), "Bearer ")
	if !found || h.Header.Get("Impersonate-User") != "" {
		return rbac.User{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, known := s.bearerOf(token)
	return b.user, known
}

// impersonated returns the user whom the headers of a request name, if its sender may act as that user.
func (s *Server) impersonated(h *http.Request, user rbac.User) (rbac.User, error) {
	name, groups, uid, extra := h.Header.Get("Impersonate-User"), h.Header.Values("Impersonate-Group"), h.Header.Get("Impersonate-Uid"), extraIn(h.Header)
	switch {
	case name != "":
	case len(groups) == 0 && uid == "" && len(extra) == 0:
		return user, nil
	default:
		return user, apierrors.NewBadRequest(fmt.Sprintf(
			"requested &user.DefaultInfo{Name:\"\", UID:%q, Groups:%#v, Extra:%#v} without impersonating a user name", uid, groups, extra))
	}
	ask := rbac.Attributes{User: user, Verb: "impersonate", Resource: "users", Name: name}
	out := rbac.User{Name: name, Groups: groups}
	if account, ok := strings.CutPrefix(name, "system:serviceaccount:"); ok {
		namespace, short, _ := strings.Cut(account, ":")
		ask.Resource, ask.Namespace, ask.Name = "serviceaccounts", namespace, short
		if len(groups) == 0 {
			out = rbac.ServiceAccount(namespace, short, "")
		}
	} else if name == anonymous {
		out.Groups = append(out.Groups, rbac.Unauthenticated)
	} else {
		out.Groups = append(out.Groups, rbac.Authenticated)
	}
	if err := s.permit(ask); err != nil {
		return user, err
	}
	asks := make([]rbac.Attributes, 0, len(groups)+1)
	for _, group := range groups {
		asks = append(asks, rbac.Attributes{Resource: "groups", Name: group})
	}
	if out.UID, out.Extra = uid, extra; uid != "" {
		asks = append(asks, rbac.Attributes{Group: authenticationv1.GroupName, Resource: "uids", Name: uid})
	}
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		for _, value := range extra[key] {
			asks = append(asks, rbac.Attributes{Group: authenticationv1.GroupName, Resource: "userextras", Subresource: key, Name: value})
		}
	}
	for _, ask := range asks {
		ask.User, ask.Verb = user, "impersonate"
		if err := s.permit(ask); err != nil {
			return user, err
		}
	}
	return out, nil
}

// extraIn returns what else headers say of a user. The keys are escaped in them.
func extraIn(headers http.Header) map[string][]string {
	var out map[string][]string
	for name, values := range headers {
		key, found := strings.CutPrefix(strings.ToLower(name), "impersonate-extra-")
		if plain, err := url.PathUnescape(key); err == nil {
			key = plain
		}
		if found && out == nil {
			out = map[string][]string{}
		}
		if found {
			out[key] = values
		}
	}
	return out
}

// permit returns the refusal of a request that the roles do not allow.
func (s *Server) permit(a rbac.Attributes) error {
	if !s.authorizes {
		return nil
	}
	said := s.rights().Decide(a)
	if said.Allowed {
		return nil
	}
	why := refusalOf(a)
	if said.Reason != "" {
		why += ": " + said.Reason
	}
	return forbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name, why)
}

// anonymous is the name of a user without a token.
const anonymous = "system:anonymous"

// onlyUser is the name of the user of a server without users.
const onlyUser = "operator"
