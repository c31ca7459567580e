// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package cmd is the command line of an operator: run, play, test, validate, crd, rbac, bundle, cleanup, status, why, tree, graph,
// init, schema, eval, version and completion.
//
// A main package of one line makes a whole operator of it; see [Main]. Tests, and programs that control their
// process themselves, call [Run], which changes nothing that is global to the process.
//
// Settings have this order of precedence: a flag, the environment variable of the flag (--qps is HANDWERK_QPS), the
// configuration file, the default. An empty variable counts as not set; lists are separated by commas.
//
// Exit codes:
//
//	0    ok; after a signal: every handler was given its time and everything has stopped
//	1    the run failed, or the configuration has faults
//	2    wrong usage: an unknown command, flag or argument, or a value that a flag cannot have
//	3    status: the operator answers, and something is degraded, or objects fail or are held
//	130  a second SIGINT or SIGTERM came before the first one's orderly stop was over
//
// Errors go to stderr, once, as "error: …". Faults of a configuration go there one on a line, as
// "operator.yaml:12:7: …", a form that editors and CI systems understand.
package cmd
