// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"sync"
)

// buffers are for JSON that is digested and thrown away.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Digest returns a short text that differs for different values: 72 bits of the SHA-256 of the JSON with sorted
// keys. Digests are stored on objects. The error is that of encoding/json for a value that cannot be JSON.
func Digest(value any) (string, error) {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	data, err := AppendJSON((*buffer)[:0], value)
	if err != nil {
		return "", err
	}
	*buffer = data
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:9]), nil
}

// KeyedDigest is Digest with a key. Without the key, the value cannot be found by guessing.
func KeyedDigest(key []byte, value any) (string, error) {
	data, err := AppendJSON(nil, value)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write(data) // hashes return no errors
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:9]), nil
}
