// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"errors"
	"testing"
)

// TestABreakingSchemaSaysWhatToDo holds that objects which all fit need no change, and that objects which were not tried are not said
// to break.
func TestABreakingSchemaSaysWhatToDo(t *testing.T) {
	const change = "change the objects first, keep in the schema what they have, or use --allow-breaking-schema"
	for name, tt := range map[string]struct {
		stock stock
		err   error
		want  string
	}{
		"one object fits":         {stock{all: 1}, nil, "the schema is stricter than the cluster's: a (the only stored object fits): --allow-breaking-schema accepts it"},
		"all objects fit":         {stock{all: 2}, nil, "the schema is stricter than the cluster's: a (all 2 stored objects fit): --allow-breaking-schema accepts it"},
		"one object does not fit": {stock{2, 1, "x", "b"}, nil, "the schema breaks what the cluster has: a (1 of 2 stored objects does not fit, x: b): " + change},
		"no object was tried":     {stock{}, errors.New("no"), "the schema is stricter than the cluster's: a (its objects were not tried: no): " + change},
	} {
		t.Run(name, func(t *testing.T) {
			e := &BreakingError{Changes: []string{"a"}, Stored: tt.stock.String(), Unfit: tt.stock.unfit > 0, Err: tt.err}
			if got := e.Error() + ": " + e.Cure(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
