// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"strings"
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
