// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"github.com/handwerk-dev/handwerk/dsl"
	keep "github.com/handwerk-dev/handwerk/handlers/apply"
)

// apply keeps children as templates say.
func apply(cel compilerOf) dsl.Action { return keep.Action(cel) }
