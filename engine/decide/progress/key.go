// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"crypto/rand"
	"sync/atomic"
)

// Key is the key for digests of Secrets, so that nobody can find a value by guessing. Until it is set, it is random for
// this process.
type Key struct{ secret atomic.Pointer[[]byte] }

// keySize is the length of a key in bytes.
const keySize = 32

// NewKey returns a random key for this process.
func NewKey() *Key {
	k := &Key{}
	k.Set(RandomKey())
	return k
}

// RandomKey returns random bytes for a key.
func RandomKey() []byte {
	secret := make([]byte, keySize)
	_, _ = rand.Read(secret) // it never fails
	return secret
}

// Set sets the key.
func (k *Key) Set(secret []byte) { k.secret.Store(&secret) }

// digest calls [KeyedDigest] with the key.
func (k *Key) digest(value any) string { return KeyedDigest(*k.secret.Load(), value) }
