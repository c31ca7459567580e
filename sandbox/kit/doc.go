// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package kit runs operators in tests: in the test's process, against a cluster in memory,
// in virtual time.
//
//	func TestFoo(t *testing.T) {
//		kit.Run(t, func(t *testing.T, c *kit.Cluster) {
//			c.Serve(kit.Resource{Name: "foos.v1.example.com", Kind: "Foo"})
//			c.Start(operator())
//			c.Create(foo)
//			c.Settle()
//			…
//			c.Advance(time.Hour)
//		})
//	}
//
// Most tests are about which handlers are called and what is written. A [Stage] is a cluster with one
// operator and a [Journal] of its handlers' calls; a Journal alone serves tests on a real cluster as
// well.
//
// The whole engine runs as it does in a cluster, with client-go's own clients; only the server at
// the other end of the wire is played. It does what the engine and its handlers depend on as the
// real one does: uids, resource versions, generations, the status subresource, conflicts, patches,
// server-side apply with field managers, finalizers, owner references, selectors, the limit of annotations, watches,
// discovery, CRDs and namespaces that come and go, access reviews. It does not check objects by
// their schema or default them, and there are no controllers and no garbage collector: a test
// plays them by writing what they would write.
//
// Time is that of a testing/synctest bubble. It stands still while anything has something to do
// and jumps to the next timer when all wait, so an hour costs nothing: [Cluster.Settle] waits until
// nothing is left to do now, [Cluster.Advance] lets time pass. Handlers must not do real network
// I/O, which a bubble cannot see.
//
// The engine's log is printed only when the test fails.
//
// A handler with the option [dsl.Reads] that reads another field fails the test: an error or a panic where it does
// so names the field. Only v, ok := field.(string) sees the same as in a cluster, which is nothing.
//
// Faults are played as well: processes are killed ([Process.Kill], [Process.CrashAfter]), cut off
// ([Process.Sever]) or restarted, requests fail ([Cluster.FailNext], [Cluster.LoseNext],
// [Cluster.DelayNext]), rights are missing ([Cluster.Forbid]), API groups break ([Cluster.Break]),
// webhooks change or refuse what is written ([Cluster.Rewrite], [Cluster.Refuse]), and watches lag, end or
// miss events ([Cluster.HoldWatches], [Cluster.CutWatches], [Cluster.ExpireWatches]).
package kit
