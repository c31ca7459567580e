// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"testing"

	"k8s.io/client-go/rest"
)

// behindPath serves the API server that config reaches behind a path, as Rancher and kubectl proxy
// --api-prefix do, until the test ends, and returns the way to it.
func behindPath(t *testing.T, config *rest.Config) *rest.Config {
	t.Helper()
	const prefix = "/k8s/clusters/c-1"
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.StripPrefix(prefix, &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:      log.New(io.Discard, "", 0),
	}))
	t.Cleanup(func() {
		server.CloseClientConnections() // watches end with their client
		server.Close()
	})
	return &rest.Config{Host: server.URL + prefix, QPS: -1}
}

// TestStandbyBehindAPath holds that a process which stands by gets ready where the server's URL has a
// path, and takes over: a roll-out ends.
func TestStandbyBehindAPath(t *testing.T) {
	t.Parallel()
	ns := plane.Namespace(t)
	all := contenders(t, ns, byLease, 2)
	for _, c := range all {
		c.launch.Config = behindPath(t, c.user.Config())
		c.start(t)
	}
	leader, others, _ := awaitLeader(t, ns, all...)
	others[0].awaitStandby(t)
	stage := stageIn(ns)
	stage.settled(t, "a", 1)
	if exit := leader.Stop(t); exit.Code != 0 {
		t.Errorf("exit code is %d", exit.Code)
	}
	awaitLeader(t, ns, others...)
	stage.foos.Patch(t, "a", `{"spec":{"replicas":2}}`)
	stage.follows(t, "a", 2)
	for _, c := range all {
		mustLogNoError(t, c.Lines)
	}
}
