// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"crypto/rand"
	"sync/atomic"
)

// Key is the key of digests of Secrets: without it a value cannot be found by trying. Until it is set it is one of this
// process alone.
type Key struct{ secret atomic.Pointer[[]byte] }

// KeySize is how long a key is, in bytes.
const KeySize = 32

// NewKey returns a key of this process.
func NewKey() *Key {
	k := &Key{}
	k.Set(RandomKey())
	return k
}

// RandomKey returns what a key can be set to.
func RandomKey() []byte {
	secret := make([]byte, KeySize)
	_, _ = rand.Read(secret) // it never fails
	return secret
}

// Set sets the key.
func (k *Key) Set(secret []byte) { k.secret.Store(&secret) }

// digest is [book.KeyedDigest].
func (k *Key) digest(value any) string { return KeyedDigest(*k.secret.Load(), value) }
