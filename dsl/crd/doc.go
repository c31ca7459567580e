// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package crd makes CustomResourceDefinitions from the short form in which authors describe a
// resource: a field is its type and, behind a bar, markers, as in
//
//	replicas: integer | default=1 minimum=1 maximum=10
//
// Types are string, integer (64 bits), number (or float), boolean, date, datetime, quantity,
// int-or-string, object (of any form), []T, map[string]T and the author's own. A field that is a
// map is an object with fields.
//
// What comes out is what the API server accepts: [Build] asks the server's own code where that can be
// had without the rest of the server, checks by itself what else the short form can get wrong, and
// tells each mistake with its place. Of an openAPIV3Schema the server may refuse more.
//
// A default within an object takes effect when the object itself is left out, provided that the
// object is not required and that nothing in it is required which has no default: then the object
// has a default too. Within lists and maps there is nothing to leave out. Spec is required when a
// field of it must be given, and otherwise filled in like any object; status is filled in only
// where it is there.
//
// A status in short form, also one without fields, has conditions, because that is where an operator
// reports. It has observedGeneration only when the operator claims that field: otherwise nobody would
// set it, and who waits for it would wait for ever.
package crd
