// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package enginetest_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// TestWebsite runs the example.
func TestWebsite(t *testing.T) { enginetest.Run(t, testWebsite) }
