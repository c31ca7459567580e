// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package custom has the schemas of custom resources for an API server in memory: what a CRD says of defaults, unknown
// fields, types, lists, rules and embedded objects, by the packages of the real API server, and in its words.
//
// A schema is compiled when it is used for the first time, and once in a process for CRDs with the same content.
// Conversion webhooks are not called: versions differ as with the strategy None.
package custom
