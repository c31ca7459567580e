// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/containerd/platforms"
	"github.com/google/go-cmp/cmp"
)

// TestContainerdTakesTheArchive imports an archive as ctr images import does, and with it kind, k3d and Docker's image store of
// containerd: all blobs of both platforms come into the store, under the image's whole name.
func TestContainerdTakesTheArchive(t *testing.T) {
	o := built(t, checkout(t, small), nil)
	store, err := local.NewStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(o.output)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	index, err := archive.ImportIndex(t.Context(), store, in)
	if err != nil {
		t.Fatalf("importing archive: %v", err)
	}
	named, err := images.Children(t.Context(), store, index)
	if err != nil {
		t.Fatalf("reading index: %v", err)
	}
	var names []string
	for _, image := range named {
		names = append(names, image.Annotations[images.AnnotationImageName])
	}
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		available, _, _, missing, err := images.Check(t.Context(), store, index, platforms.OnlyStrict(platforms.MustParse(platform)))
		if !available || len(missing) > 0 || err != nil {
			t.Errorf("%s: the store has not %v (%v)", platform, missing, err)
		}
	}
	if diff := cmp.Diff([]string{"docker.io/shop/orders:v1"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
