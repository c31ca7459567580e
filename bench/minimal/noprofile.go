// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !profile

package main

// profiled is nothing without the tag.
func profiled(string) func() { return func() {} }
