// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package watch keeps caches of Kubernetes objects: one informer per [Source], for any resource,
// started and stopped while the process runs.
//
// A [Set] shares informers between owners. [Set.Open] makes its caller an owner of a source: the
// first owner starts the informer, the last one to close its [Handle] stops it. Owners get events
// through one callback each and read the cache through their handle; the informer itself never
// leaves the package.
//
// Package cached says what the objects in a cache are, and how much of each is held.
//
// What goes wrong with a source stays with it: it shows in its [State] and is tried again until it
// works, after 20 s at most, or when [Handle.Retry] says so.
package watch
