// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestThePicturesOfTheReadmeAreCurrent holds that README.md shows the present drawing of the sample, and a recording of play with the
// sample's objects. make pictures renews both.
func TestThePicturesOfTheReadmeAreCurrent(t *testing.T) {
	readme := pageAt(t, "../README.md")
	for _, picture := range []string{"docs/pictures/graph.svg", "docs/pictures/play.svg"} {
		if !strings.Contains(readme, "]("+picture+")") {
			t.Errorf("README.md does not show %s", picture)
		}
	}
	drawn := filepath.Join(t.TempDir(), "graph.svg")
	b := standard(t)
	if code := b.execute(t.Context(), []string{"graph", "--config=../samples/foo", "-o", drawn}); code != exitOK {
		t.Fatal(b.err.String())
	}
	if diff := cmp.Diff(pageAt(t, drawn), pageAt(t, "../docs/pictures/graph.svg")); diff != "" {
		t.Errorf("docs/pictures/graph.svg is not current (make pictures renews it; -drawn +file):\n%s", diff)
	}
	recording, err := os.Open("../docs/pictures/play.svg")
	if err != nil {
		t.Fatal(err)
	}
	defer recording.Close()
	var text strings.Builder
	for in := xml.NewDecoder(recording); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("reading the recording: %v", err)
		}
		if words, is := token.(xml.CharData); is {
			text.Write(words)
		}
	}
	for _, want := range []string{"operator play --config samples/foo --examples", "foos/example-foo", "deployments/example-foo", "replicas ready"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the recording does not have %q", want)
		}
	}
	if strings.Contains(text.String(), "/tmp/") {
		t.Error("the recording has a path of the machine where it was made")
	}
}
