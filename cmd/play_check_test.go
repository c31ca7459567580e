// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPlayRefusesWhatValidateRefuses holds that play knows the schemas of the built-in kinds, and does not leave what does not
// fit to the API server.
func TestPlayRefusesWhatValidateRefuses(t *testing.T) {
	said := map[string]string{}
	for _, command := range []string{"validate", "play"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // play would go on
		defer cancel()
		var out, err strings.Builder
		code := greeter().Run(ctx, []string{command, "--config", "testdata/typed"}, Streams{Out: &out, Err: &err, Env: os.Environ()})
		if said[command] = err.String(); code != exitFailed {
			t.Errorf("%s exits with %d: %s", command, code, &out)
		}
	}
	if diff := cmp.Diff(said["validate"], said["play"]); diff != "" || !strings.Contains(said["play"], "operator.yaml:16:") {
		t.Errorf("(-validate +play):\n%s%s", diff, said["play"])
	}
}
