// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

const accounts = "/api/v1/namespaces/default/serviceaccounts/default"

// token asks for a token, and returns it.
func (w wire) token(spec string) string {
	w.t.Helper()
	out := w.send(http.MethodPost, accounts+"/token", `{"spec":`+spec+`}`)
	status, _ := out.json["status"].(map[string]any)
	if out.code != http.StatusCreated || status["token"] == nil {
		w.t.Fatal(out.text)
	}
	return fmt.Sprint(status["token"])
}

// authenticated reports what a review says of a token.
func (w wire) authenticated(token string) bool {
	w.t.Helper()
	out := w.send(http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", fmt.Sprintf(`{"spec":{"token":%q}}`, token))
	status, _ := out.json["status"].(map[string]any)
	return status["authenticated"] == true
}

func TestATokenSaysWhoseItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // at one time
		w := newWire(t, complete.Settings())
		parts := strings.Split(w.token(`{"expirationSeconds":600,"audiences":["one"]}`), ".")
		if len(parts) != 3 {
			t.Fatalf("the token has %d parts", len(parts))
		}
		data, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		uid := w.send(http.MethodGet, accounts, "").meta("uid")
		now := float64(time.Now().Unix())
		delete(got, "jti")
		want := map[string]any{
			"aud": []any{"one"}, "exp": now + 600, "iat": now, "nbf": now, "iss": "https://kubernetes.default.svc.cluster.local",
			"sub": "system:serviceaccount:default:default",
			"kubernetes.io": map[string]any{
				"namespace": "default", "serviceaccount": map[string]any{"name": "default", "uid": uid},
			},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the claims (-want +got):\n%s", diff)
		}
	})
}

func TestATokenEndsWithTheObjectThatItIsBoundTo(t *testing.T) {
	w := newWire(t, complete.Settings())
	const secret = "/api/v1/namespaces/default/secrets"
	w.send(http.MethodPost, secret, `{"metadata":{"name":"a"}}`)
	token := w.token(`{"boundObjectRef":{"apiVersion":"v1","kind":"Secret","name":"a"}}`)
	if !w.authenticated(token) {
		t.Error("the token is not valid")
	}
	w.send(http.MethodDelete, secret+"/a", "")
	if w.authenticated(token) {
		t.Error("the token is valid without its Secret")
	}
}

func TestASecretHasAWorkingToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, complete.Settings())
		const secret = "/api/v1/namespaces/default/secrets"
		w.send(http.MethodPost, secret, `{"metadata":{"name":"a","annotations":{"kubernetes.io/service-account.name":"default"}},"type":"kubernetes.io/service-account-token"}`)
		w.send(http.MethodPost, secret, `{"metadata":{"name":"b","annotations":{"kubernetes.io/service-account.name":"none"}},"type":"kubernetes.io/service-account-token"}`)
		time.Sleep(time.Second)
		data, _ := w.send(http.MethodGet, secret+"/a", "").json["data"].(map[string]any)
		token, err := base64.StdEncoding.DecodeString(fmt.Sprint(data["token"]))
		if err != nil || !w.authenticated(string(token)) {
			t.Errorf("the token %s is not valid, error: %v", token, err)
		}
		if out := w.send(http.MethodGet, secret+"/b", ""); out.code != http.StatusNotFound {
			t.Errorf("a Secret of no ServiceAccount: %s", out.text)
		}
	})
}
