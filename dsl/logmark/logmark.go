// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package logmark has the marks of log lines. logr has no level between information and errors, and no way to say
// whose words a message is, so a line says it with a value that the operator program takes out again:
// It is pure.
//
//	r.Log.Info("the quota is nearly used up", logmark.Warning, true)
package logmark

const (
	// Warning makes a line of information a warning.
	Warning = "handwerk.warning"
	// Quoted says that the message is a user's text. It is quoted where lines are for people, so
	// that it cannot pass for one of the operator's own.
	Quoted = "handwerk.quoted"
)
