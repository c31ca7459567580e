// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// TestLoginOfAProgram holds when a program's own login says where the API server is, and the error that it gets for a refusal.
func TestLoginOfAProgram(t *testing.T) {
	flag := writeFile(t, "flag", kubeconfigOf("https://flag"))
	own := func(context.Context) (*rest.Config, error) {
		return &rest.Config{Host: "https://own", BearerToken: "secret"}, nil
	}
	tests := map[string]struct {
		login      func(context.Context) (*rest.Config, error)
		args       []string
		host, says string
	}{
		"it counts more than $KUBECONFIG":        {own, nil, "https://own", ""},
		"a kubeconfig that is named counts more": {own, []string{"--kubeconfig", flag}, "https://flag", ""},
		"so does a context":                      {own, []string{"--context", "second"}, "https://api.example:6443/second", ""},
		"without one all is as ever":             {nil, nil, "https://api.example:6443", ""},
		"an error is reported": {
			func(context.Context) (*rest.Config, error) { return nil, errors.New("the vault is sealed") }, nil, "", "error: logging in: the vault is sealed\n",
		},
		"nothing is an error, too": {
			func(context.Context) (*rest.Config, error) { return nil, nil }, nil, "", "error: logging in: it gave no config\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.login = tt.login
			b.stopAtOnce()
			args := append([]string{"run", "--config", "foo.yaml", "--health-probe-bind-address", "0", "--metrics-bind-address", "0", "--debug-bind-address", "0"}, tt.args...)
			code := b.execute(t.Context(), args)
			if (code == 0) != (tt.says == "") || !strings.HasSuffix(b.err.String(), tt.says) {
				t.Fatalf("it exits with %d and says %s", code, b.err.String())
			}
			if tt.says != "" {
				return
			}
			if got := b.settings.Config; got.Host != tt.host || !strings.HasPrefix(got.UserAgent, "foo/") {
				t.Errorf("it goes to %s as %s, want %s", got.Host, got.UserAgent, tt.host)
			}
		})
	}
}

// TestTheConfigOfALoginIsCopied holds that the program changes none of its author's.
func TestTheConfigOfALoginIsCopied(t *testing.T) {
	config := &rest.Config{Host: "https://own"}
	b := newBench(t)
	b.login = func(context.Context) (*rest.Config, error) { return config, nil }
	b.stopAtOnce()
	if code := b.execute(t.Context(), []string{"run", "--config", "foo.yaml", "--health-probe-bind-address", "0", "--metrics-bind-address", "0", "--debug-bind-address", "0"}); code != 0 {
		t.Fatal(b.err.String())
	}
	if config.UserAgent != "" {
		t.Errorf("its user agent is %s", config.UserAgent)
	}
}

// TestAProgramHandsItsLoginOn holds that what is given to a Program is used.
func TestAProgramHandsItsLoginOn(t *testing.T) {
	said := Program{Login: func(context.Context) (*rest.Config, error) { return nil, errors.New("asked") }}.inner(Streams{})
	if _, _, err := said.access(t.Context(), &kubeFlags{}); err == nil || err.Error() != "logging in: asked" {
		t.Errorf("it says %v", err)
	}
}

// TestARefusedLoginIsRenewed holds that a program logs in again when the API server does not take its credentials any more, once for all
// requests that fail, and that a login that does not help is not repeated at once.
func TestARefusedLoginIsRenewed(t *testing.T) {
	tests := map[string]struct {
		// tokens are the ones that the logins return, one after the other; an empty one is an error.
		tokens []string
		// accepted is the token that the server takes.
		accepted       string
		status, logins int
	}{
		"the first token is good":                   {[]string{"good"}, "good", http.StatusOK, 1},
		"the token has expired":                     {[]string{"old", "good"}, "good", http.StatusOK, 2},
		"the next login gives the same token":       {[]string{"old", "old", "good"}, "good", http.StatusUnauthorized, 2},
		"the next login fails":                      {[]string{"old", "", "good"}, "good", http.StatusUnauthorized, 2},
		"the next token is refused like the first":  {[]string{"old", "other", "good"}, "good", http.StatusUnauthorized, 2},
		"a password is renewed as a token is, once": {[]string{"user:old", "user:good"}, "user:good", http.StatusOK, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			want := authorizationOf(configOf(tt.accepted))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if r.Header.Get("Authorization") != want {
					w.WriteHeader(http.StatusUnauthorized)
				} else if string(body) != "body" {
					t.Errorf("the request has body %q", body)
				}
			}))
			defer server.Close()
			var logins atomic.Int32
			config, err := loggedIn(t.Context(), func(context.Context) (*rest.Config, error) {
				token := tt.tokens[logins.Add(1)-1]
				if token == "" {
					return nil, errors.New("the vault is sealed")
				}
				out := configOf(token)
				out.Host = server.URL
				return out, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					response, err := client.Post(server.URL, "text/plain", strings.NewReader("body"))
					if err != nil {
						t.Error(err)
						return
					}
					_ = response.Body.Close()
					if response.StatusCode != tt.status {
						t.Errorf("the server answers %s, want %d", response.Status, tt.status)
					}
				})
			}
			all.Wait()
			if n := int(logins.Load()); n != tt.logins {
				t.Errorf("%d logins, want %d", n, tt.logins)
			}
		})
	}
}

// configOf returns a config with a token, or a user and a password.
func configOf(text string) *rest.Config {
	if user, password, is := strings.Cut(text, ":"); is {
		return &rest.Config{Username: user, Password: password}
	}
	return &rest.Config{BearerToken: text}
}
