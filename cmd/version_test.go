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
			debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: ownModule, Version: "v1.2.3", Sum: "h1:x="}, Deps: []*debug.Module{clientGo}},
			version{Version: "v1.2.3", Module: ownModule, Handwerk: "v1.2.3", BuiltBy: "go install", Go: "go1.26.8", ClientGo: "v0.37.2", Platform: platform},
			"version v1.2.3\nhandwerk v1.2.3\nmodule " + ownModule + "\nbuilt by go install\ngo go1.26.8\nclient-go v0.37.2\nplatform " + platform,
		},
		"a checkout with changes": {
			debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: ownModule, Version: "(devel)"}, Settings: []debug.BuildSetting{
				{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
			}},
			version{Version: "devel", Module: ownModule, Handwerk: "devel", Commit: "abc", Time: "2026-01-02T03:04:05Z", Modified: true, Go: "go1.26.8", ClientGo: "unknown", Platform: platform},
			"version devel\nhandwerk devel\nmodule " + ownModule + "\ncommit abc, modified (2026-01-02T03:04:05Z)\ngo go1.26.8\nclient-go unknown\nplatform " + platform,
		},
		"a program of a user's own": {
			debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "example.com/mine", Version: "v9"}, Deps: []*debug.Module{
				{Path: ownModule, Version: "v1.2.3"}, {Path: "k8s.io/client-go", Version: "v0.1", Replace: clientGo},
			}},
			version{Version: "v9", Module: "example.com/mine", Handwerk: "v1.2.3", Go: "go1.26.8", ClientGo: "v0.37.2", Platform: platform},
			"version v9\nhandwerk v1.2.3\nmodule example.com/mine\ngo go1.26.8\nclient-go v0.37.2\nplatform " + platform,
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

func TestTheBuilderAndItsImageAreKnown(t *testing.T) {
	b := newBench(t)
	b.builtBy, b.image = "the release workflow", "registry.example.com/handwerk@sha256:abc"
	if got := said(t, b, "version"); !strings.Contains(got, "built by  the release workflow\n") {
		t.Errorf("version says\n%s", got)
	}
	objects := bundled(t, func() *bench { s := standard(t); s.image = b.image; return s }(), "--config=../samples/foo/operator.yaml")
	pod := at(objects["Deployment handwerk-foo"], "spec", "template", "spec")
	if got := at(container(pod), "image"); got != b.image {
		t.Errorf("the bundle runs %s, want %s", got, b.image)
	}
}

func TestAReleaseHasAnImage(t *testing.T) {
	for name, tt := range map[string]struct {
		of   version
		want string
	}{
		"a release":                    {version{Module: ownModule, Version: "v1.2.3"}, "ghcr.io/handwerk-dev/handwerk:v1.2.3"},
		"a candidate of a release":     {version{Module: ownModule, Version: "v1.2.3-rc.1"}, "ghcr.io/handwerk-dev/handwerk:v1.2.3-rc.1"},
		"a commit between releases":    {version{Module: ownModule, Version: "v1.2.4-0.20260102030405-abcdefabcdef"}, "handwerk:dev"},
		"a release with changes":       {version{Module: ownModule, Version: "v1.2.3+dirty"}, "handwerk:dev"},
		"a checkout":                   {version{Module: ownModule, Version: "devel"}, "handwerk:dev"},
		"a release of another program": {version{Module: "example.com/mine", Version: "v1.2.3", Handwerk: "v1.2.3"}, "handwerk:dev"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.of.image(); got != tt.want {
				t.Errorf("the image is %s, want %s", got, tt.want)
			}
		})
	}
}
