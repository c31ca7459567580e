// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command likeness measures how like a real API server the sandbox is, by suites that were written for real servers.
// It is a separate module, so that the operator does not depend on what the suites need. It runs on demand:
//
//	make likeness                                       # all suites
//	make likeness SUITE=kubectl                         # one of them
//	make likeness SUITE=kubectl LIKENESS="-run pod"     # some of its cases
//	make likeness SUITE=kubectl LIKENESS=-real          # measures the real server anew, too
//	make likeness SUITE=fuzz FOR=60m SEED=7             # sends generated requests for an hour; SEED repeats a run
//
// A suite is a file with one function, and a row in the table of main.go:
//
//	func gophers(ctx context.Context, s Servers) (Report, error)
//
// It starts the servers that it needs with [Servers.Sandbox] and [Servers.Real], puts scratch files into [Servers.Dir],
// runs the cases that [Servers.Selected] selects, and returns a [Case] for each of them. If its cases are slow on a real
// server, it keeps what is known of that in a file in the folder known: [readKnown] reads it, and [writeKnown] writes it
// anew when [Servers.Remeasure] is set. Suites take their files from where they are published, at run time.
package main
