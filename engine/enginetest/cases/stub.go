// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"maps"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
)

// do does what the case wants of a function.
func (s stub) do(j *journal, name string, patch *dsl.Patch) error {
	if j.fails(name, s) {
		err := errors.New(s.Fails)
		if s.Permanent {
			err = dsl.Permanent(err)
		}
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(s.Sets)) {
		fields, nested := s.Sets[key].(map[string]any)
		switch {
		case key == "status" && nested:
			for _, field := range slices.Sorted(maps.Keys(fields)) {
				patch.SetStatus(field, fields[field])
			}
		default:
			patch.Set(key, s.Sets[key])
		}
	}
	return nil
}
