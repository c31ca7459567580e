// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import "context"

// keyed waits for the key of the digests that the resource's handlers leave on Secrets. The error says why the key cannot be read or
// made; no pass begins then, for without a key nothing of a Secret is stored.
func (r *resource) keyed(ctx context.Context) error {
	if !r.spec.DigestsSecrets() {
		return nil
	}
	return r.engine.key.Ready(ctx)
}

// isKey reports whether an object is the Secret with that key, which no handler sees.
func (r *resource) isKey(namespace, name string) bool {
	return r.spec.OfSecrets() && r.engine.key.Is(namespace, name)
}
