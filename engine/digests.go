// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import "context"

// keyed returns when there is a key for the digests that the resource's handlers leave on objects, where these are Secrets. The
// error says why there is none: without a key nothing of a Secret is stored, so no pass begins.
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
