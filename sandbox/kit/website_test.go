// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestWebsite runs the example.
func TestWebsite(t *testing.T) { kit.Run(t, testWebsite) }
