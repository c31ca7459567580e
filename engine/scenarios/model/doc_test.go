// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package model_test compares the engine with small models, over random programs of handlers and random lives of objects.
package model_test
