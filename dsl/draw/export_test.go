// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package draw

import "github.com/handwerk-dev/handwerk/dsl"

// Machine draws a machine without children, also one that no operator could have.
func Machine(m *dsl.Machine, title string) Drawing { return machine(m, title, nil) }
