// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
)

// signingKey returns the key of the tokens, which is made when it is needed first.
func (s *Server) signingKey() (_ *ecdsa.PrivateKey, err error) {
	if s.key == nil {
		s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	return s.key, err
}

// signed returns claims as a JSON web token.
func (s *Server) signed(claims map[string]any) (string, error) {
	key, err := s.signingKey()
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(data)
	sum := sha256.Sum256([]byte(text))
	x, y, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	x.FillBytes(signature[:32])
	y.FillBytes(signature[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
