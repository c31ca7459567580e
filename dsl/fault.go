// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import "fmt"

// Fault is what is wrong with a part of an operator. [Operator.Validate] joins them.
type Fault struct {
	// Resource is the name of the resource that is at fault, and Handler the id of its handler, where it is
	// one of them.
	Resource, Handler string
	// Err says what is wrong.
	Err error
}

// Error names the part and says what is wrong.
func (f *Fault) Error() string {
	if f.Handler == "" {
		return fmt.Sprintf("resource %s: %v", f.Resource, f.Err)
	}
	return fmt.Sprintf("resource %s: handler %s: %v", f.Resource, f.Handler, f.Err)
}

// Unwrap returns what is wrong.
func (f *Fault) Unwrap() error { return f.Err }
