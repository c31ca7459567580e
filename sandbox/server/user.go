// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
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
	return s.token(user, time.Time{})
}

// bearer is the owner of a token, and when that ends; zero means never.
type bearer struct {
	user rbac.User
	ends time.Time
}

func (s *Server) token(user rbac.User, ends time.Time) string {
	out := strings.ToLower(rand.Text())
	s.tokens[out] = bearer{user, ends}
	return out
}

// bearerOf returns the user of a token that is valid. That of a ServiceAccount which is gone is not.
func (s *Server) bearerOf(token string) (rbac.User, bool) {
	b, found := s.tokens[token]
	if !found || !b.ends.IsZero() && time.Now().After(b.ends) {
		return rbac.User{}, false
	}
	if account, ok := strings.CutPrefix(b.user.Name, "system:serviceaccount:"); ok && b.user.UID != "" {
		namespace, name, _ := strings.Cut(account, ":")
		o := s.tables[serviceAccounts()].get(types.NamespacedName{Namespace: namespace, Name: name})
		return b.user, o != nil && string(o.GetUID()) == b.user.UID
	}
	return b.user, true
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
		known := false
		if user, known = c.server.bearerOf(token); found && !known {
			return user, apierrors.NewUnauthorized("Unauthorized")
		} else if !found {
			user = rbac.User{Name: "system:anonymous", Groups: []string{rbac.Unauthenticated}}
		}
	}
	return c.server.impersonated(h, user)
}

// impersonated returns the user whom the headers of a request name, if its sender may act as that user.
func (s *Server) impersonated(h *http.Request, user rbac.User) (rbac.User, error) {
	name, groups := h.Header.Get("Impersonate-User"), h.Header.Values("Impersonate-Group")
	if name == "" && len(groups) == 0 {
		return user, nil
	}
	if name == "" {
		return user, apierrors.NewBadRequest("requested impersonation of groups without impersonating a user")
	}
	ask := rbac.Attributes{User: user, Verb: "impersonate", Resource: "users", Name: name}
	out := rbac.User{Name: name, Groups: groups}
	if account, ok := strings.CutPrefix(name, "system:serviceaccount:"); ok {
		namespace, short, _ := strings.Cut(account, ":")
		ask.Resource, ask.Namespace, ask.Name = "serviceaccounts", namespace, short
		if len(groups) == 0 {
			out = rbac.ServiceAccount(namespace, short, "")
		}
	} else {
		out.Groups = append(out.Groups, rbac.Authenticated)
	}
	if err := s.permit(ask); err != nil {
		return user, err
	}
	for _, group := range groups {
		if err := s.permit(rbac.Attributes{User: user, Verb: "impersonate", Resource: "groups", Name: group}); err != nil {
			return user, err
		}
	}
	return out, nil
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

// onlyUser is the name of the user of a server without users.
const onlyUser = "operator"
