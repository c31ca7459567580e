// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import "context"

// handlerKey is the key of a handler's id in a context.
type handlerKey struct{}

// OfHandler returns a context for the requests of a handler.
func OfHandler(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, handlerKey{}, id)
}

// Handler returns the id of the handler whose request has this context; empty for the engine's own requests.
func Handler(ctx context.Context) string {
	id, _ := ctx.Value(handlerKey{}).(string)
	return id
}
