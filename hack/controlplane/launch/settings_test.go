// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestParseStart(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args    string
		want    Settings
		wantErr string
	}{
		"a folder is enough": {
			args: "--dir /d",
			want: Settings{Dir: "/d", Extra: map[string][]string{}},
		},
		"paths become absolute": {
			args: "--dir d --audit-policy p.yaml",
			want: Settings{
				Dir: filepath.Join(here, "d"), Audit: true, AuditPolicy: filepath.Join(here, "p.yaml"),
				Extra: map[string][]string{},
			},
		},
		"all at once": {
			args: "--dir /d --port 6443 --without kcm,scheduler --without kwok --audit --feature-gates A=true,B=false " +
				"--crds x --crds y --arg kcm=--v=4 --arg kcm=--profiling --arg etcd=--log-level=warn",
			want: Settings{
				Dir: "/d", Port: 6443, Without: []string{ControllerManager, Scheduler, Kwok}, Audit: true,
				CRDs: []string{"x", "y"}, FeatureGates: "A=true,B=false",
				Extra: map[string][]string{ControllerManager: {"--v=4", "--profiling"}, Etcd: {"--log-level=warn"}},
			},
		},
		"full names are fine, too":             {args: "--dir /d --without kube-scheduler", want: Settings{Dir: "/d", Without: []string{Scheduler}, Extra: map[string][]string{}}},
		"the folder is required":               {args: "--audit", wantErr: "--dir is missing"},
		"a port is a port":                     {args: "--dir /d --port 65536", wantErr: "no port"},
		"the API server stays":                 {args: "--dir /d --without kube-apiserver", wantErr: "not one of"},
		"an argument names its component":      {args: "--dir /d --arg --v=4", wantErr: "component=--flag=value"},
		"an argument is a flag":                {args: "--dir /d --arg kcm=v4", wantErr: "component=--flag=value"},
		"an unknown flag is reported":          {args: "--dir /d --nonsense", wantErr: "nonsense"},
		"words that are no flags are reported": {args: "--dir /d extra", wantErr: `"extra"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseStart(strings.Fields(test.args), io.Discard)
			if test.wantErr != "" {
				var wrong usageError
				if !errors.As(err, &wrong) || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error is %v, want a usage error with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	var out bytes.Buffer
	if _, err := ParseStart([]string{"--help"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("error is %v, want flag.ErrHelp", err)
	}
	for _, name := range []string{"dir", "port", "without", "audit", "audit-policy", "feature-gates", "crds", "arg"} {
		if !strings.Contains(out.String(), "-"+name+" ") && !strings.Contains(out.String(), "-"+name+"\n") {
			t.Errorf("help does not have -%s:\n%s", name, &out)
		}
	}
}

func TestMainExitCodes(t *testing.T) {
	tests := map[string]struct {
		args []string
		want int
	}{
		"help is a success":             {[]string{"--help"}, 0},
		"help of start is a success":    {[]string{"start", "-h"}, 0},
		"versions need no components":   {[]string{"version"}, 0},
		"an unknown command is misuse":  {[]string{"stop"}, 2},
		"a component that is not there": {[]string{"etcd"}, 2},
		"start without folder":          {[]string{"start"}, 2},
		"start without components":      {[]string{"start", "--dir", filepath.Join(t.TempDir(), "d")}, 1},
	}
	t.Setenv("KUBEBUILDER_ASSETS", "")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Main(test.args, nil); got != test.want {
				t.Errorf("exit code is %d, want %d", got, test.want)
			}
		})
	}
}
