// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"text/template"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

//go:embed beginning/*.tmpl
var beginningFiles embed.FS

var (
	// unreleased matches versions that module proxies do not serve, such as v0.0.0-20260102150405-0123456789ab of a
	// commit.
	unreleased = regexp.MustCompile(`^$|^[^v]|[0-9]{14}-[0-9a-f]{12}|\+`)
	goLine     = regexp.MustCompile(`(?m)^go (\S+)$`)
	// requirement matches a requirement in go.mod, in a block or on its own.
	requirement = regexp.MustCompile(`(?m)^(?:require )?[ \t]*([^\s()]+\.[^\s()]+) (v[0-9]\S+)`)
	toolchain   = regexp.MustCompile(`go([0-9]+\.[0-9]+(?:\.[0-9]+)?)`)
)

// checkGo reports flags that need --go, or exclude it.
func (f *initFlags) checkGo() error {
	switch {
	case f.replace != "" && !f.golang:
		return errors.New("--replace is for --go")
	case f.golang && f.machine:
		return errors.New("--machine is for an operator in YAML (in Go it is dsl.Resource.Machine)")
	case f.golang && f.github:
		return errors.New("--github is for an operator in YAML")
	case f.golang && len(f.children) > 0:
		return errors.New("--child is for an operator in YAML (in Go the handler makes what it wants)")
	}
	return nil
}

// initGo writes a Go module.
func (p *program) initGo(f *initFlags, handwerk string) error {
	name, err := dsl.ParseResourceName(f.resource)
	if err != nil {
		return err
	}
	data := beginningData{
		Name: f.name, Kind: f.kind, Resource: f.resource, Plural: name.Resource, APIVersion: name.Group + "/" + name.Version,
		Go: true, Program: "go run .",
	}
	module := goModule{path: name.Group + "/" + f.name, handwerk: handwerk, dir: f.dir, replace: f.replace}
	files, err := module.files()
	if err != nil {
		return err
	}
	for _, file := range []string{"main.go", "operator.go", "operator_test.go", "operator_test.yaml", "example.yaml", "AGENTS.md"} {
		text, err := fill(file, data)
		if err != nil {
			return fmt.Errorf("making %s: %w", file, err)
		}
		files = append(files, newFile{file, text})
	}
	if err := p.write(f, files); err != nil {
		return err
	}
	module.next(p.Out)
	return nil
}

// beginningData are the values of the templates. Program is the command that starts the operator.
type beginningData struct {
	Name, Kind, Resource, Plural, APIVersion, Program string
	Go                                                bool
	// Existing: the kind is somebody else's.
	Existing bool
}

// fill fills in a template, and formats Go code.
func fill(file string, data beginningData) (string, error) {
	text, err := template.ParseFS(beginningFiles, "beginning/"+file+".tmpl")
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := text.Execute(&out, data); err != nil || filepath.Ext(file) != ".go" {
		return out.String(), err
	}
	formatted, err := format.Source(out.Bytes())
	return string(formatted), err
}

// goModule is the module that init writes.
type goModule struct {
	// path is the path of the module, and dir its folder.
	path, dir string
	// handwerk is the required version of the engine; replace is a checkout that is used instead.
	handwerk, replace string
}

// files returns go.mod and, if it can be known, go.sum.
func (m *goModule) files() ([]newFile, error) {
	if m.replace == "" {
		version := m.handwerk
		if unreleased.MatchString(version) {
			version = "v0.0.0"
		}
		goVersion := append(toolchain.FindStringSubmatch(runtime.Version()), "", "1.26.0")[1]
		return []newFile{{"go.mod", fmt.Sprintf("module %s\n\ngo %s\n\nrequire %s %s\n", m.path, goVersion, ownModule, version)}}, nil
	}
	mod, err := source.ReadFile(filepath.Join(m.replace, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("reading --replace: %w", err)
	}
	if !bytes.HasPrefix(mod, []byte("module "+ownModule+"\n")) {
		return nil, fmt.Errorf("reading --replace: %s is not a checkout of %s", m.replace, ownModule)
	}
	sum, err := source.ReadFile(filepath.Join(m.replace, "go.sum"))
	if err != nil {
		return nil, fmt.Errorf("reading --replace: %w", err)
	}
	text, err := m.replacing(string(mod))
	return []newFile{{"go.mod", text}, {"go.sum", string(sum)}}, err
}

// replacing returns a go.mod that uses a checkout. It takes all other versions from mod, the checkout's go.mod, so
// the module builds without go mod tidy, which needs the network.
func (m *goModule) replacing(mod string) (string, error) {
	place, err := m.place()
	if err != nil {
		return "", err
	}
	goVersion := ""
	if found := goLine.FindStringSubmatch(mod); found != nil {
		goVersion = found[1]
	}
	direct, indirect := fmt.Sprintf("\t%s v0.0.0\n", ownModule), ""
	for _, found := range requirement.FindAllStringSubmatch(mod, -1) {
		if line := "\t" + found[1] + " " + found[2]; found[1] == "k8s.io/api" || found[1] == "k8s.io/apimachinery" {
			direct += line + "\n"
		} else {
			indirect += line + " // indirect\n"
		}
	}
	return fmt.Sprintf("module %s\n\ngo %s\n\nrequire (\n%s)\n\nrequire (\n%s)\n\nreplace %s => %s\n",
		m.path, goVersion, direct, indirect, ownModule, place), nil
}

// place returns the checkout's path for go.mod: relative to the module's folder, unless it was given as an absolute
// path.
func (m *goModule) place() (string, error) {
	out := filepath.Clean(m.replace)
	if !filepath.IsAbs(out) {
		dir, err := filepath.Abs(m.dir)
		if err != nil {
			return "", err
		}
		checkout, err := filepath.Abs(m.replace)
		if err != nil {
			return "", err
		}
		if out, err = filepath.Rel(dir, checkout); err != nil {
			return "", err
		}
		if out = filepath.ToSlash(out); !strings.HasPrefix(out, "../") && out != ".." {
			out = "./" + out
		}
	}
	if strings.ContainsAny(out, " \t\"'`()[]{},") {
		out = strconv.Quote(out)
	}
	return out, nil
}

// next says what to do with the module.
func (m *goModule) next(out io.Writer) {
	fmt.Fprintf(out, "\nnext:\n  cd %s\n", filepath.ToSlash(m.dir))
	switch {
	case m.replace != "":
	case unreleased.MatchString(m.handwerk):
		fmt.Fprintf(out, `  go mod edit -replace %[1]s=CHECKOUT
  go mod tidy
    # CHECKOUT is the path of a checkout of %[1]s:
    # this program was not built from a release of it. init --replace does both.
`, ownModule)
	default:
		fmt.Fprintln(out, "  go mod tidy")
	}
	fmt.Fprint(out, `  go test .                      # in virtual time, without a cluster
  go run . test .                # the cases in operator_test.yaml alone
  go run . crd                   # the CRD, which is made from the type
  go run . run --install-crds    # with your kubeconfig, until Ctrl-C
  kubectl apply -f example.yaml  # in another terminal
`)
}
