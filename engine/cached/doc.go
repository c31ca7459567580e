// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package cached says what an object in a cache is. An [Object] has the metadata that routing needs and
// the object's JSON without managedFields. A tree is built from the bytes each time it is asked for, so
// nobody shares one and nothing is copied deeply.
//
// A [Form] says how much of each object is held, and [NewTransform] makes objects of what clients decode.
package cached
