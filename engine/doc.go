// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package engine runs operators: it watches what a [dsl.Operator] names and calls its handlers.
//
// # The way of an event
//
// watch → key → queue → worker → reconcile: read, observe, decide, run handlers, settle, write once → next due time
//
// An informer callback reduces the event to a key and a hint (package watch), and the inbox keeps it for the next
// reconcile. The queue keeps keys apart and in order. A worker takes the key and calls [reconcile.Controller.Reconcile].
// That reads the object from the cache once, moves the operator's marks under earlier names, and opens the object's
// progress ([progress.Session]). It finds the triggers (observe.go). It decides for each handler in its order
// (decide.go), and runs it when it is due (attempt.go). It turns outcomes into stored progress (settle.go), writes once
// (write.go), and remembers the result (finish.go). This package wires: it makes a [reconcile.Controller] for each
// resource.
//
// # The laws
//
// These are promises to users; each has tests that try to break it.
//
//  1. Nothing is lost. Every handler in the end succeeds against the newest state of what it looks at,
//     its view. A change that lands in the middle of a cycle, whoever made it, re-runs exactly the
//     handlers that look at what changed, also those that had already succeeded. No client's change is
//     overwritten unseen.
//  2. At least once, remembered. A crash at any instruction skips no handler. A success that was
//     recorded is not repeated for the same view, not even after a restart.
//  3. Serial per object, parallel across objects. Never two reconciles of one object at once (by UID),
//     whatever the trigger: event, timer, child, resync.
//  4. No change, no write. Restart, relist, resync, our own writes' echoes, somebody else's status
//     or managedFields change: zero write requests. A patch equal to what is there is not sent.
//  5. One reconcile, one write. All due handlers run in one reconcile; what they changed goes out as at most
//     one request for the object and one for its status.
//  6. Own writes first. No reconcile starts from a cache that is older than this operator's last write
//     to that object or its children. The key is parked and woken when the cache caught up; no
//     worker waits, and an object outside the informer's scope is never waited for.
//  7. Deletion is safe. A finalizer is there before the first side effect, only where a handler, a
//     daemon or a child needs it, and never for a handler that opted out. No delete handler runs for an object that
//     lives; the one exception is an object that leaves the operator's own selector or scope: for
//     this operator it is gone, its finalizer is taken off, and when it comes back it is new. Deletes
//     in a watch gap are delivered, once a read has confirmed them; a changed UID is a delete and a
//     create. A delete handler that fails for good holds the object and says so, unless its policy is
//     release. Daemons have ended before their object goes, or their time to end is over, unless they
//     opted out.
//  8. Waiting costs nothing. A retry, a timer or a parked key holds no worker and no goroutine.
//     Back-off is per handler, exponential with jitter; a new change cuts it short. Daemons alone are
//     goroutines, one for each object and daemon at any time, and one that is done has none.
//  9. Faults stay where they are. A missing CRD, a missing permission, a broken aggregated API, a
//     panicking handler, a hot-looping object or one slow resource degrades itself alone, is
//     visible in /readyz?verbose, metrics and Events, and heals without a restart.
//  10. Time is kept. A handler's context ends at its timeout, at shutdown and when leadership is
//     lost; after that none of its writes leaves the process. That of a daemon ends when it is asked to
//     stop, and its writes when its time to stop is over.
//  11. Nothing is silent. For any object one command says which handlers ran, why, with what result,
//     what waits, until when, and what failed last. An expression that fails is an error wherever it
//     stands: it never selects nothing, and never counts as false.
//  12. The engine does no harm on its way out. Giving up a field, leaving an object, an upgrade or an
//     uninstall changes nothing that a user did not ask to change.
package engine
