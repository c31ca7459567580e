// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package resources_test tests what an operator watches: resources that are not served, rights, scopes, versions, gaps of watches, related
// objects and indexes.
package resources_test
