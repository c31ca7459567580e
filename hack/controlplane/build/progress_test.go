// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestProgress(t *testing.T) {
	counted := func() (int, error) { return 250, nil }
	tests := map[string]struct {
		live   bool
		count  func() (int, error)
		report string
		want   string
	}{
		"nothing to build says nothing": {count: counted},
		"a line now and then": {
			count:  counted,
			report: strings.Repeat("k8s.io/api\n", 205),
			want: "building 1/250 packages: k8s.io/api\nbuilding 100/250 packages: k8s.io/api\n" +
				"building 200/250 packages: k8s.io/api\n",
		},
		"one line on a terminal": {
			live: true, count: counted, report: "fmt\nos\n",
			want: "\r\x1b[Kbuilding 1/250 packages: fmt\r\x1b[Kbuilding 2/250 packages: os\n",
		},
		"mistakes are passed on": {
			live: true, count: counted, report: "fmt\n# example.com/x\n./x.go:1:2: undefined: y",
			want: "\r\x1b[Kbuilding 1/250 packages: fmt\n# example.com/x\n./x.go:1:2: undefined: y\n",
		},
		"downloads are shown": {
			count: counted, report: "go: downloading example.com/x v1.0.0\n",
			want: "downloading module 1: example.com/x v1.0.0\n",
		},
		"without a total there is the count": {
			count:  func() (int, error) { return 0, errors.New("no list") },
			report: "fmt\n", want: "building 1 packages: fmt\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p := newProgress(&out, test.live, test.count)
			for part := range slices.Chunk([]byte(test.report), 7) { // parts end anywhere
				p.Write(part)
			}
			p.finish()
			if out.String() != test.want {
				t.Errorf("got  %q\nwant %q", out.String(), test.want)
			}
		})
	}
}

func TestLinkerFlags(t *testing.T) {
	got := linkerFlags("v1.37.1")
	for _, want := range []string{"version.gitVersion=v1.37.1", "version.gitMajor=1", "version.gitMinor=37"} {
		if strings.Count(got, want) != 2 {
			t.Errorf("%s is not there twice: %s", want, got)
		}
	}
}
