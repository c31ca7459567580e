// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package samples_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/engine/enginetest/cases"
	"github.com/handwerk-dev/handwerk/samples/functions"
)

// TestCases runs the cases of all samples, with the functions of their programs.
func TestCases(t *testing.T) { cases.Run(t, ".", functions.Registry()) }
