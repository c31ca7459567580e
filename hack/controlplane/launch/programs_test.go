// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFindPrograms(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	full := t.TempDir()
	for _, name := range []string{Etcd, APIServer, ControllerManager} {
		if err := os.WriteFile(filepath.Join(full, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	builtin := []string{Etcd, APIServer, ControllerManager, Scheduler, Kwok}
	tests := map[string]struct {
		programs  Programs
		component string
		want      []string
		wantErr   string
	}{
		"built in":                             {Programs{Builtin: builtin}, Etcd, []string{self, Etcd}, ""},
		"assets come first":                    {Programs{builtin, full}, Etcd, []string{filepath.Join(full, Etcd)}, ""},
		"assets may have the kcm":              {Programs{builtin, full}, ControllerManager, []string{filepath.Join(full, ControllerManager)}, ""},
		"assets may lack the scheduler":        {Programs{builtin, full}, Scheduler, []string{self, Scheduler}, ""},
		"assets may not lack etcd":             {Programs{builtin, t.TempDir()}, Etcd, nil, "KUBEBUILDER_ASSETS is"},
		"a small build has no etcd":            {Programs{}, Etcd, nil, "set KUBEBUILDER_ASSETS"},
		"a small build has no kwok":            {Programs{}, Kwok, nil, "--without"},
		"neither small build nor assets do it": {Programs{Assets: full}, Scheduler, nil, "--without"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.programs.Find(test.component)
			if (err != nil) != (test.wantErr != "") || (err != nil && !strings.Contains(err.Error(), test.wantErr)) {
				t.Fatalf("error is %v, want %q", err, test.wantErr)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
