// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// keySet is the media type of a set of public keys.
const keySet = "application/jwk-set+json"

// openID answers a request for what other programs need to check the tokens of ServiceAccounts.
func (s *Server) openID(path []string, h *http.Request) (kind string, body any, found bool, err error) {
	switch strings.Join(path, "/") {
	case ".well-known/openid-configuration":
		return "application/json", map[string]any{
			"issuer": issuer, "jwks_uri": "https://" + h.Host + "/openid/v1/jwks", "response_types_supported": []string{"id_token"},
			"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256"},
		}, true, nil
	case "openid/v1/jwks":
		takes := slices.ContainsFunc(clauses(h.Header.Get("Accept")), func(c clause) bool {
			return slices.Contains([]string{keySet, "application/*", "*/*"}, c.media)
		})
		if !takes && h.Header.Get("Accept") != "" {
			return "", nil, true, unrouted(http.StatusNotAcceptable, "406: Not Acceptable\n\nAvailable representations: "+keySet)
		}
		body, err = s.publicKeys()
		return keySet, body, true, err
	}
	return "", nil, false, nil
}

// publicKeys returns the key by which tokens of ServiceAccounts are checked.
func (s *Server) publicKeys() (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, err := s.signingKey()
	if err != nil {
		return nil, err
	}
	point, err := key.PublicKey.Bytes() // a byte that says its form, and both coordinates
	if err != nil {
		return nil, err
	}
	half := len(point) / 2
	return map[string]any{"keys": []any{map[string]any{
		"use": "sig", "kty": "EC", "crv": "P-256", "alg": "ES256",
		"x": base64.RawURLEncoding.EncodeToString(point[1 : 1+half]), "y": base64.RawURLEncoding.EncodeToString(point[1+half:]),
	}}}, nil
}
