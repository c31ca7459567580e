// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox/cases"
)

// beginner is a bench in a folder of its own, with the stock actions.
func beginner(t *testing.T, answers ...string) *bench {
	t.Helper()
	t.Chdir(t.TempDir())
	b := newBench(t)
	b.load, b.parse, b.registry = config.Load, config.Parse, handlers.Standard()
	b.In = strings.NewReader(strings.Join(answers, "\n") + "\n")
	b.asks = func(io.Reader) bool { return len(answers) > 0 }
	return b
}

func TestInitWritesAnOperator(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args    string
		answers []string
		folder  string
	}{
		"webapp":   {args: "init webapp --resource webapps.v1alpha1.example.com --kind WebApp --child Deployment,Service", folder: "webapp"},
		"smallest": {args: "init --resource webapps.v1alpha1.example.com --kind WebApp --child configmap --dir there", folder: "there"},
		"everything": {
			args:   "init all --resource policies.v1.apps.example.k8s.io --kind Policy --child " + strings.Join(childKinds(), " --child "),
			folder: "all",
		},
		"machine":          {args: "init --resource webapps.v1.example.com --child Deployment,Ingress --machine", folder: "webapp"},
		"machine-smallest": {args: "init --resource webapps.v1.example.com --child ConfigMap --machine", folder: "webapp"},
		"without-a-kind":   {args: "init --resource policies.v1.example.com --child ConfigMap", folder: "policy"},
		"asked": {
			args:    "init",
			answers: []string{"webapps", "webapps.v1.example.com", "webApp", "", "Deploymnt", "Deployment, Ingress", "Web App", ""},
			folder:  "webapp",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := beginner(t, test.answers...)
			got := said(t, b, test.args)
			for _, file := range []string{"operator.yaml", "crd.yaml", "example.yaml", "operator_test.yaml"} {
				data, err := os.ReadFile(filepath.Join(test.folder, file))
				if err != nil {
					t.Fatalf("%v\n%s", err, got)
				}
				got += fmt.Sprintf("-- %s --\n%s", file, data)
			}
			mustValidate(t, b, test.folder)
			cases.Run(t, test.folder, handlers.Standard())
			t.Chdir(here)
			golden(t, "init-"+name+".golden", got)
		})
	}
}

// mustValidate fails unless what was written is good, and the example is of the CRD's kind.
func mustValidate(t *testing.T, b *bench, folder string) {
	t.Helper()
	op, err := config.Load([]string{folder}, handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	if faults, warnings, err := config.Check(op); len(faults)+len(warnings) > 0 || err != nil {
		t.Errorf("the written file is reported: %v, %v, %v", faults, warnings, err)
	}
	var example struct{ APIVersion, Kind string }
	data, err := os.ReadFile(filepath.Join(folder, "example.yaml"))
	if err == nil {
		err = yaml.Unmarshal(data, &example)
	}
	if err != nil {
		t.Fatal(err)
	}
	crds := crdsOf(op)
	if len(crds) != 1 {
		t.Fatalf("there are %d CRDs", len(crds))
	}
	spec := crds[0]["spec"].(map[string]any)
	version := spec["versions"].([]any)[0].(map[string]any)["name"]
	if want := fmt.Sprintf("%v/%v", spec["group"], version); example.APIVersion != want || example.Kind != spec["names"].(map[string]any)["kind"] {
		t.Errorf("the example is a %s of %s", example.Kind, example.APIVersion)
	}
	b.out.text.Reset()
	if code := b.execute(t.Context(), []string{"crd", "--config", filepath.Join(folder, "operator.yaml")}); code != exitOK {
		t.Fatal(b.err.String())
	}
	written, err := os.ReadFile(filepath.Join(folder, "crd.yaml"))
	if err != nil || string(written) != b.out.String() {
		t.Errorf("crd.yaml is not what operator crd prints (%v)", err)
	}
}

// TestTheCasesOfThePageRunBesideWhatInitWrites runs the first cases of docs/testing.md, as a reader would who has the operator that the
// page names.
func TestTheCasesOfThePageRunBesideWhatInitWrites(t *testing.T) {
	page := pageAt(t, "../docs/testing.md")
	_, text, found := strings.Cut(page, "```yaml\n")
	text, _, _ = strings.Cut(text, "```\n")
	init := typed.FindStringSubmatch(page[strings.Index(page, "`operator init"):])
	if !found || init == nil {
		t.Fatal("docs/testing.md has no cases, or does not say how their operator is written")
	}
	b := beginner(t)
	if code := b.execute(t.Context(), strings.Fields(init[1])); code != exitOK {
		t.Fatal(b.err.String())
	}
	file := filepath.Join("webapp", "page_test.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cases.Run(t, file, handlers.Standard())
}

func TestInitRefuses(t *testing.T) {
	const good = "init --resource webapps.v1.example.com --kind WebApp "
	for name, test := range map[string]struct{ args, want string }{
		"without a terminal":           {"init", "--resource is required without a terminal"},
		"a resource without version":   {"init --resource webapps.example.com --kind WebApp", "has no version, or no group of its own"},
		"a resource of the core":       {"init --resource webapps --kind WebApp", "has no version, or no group of its own"},
		"a kind in lower case":         {"init --resource webapps.v1.example.com --kind webApp", "want CamelCase"},
		"a kind of Kubernetes":         {"init --resource webapps.v1.example.com --kind Deployment", "a kind of Kubernetes already"},
		"a child it has no text for":   {good + "--child Deploymnet", `did you mean "Deployment"?`},
		"a child like none":            {good + "--child Frobnicator", "want some of ConfigMap, Deployment"},
		"a child twice":                {good + "--child Deployment,deployment", "Deployment is there twice"},
		"an invalid name":              {"init Web_App --resource webapps.v1.example.com --kind WebApp", "is not a name for an operator"},
		"two names":                    {"init a b", `unknown argument "b"`},
		"a file that is there":         {good + "--dir there", "there/example.yaml is there already (overwrite it with --force)"},
		"a folder that cannot be made": {good + "--dir there/example.yaml", "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			b := beginner(t)
			if err := os.MkdirAll("there", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile("there/example.yaml", []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			code := b.execute(t.Context(), strings.Fields(test.args))
			if code == exitOK || !strings.Contains(b.err.String(), test.want) {
				t.Errorf("exit code %d, want %q in %s", code, test.want, b.err.String())
			}
			files, _ := filepath.Glob("*/*")
			if data, _ := os.ReadFile("there/example.yaml"); len(files) != 1 || string(data) != "mine" {
				t.Errorf("files were written: %v", files)
			}
		})
	}
}

func TestInitOverwritesWhenForced(t *testing.T) {
	b := beginner(t)
	for _, args := range []string{"init --resource webapps.v1.example.com --kind WebApp", "init --resource webapps.v2.example.com --kind WebApp --force"} {
		if code := b.execute(t.Context(), strings.Fields(args)); code != exitOK {
			t.Fatal(b.err.String())
		}
	}
	if data, err := os.ReadFile("webapp/example.yaml"); err != nil || !strings.Contains(string(data), "example.com/v2") {
		t.Errorf("got %s (%v)", data, err)
	}
}

func TestInitAsksUntilThereIsNoAnswer(t *testing.T) {
	b := beginner(t, "webapps")
	if code := b.execute(t.Context(), []string{"init"}); code != exitUsage || !strings.Contains(b.err.String(), "there was no answer") {
		t.Errorf("exit code %d: %s", code, b.err.String())
	}
}

func TestKindsAreGuessed(t *testing.T) {
	for resource, want := range map[string]string{"webapps.v1.example.com": "Webapp", "policies.v1.example.com": "Policy", "s.v1.x.y": "Kind"} {
		if got := guessKind(resource); got != want {
			t.Errorf("guessKind(%q) = %q, want %q", resource, got, want)
		}
	}
}
