// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package server is a Kubernetes API server in memory. Clients in its process reach it through an
// http.RoundTripper, others through an http.Handler, so everything above the wire is what runs against a real one:
// client-go's clients, reflectors, streamed lists and error handling.
//
// It does what operators depend on as the real server does: uids, one rising resourceVersion, generations, the
// status, scale and eviction subresources, conflicts, patches of each kind, server-side apply with managedFields, dry runs,
// finalizers, preconditions, selectors, lists in pages of one version, watches that can be resumed and that expire,
// bookmarks, discovery in both forms, CRDs and namespaces that come and go, Events of both groups, and reviews of
// access. What it refuses, it refuses in the real server's words.
//
// Objects are kept as JSON (package store), so 10,000 of 1.5 KB take little more than that. [Settings].History bounds
// what is kept of the past.
//
// With [Settings].Schemas it defaults, prunes and validates objects, too, with [Settings].Controllers it collects garbage and
// furnishes namespaces, and with [Settings].Authorize it has users with the rights of their roles. It calls the
// webhooks of CRDs and of admission. It does not run other admission or play any other controller.
//
// It needs no network and no goroutine that goes on, and nothing in it waits but the reading of a
// watch, so it works in a testing/synctest bubble.
package server
