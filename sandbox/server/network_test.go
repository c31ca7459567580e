// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

// TestAServiceOfTypeExternalNameLeadsToWebhooks holds that webhooks are called at its host, also after a saved server is resumed, and that
// nothing answers if the Service is another one or gone.
func TestAServiceOfTypeExternalNameLeadsToWebhooks(t *testing.T) {
	authority, key, err := cert.GenerateSelfSignedCertKey("hooks.default.svc", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(authority, key)
	if err != nil {
		t.Fatal(err)
	}
	hook := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "here", http.StatusTeapot) }))
	hook.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	hook.StartTLS()
	t.Cleanup(hook.Close)
	_, port, err := net.SplitHostPort(hook.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t, complete.Settings())
	services := "/api/v1/namespaces/default/services"
	send := func(method, path, body string) {
		t.Helper()
		if out := w.send(method, path, body, "Content-Type", "application/json"); out.code >= http.StatusBadRequest {
			t.Fatal(out.text)
		}
	}
	service := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q},"spec":{"type":"ExternalName","externalName":"localhost"}}`, name)
	}
	calls := func(when string, w wire, want string) {
		t.Helper()
		if out := w.send(http.MethodPost, inDefault, `{"metadata":{"name":"a"}}`); out.code != http.StatusInternalServerError || !strings.Contains(out.message(), want) {
			t.Errorf("%s: %d %s", when, out.code, out.text)
		}
	}
	send(http.MethodPost, services, service("others"))
	send(http.MethodPost, webhookConfigurations+"validatingwebhookconfigurations", fmt.Sprintf(`{"metadata":{"name":"h"},"webhooks":[{"name":"h.example.com",
		"admissionReviewVersions":["v1"],"sideEffects":"None","clientConfig":{"caBundle":%q,"service":{"namespace":"default","name":"hooks","port":%s}},
		"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["*"]}]}]}`, base64.StdEncoding.EncodeToString(authority), port))
	calls("without the Service", w, "hooks.default.svc")
	send(http.MethodPost, services, service("hooks"))
	const answer = "the server responded with the status code 418: here"
	calls("with the Service", w, answer)

	var saved bytes.Buffer
	if err := w.server.Save(&saved); err != nil {
		t.Fatal(err)
	}
	next := server.New(complete.Settings())
	if err := next.Resume(&saved); err != nil {
		t.Fatal(err)
	}
	calls("on a server that goes on", wire{t, next, next.Admin()}, answer)
	send(http.MethodDelete, services+"/hooks", "")
	calls("without the Service again", w, "hooks.default.svc")
}
