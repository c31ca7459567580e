// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

// TestATokenIsCheckedByThePublishedKey checks the signature of a token as another program does: by the key to which the
// configuration of OpenID refers.
func TestATokenIsCheckedByThePublishedKey(t *testing.T) {
	w := newWire(t, complete.Settings())
	decoded := func(text any) []byte {
		data, err := base64.RawURLEncoding.DecodeString(fmt.Sprint(text))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	configuration := w.send(http.MethodGet, "/.well-known/openid-configuration", "")
	_, path, _ := strings.Cut(strings.TrimPrefix(fmt.Sprint(configuration.json["jwks_uri"]), "https://"), "/")
	keys, _ := w.send(http.MethodGet, "/"+path, "", "Accept", "*/*").json["keys"].([]any)
	if len(keys) != 1 {
		t.Fatalf("%s has the keys %v", path, keys)
	}
	key := keys[0].(map[string]any)
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, decoded(key["x"]), decoded(key["y"])))
	if err != nil {
		t.Fatal(err)
	}
	token := strings.Split(w.token(`{}`), ".")
	sum := sha256.Sum256([]byte(token[0] + "." + token[1]))
	signature := decoded(token[2])
	if !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Error("the published key is not that of the token")
	}
	if refused := w.send(http.MethodGet, "/"+path, "", "Accept", "application/json"); refused.code != http.StatusNotAcceptable {
		t.Errorf("a client that takes no set of keys gets %d %s", refused.code, refused.text)
	}
}
