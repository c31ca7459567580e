// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVersionFrom(t *testing.T) {
	clientGo := &debug.Module{Path: "k8s.io/client-go", Version: "v0.37.2"}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	tests := map[string]struct {
		info debug.BuildInfo
		want version
		text string
	}{
		"a release": {
			debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: ownModule, Version: "v1.2.3"}, Deps: []*debug.Module{clientGo}},
			version{Version: "v1.2.3", Handwerk: "v1.2.3", Go: "go1.26.8", ClientGo: "v0.37.2", Platform: platform},
			"version v1.2.3\nhandwerk v1.2.3\ngo go1.26.8\nclient-go v0.37.2\nplatform " + platform,
		},
		"a checkout with changes": {
			debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: ownModule, Version: "(devel)"}, Settings: []debug.BuildSetting{
				{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
			}},
			version{Version: "devel", Handwerk: "devel", Commit: "abc", Time: "2026-01-02T03:04:05Z", Modified: true, Go: "go1.26.8", ClientGo: "unknown", Platform: platform},
			"version devel\nhandwerk devel\ncommit abc, modified (2026-01-02T03:04:05Z)\ngo go1.26.8\nclient-go unknown\nplatform " + platform,
		},
		"a program of a user's own": {
			debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "example.com/mine", Version: "v9"}, Deps: []*debug.Module{
				{Path: ownModule, Version: "v1.2.3"}, {Path: "k8s.io/client-go", Version: "v0.1", Replace: clientGo},
			}},
			version{Version: "v9", Handwerk: "v1.2.3", Go: "go1.26.8", ClientGo: "v0.37.2", Platform: platform},
			"version v9\nhandwerk v1.2.3\ngo go1.26.8\nclient-go v0.37.2\nplatform " + platform,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := versionFrom(&test.info)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var text strings.Builder
			if err := got.write(&text); err != nil {
				t.Fatal(err)
			}
			var rows []string
			for line := range strings.Lines(text.String()) {
				rows = append(rows, strings.Join(strings.Fields(line), " "))
			}
			if diff := cmp.Diff(test.text, strings.Join(rows, "\n")); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVersionCommand(t *testing.T) {
	b := newBench(t)
	if code := b.execute(t.Context(), []string{"version", "-o", "json"}); code != exitOK {
		t.Fatalf("exit code %d: %s", code, b.err.String())
	}
	var got version
	if err := json.Unmarshal([]byte(b.out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Go != runtime.Version() || got.Version == "" {
		t.Errorf("got %+v", got)
	}
}
