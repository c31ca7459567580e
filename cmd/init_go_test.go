// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const checkoutMod = `module github.com/handwerk-dev/handwerk

go 1.26.0

require github.com/go-logr/logr v1.4.4

require (
	k8s.io/api v0.37.2
	k8s.io/apimachinery v0.37.2 // as the others
	sigs.k8s.io/structured-merge-diff/v6 v6.4.2 // indirect
)

exclude example.com/bad v1.0.0
`

// checkout writes what init reads of a checkout.
func checkout(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": checkoutMod, "go.sum": "k8s.io/api v0.37.2 h1:abc=\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestInitWritesAGoModule holds what people see; that it builds and passes its test, package handlers tests.
func TestInitWritesAGoModule(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	const webapps = " --resource webapps.v1alpha1.example.com --kind WebApp"
	for name, test := range map[string]struct {
		args    string
		answers []string
		folder  string
		files   string
	}{
		"go":            {args: "init --go webapp" + webapps + " --replace handwerk", folder: "webapp", files: "go.mod go.sum main.go operator.go operator_test.go operator_test.yaml example.yaml"},
		"go-unreplaced": {args: "init --go webapp" + webapps, folder: "webapp", files: "go.mod"},
		"go-asked": {
			args: "init --go --replace ./handwerk/", answers: []string{"policies.v1.example.com", "", "rules"}, folder: "rules", files: "go.mod",
		},
		"go-in-a-folder": {args: "init --go deep/down/webapp" + webapps + " --replace handwerk", folder: "deep/down/webapp", files: "go.mod"},
		"go-here":        {args: "init --go ." + webapps + " --replace handwerk", folder: ".", files: "go.mod"},
	} {
		t.Run(name, func(t *testing.T) {
			b := beginner(t, test.answers...)
			checkout(t, "handwerk")
			got := said(t, b, test.args)
			for file := range strings.FieldsSeq(test.files) {
				data, err := os.ReadFile(filepath.Join(test.folder, file))
				if err != nil {
					t.Fatalf("%v\n%s", err, got)
				}
				got += fmt.Sprintf("-- %s --\n%s", file, data)
			}
			if !strings.Contains(test.args, "--replace") { // then it is that of the toolchain
				got = regexp.MustCompile(`(?m)^go [0-9.]+$`).ReplaceAllString(got, "go THIS.VERSION")
			}
			t.Chdir(here)
			golden(t, "init-"+name+".golden", got)
		})
	}
}

func TestAGoModuleRequiresTheReleaseOfItsProgram(t *testing.T) {
	for version, want := range map[string]struct{ required, next string }{
		"v1.4.0":                               {"v1.4.0", "  go mod tidy\n  go test .  "},
		"v1.5.0-rc.1":                          {"v1.5.0-rc.1", "  go mod tidy\n  go test .  "},
		"devel":                                {"v0.0.0", "  go mod edit -replace"},
		"":                                     {"v0.0.0", "  go mod edit -replace"},
		"v0.0.0-20260102150405-0123456789ab":   {"v0.0.0", "  go mod edit -replace"},
		"v1.4.1-0.20260102150405-0123456789ab": {"v0.0.0", "  go mod edit -replace"},
		"v1.4.0+dirty":                         {"v0.0.0", "  go mod edit -replace"},
	} {
		b := beginner(t)
		f := &initFlags{name: "webapp", dir: "webapp", resource: "webapps.v1.example.com", kind: "WebApp", golang: true}
		if err := b.initGo(f, version); err != nil {
			t.Fatal(err)
		}
		mod, err := os.ReadFile("webapp/go.mod")
		if line := "require " + ownModule + " " + want.required + "\n"; err != nil || !strings.HasSuffix(string(mod), line) {
			t.Errorf("of %q it requires %s (%v)", version, mod, err)
		}
		if got := b.out.String(); !strings.Contains(got, want.next) {
			t.Errorf("of %q it says %s", version, got)
		}
	}
}

func TestInitOfAGoModuleRefuses(t *testing.T) {
	const good = "init --go webapp --resource webapps.v1.example.com --kind WebApp "
	for name, test := range map[string]struct{ args, want string }{
		"a checkout without --go":                {"init webapp --resource webapps.v1.example.com --replace handwerk", "error: --replace is for --go\n"},
		"children":                               {good + "--child Service", "error: --child is for an operator in YAML (in Go the handler makes what it wants)\n"},
		"a machine":                              {good + "--machine", "error: --machine is for an operator in YAML (in Go it is dsl.Resource.Machine)\n"},
		"a checkout that is not there":           {good + "--replace nowhere", "error: reading --replace: stat nowhere/go.mod: no such file or directory\n"},
		"a checkout of something else":           {good + "--replace other", "error: reading --replace: other is not a checkout of github.com/handwerk-dev/handwerk\n"},
		"a checkout without go.sum":              {good + "--replace half", "error: reading --replace: stat half/go.sum: no such file or directory\n"},
		"a file that is there":                   {good + "--replace handwerk --dir handwerk", "error: handwerk/go.mod is there already (overwrite it with --force)\n"},
		"no resource, and no terminal to ask at": {"init --go webapp", "error: --resource is required without a terminal\n"},
		"a folder whose name is none":            {strings.Replace(good, "webapp", "deep/Web_App", 1), "error: \"Web_App\" is not a name for an operator"},
	} {
		t.Run(name, func(t *testing.T) {
			b := beginner(t)
			checkout(t, "handwerk")
			checkout(t, "half")
			checkout(t, "other")
			if err := os.Remove("half/go.sum"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile("other/go.mod", []byte("module example.com/other\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			code := b.execute(t.Context(), strings.Fields(test.args))
			if got := b.err.String(); code == exitOK || !strings.HasPrefix(got, test.want) || b.out.String() != "" {
				t.Errorf("exit code %d, want %q in %s%s", code, test.want, b.out.String(), got)
			}
			if files, _ := filepath.Glob("*/*.go"); len(files) > 0 {
				t.Errorf("files were written: %v", files)
			}
		})
	}
}

func TestACheckoutIsNamedFromTheModuleOn(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, test := range []struct{ dir, replace, want string }{
		{"webapp", "handwerk", "../handwerk"},
		{"webapp", "webapp/handwerk", "./handwerk"},
		{"webapp", "..", "../.."},
		{"webapp", ".", ".."},
		{"a/b", "../hand werk", `"../../../hand werk"`},
		{"webapp", "/src/handwerk/", "/src/handwerk"},
	} {
		got, err := (&goModule{dir: test.dir, replace: test.replace}).place()
		if err != nil || got != test.want {
			t.Errorf("%s from %s is %s, want %s (%v)", test.replace, test.dir, got, test.want, err)
		}
	}
}
