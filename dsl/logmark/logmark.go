// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package logmark has the marks of log lines. logr has no level between information and errors, and cannot say that
// a message is a user's text. A line says so with a value, which the operator program removes again. It is pure.
//
//	r.Log.Info("the quota is nearly used up", logmark.Warning, true)
package logmark

const (
	// Warning marks a line of information as a warning.
	Warning = "handwerk.warning"
	// Quoted marks a message as a user's text. It is quoted in logs for people, so that it cannot look like a
	// message of the operator.
	Quoted = "handwerk.quoted"
)
