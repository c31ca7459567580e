// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// loginPause is the shortest time between two logins: a login that does not help must not follow each request.
const loginPause = 10 * time.Second

// loggedIn returns the config of a program's login. Its requests log in again when the API server answers 401, and are sent once more.
func loggedIn(ctx context.Context, login func(context.Context) (*rest.Config, error)) (*rest.Config, error) {
	config, err := askLogin(ctx, login)
	if err != nil {
		return nil, err
	}
	out := rest.CopyConfig(config)
	renews := out.BearerTokenFile != "" || out.ExecProvider != nil || out.AuthProvider != nil
	if authorization := authorizationOf(out); authorization != "" && !renews {
		session := &session{login: login, authorization: authorization}
		out.Wrap(func(next http.RoundTripper) http.RoundTripper { return &relogin{session, next} })
	}
	return out, nil
}

func askLogin(ctx context.Context, login func(context.Context) (*rest.Config, error)) (*rest.Config, error) {
	config, err := login(ctx)
	if err == nil && config == nil {
		err = errors.New("it gave no config")
	}
	if err != nil {
		return nil, fmt.Errorf("logging in: %w", err)
	}
	return config, nil
}

// authorizationOf returns the header that client-go sends for a token or a password; empty without either.
func authorizationOf(c *rest.Config) string {
	switch {
	case c.BearerToken != "":
		return "Bearer " + c.BearerToken
	case c.Username != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.Username+":"+c.Password))
	}
	return ""
}

// session has the newest credentials of a login. All clients of the program share it.
type session struct {
	login func(context.Context) (*rest.Config, error)

	mu            sync.Mutex
	authorization string
	last          time.Time
}

// current returns the newest header.
func (s *session) current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.authorization
}

// renew logs in again after the API server has refused a header, and returns a new header. The header is empty if the login gives no new
// one. Requests that fail together log in once.
func (s *session) renew(ctx context.Context, refused string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.authorization != refused {
		return s.authorization
	}
	if !s.last.IsZero() && time.Since(s.last) < loginPause {
		return ""
	}
	s.last = time.Now()
	config, err := askLogin(ctx, s.login)
	if err != nil {
		return "" // the caller has the refusal of the API server
	}
	if now := authorizationOf(config); now != refused {
		s.authorization = now
		return now
	}
	return ""
}

// relogin sends requests with the newest credentials of a session.
type relogin struct {
	session *session
	next    http.RoundTripper
}

// RoundTrip sends a request, and sends it again with new credentials if it is refused for the old ones.
func (t *relogin) RoundTrip(r *http.Request) (*http.Response, error) {
	used := t.session.current()
	response, err := t.next.RoundTrip(withAuthorization(r, used))
	if err != nil || response.StatusCode != http.StatusUnauthorized || r.Body != nil && r.GetBody == nil {
		return response, err
	}
	renewed := t.session.renew(r.Context(), used)
	if renewed == "" {
		return response, nil
	}
	_ = response.Body.Close() // the answer to the second request takes its place
	again := withAuthorization(r, renewed)
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, fmt.Errorf("sending the request with new credentials: %w", err)
		}
	}
	return t.next.RoundTrip(again)
}

func withAuthorization(r *http.Request, authorization string) *http.Request {
	out := r.Clone(r.Context())
	out.Header.Set("Authorization", authorization)
	return out
}
