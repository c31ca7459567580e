// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package book keeps one object's book: for each handler what it handled last, with what outcome, and
// what it is about to do. From the book and from what an object looks like now it says which handlers
// are due, and why. It is pure; the engine brings the object and the time, and stores what comes out.
//
// A handler looks at its view: the essence of the object, or the fields that it names. It is due when
// the digest of its view differs from what its entry says it handled last, whoever changed it: a
// person, another operator, another handler of the same pass. Entries know nothing of each other, so
// that one handler is finished says nothing about another.
//
// The book is one object's, by UID: what lies on another object, because somebody copied or restored
// it, is void.
package book
