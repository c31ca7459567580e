// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

func TestRoom(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        int
	}{
		"without others it is all but the key":    {nil, progress.MostOfAll - 3},
		"what the key has now does not count":     {map[string]string{"key": strings.Repeat("x", 100)}, progress.MostOfAll - 3},
		"keys and values of others are taken off": {map[string]string{"other": "value", "key": "x"}, progress.MostOfAll - 13},
		"others may have taken all":               {map[string]string{"other": strings.Repeat("x", progress.MostOfAll)}, -8},
	} {
		t.Run(name, func(t *testing.T) {
			if got := progress.Room(test.annotations, "key"); got != test.want {
				t.Errorf("room for %d bytes, want %d", got, test.want)
			}
		})
	}
}
