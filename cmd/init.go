// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/handwerk-dev/handwerk/dsl/source"
)

// initFlags are the flags of init.
type initFlags struct {
	name, resource, kind, dir string
	children                  []string
	machine, force            bool
	// golang: init writes a Go module, which uses the checkout replace.
	golang  bool
	replace string
	// sample: init writes the files of the sample of this name.
	sample string
	// add is a resource that init adds to an operator that exists.
	add string
	// github: init also writes a GitHub workflow.
	github bool
	// existing is a file with the CRD of somebody else's kind, for which init writes an operator.
	existing string
}

// newFile is a file that init writes.
type newFile struct{ name, text string }

func (p *program) initCommand() *cobra.Command {
	f := &initFlags{}
	c := &cobra.Command{
		Use:   "init [NAME|DIR]",
		Short: "Write the beginning of an operator",
		Long: `Write the beginning of an operator into a folder: operator.yaml with a schema, the
children of an object and its status, crd.yaml with its CRD, example.yaml with an
object, operator_test.yaml with a case that tests it, and AGENTS.md for agents. With --go
it is a Go module: a type with its CRD, a handler for it, and tests in virtual time.
On a terminal, init asks for missing flags.`,
		Example: `  operator init
  operator init webapp --resource webapps.v1alpha1.example.com --kind WebApp --child Deployment,Service
  operator init webapp --resource webapps.v1alpha1.example.com --machine
  operator init webapp --add crons.v1alpha1.example.com --child CronJob
  operator init --existing certificates.yaml
  operator init --go webapp --resource webapps.v1alpha1.example.com --kind WebApp --replace ../handwerk`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("unknown argument %q", args[1])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				f.called(args[0])
			}
			if f.sample != "" {
				return p.initSample(f, c)
			}
			if f.add != "" {
				if err := f.completeAdd(); err != nil {
					return &usageError{command: c.CommandPath(), err: err}
				}
				return p.initAdd(f)
			}
			if f.existing != "" {
				if err := f.checkExisting(); err != nil {
					return &usageError{command: c.CommandPath(), err: err}
				}
				return p.initExisting(f)
			}
			if err := p.completeInit(f); err != nil {
				return &usageError{command: c.CommandPath(), err: err}
			}
			if f.golang {
				return p.initGo(f, selfVersion().Handwerk)
			}
			return p.init(f)
		},
	}
	f.addFlags(c.Flags())
	p.addSample(f, c)
	completeChoices(c)
	return c
}

func (f *initFlags) addFlags(set *pflag.FlagSet) {
	set.StringVar(&f.resource, "resource", "",
		"watch this `resource`: plural.version.group, as in webapps.v1alpha1.example.com")
	set.StringVar(&f.kind, "kind", "", "what an object is, in `CamelCase`, as in WebApp\n(default the resource in the singular)")
	set.StringSliceVar(&f.children, "child", nil,
		"make these `kinds` of children: "+strings.Join(childKinds(), ", ")+"\n(default Deployment)")
	set.BoolVar(&f.machine, "machine", false, "begin with a state machine: objects start, run, or do not get there in time")
	set.BoolVar(&f.golang, "go", false, "write a Go module: a type, a handler in Go and a test")
	set.StringVar(&f.replace, "replace", "",
		"have the Go module use this `checkout` of Handwerk, with what it requires")
	set.StringVar(&f.add, "add", "",
		"add this `resource` to the operator.yaml that is in the folder; its comments stay")
	set.StringVar(&f.existing, "existing", "",
		"write an operator for a kind that is there already, whose CRD is in this `FILE`")
	set.BoolVar(&f.github, "github", false, "also write a GitHub workflow that validates and tests the operator, and\ncan comment on pull requests what they would change in a cluster")
	set.StringVar(&f.dir, "dir", "", "write into this `folder` (default the operator's name)")
	set.BoolVar(&f.force, "force", false, "overwrite files that are there")
}

// called takes the argument: a name, or a folder whose last element is the name.
func (f *initFlags) called(arg string) {
	if dir := filepath.Clean(arg); dir != arg || strings.ContainsAny(arg, `./\`) {
		f.dir, arg = cmp.Or(f.dir, dir), filepath.Base(dir)
	}
	if strings.Trim(arg, ".") != "" {
		f.name = arg
	}
}

// completeInit asks for missing flags, or reports them, and checks all flags.
func (p *program) completeInit(f *initFlags) error {
	if err := f.checkGo(); err != nil {
		return err
	}
	silent := p.In == nil || !p.asks(p.In)
	switch {
	case f.resource == "" && silent:
		return errors.New("--resource is required without a terminal")
	case f.kind == "" && silent:
		f.kind = guessKind(f.resource)
	case f.resource == "" || f.kind == "":
		if err := ask(p.In, p.Out, f); err != nil {
			return err
		}
	}
	if len(f.children) == 0 {
		f.children = []string{"Deployment"}
	}
	f.name = cmp.Or(f.name, strings.ToLower(f.kind))
	f.dir = cmp.Or(f.dir, f.name)
	return f.check()
}

// completeAdd checks the flags beside --add, and completes them.
func (f *initFlags) completeAdd() error {
	if f.golang || f.resource != "" || f.replace != "" || f.github {
		return errors.New("--add is for an operator in YAML; it goes with --kind, --child, --machine, --dir and --force alone")
	}
	f.resource = f.add
	f.kind = cmp.Or(f.kind, guessKind(f.resource))
	f.dir = cmp.Or(f.dir, f.name, ".")
	if len(f.children) == 0 {
		f.children = []string{"Deployment"}
	}
	return cmp.Or(f.checkResource(), f.checkKind(), f.checkChildren())
}

// init writes the files. It first loads the configuration, to be sure that it is valid.
func (p *program) init(f *initFlags) error {
	text := render(f)
	op, err := p.parse(filepath.Join(f.dir, "operator.yaml"), []byte(text), p.registry)
	if err != nil {
		// The places in the error are in a text that does not exist yet; the flags are the cause.
		return fmt.Errorf("making the configuration: %w", plainly(err))
	}
	var crds bytes.Buffer
	if err := writeYAML(&crds, crdsOf(op)); err != nil {
		return fmt.Errorf("writing crd.yaml: %w", err)
	}
	plural, _, _ := strings.Cut(f.resource, ".")
	agents, err := fill("AGENTS.md", beginningData{Name: f.name, Kind: f.kind, Resource: f.resource, Plural: plural, Program: "operator"})
	if err != nil {
		return fmt.Errorf("making AGENTS.md: %w", err)
	}
	files := []newFile{
		{"operator.yaml", text}, {"crd.yaml", crds.String()}, {"example.yaml", example(f)}, {"operator_test.yaml", firstCase(f)}, {"AGENTS.md", agents},
	}
	if f.github {
		files = append(files, workflowOf(f.name))
	}
	if err := p.write(f, files); err != nil {
		return err
	}
	p.tellNext(f.dir, " --install-crds")
	return nil
}

// tellNext says what comes after init. The flags are more flags of operator run.
func (p *program) tellNext(dir, flags string) {
	image := ""
	if p.defaultImage() == localImage {
		image = " --image IMAGE"
	}
	fmt.Fprintf(p.Out, `
next, play with it; no cluster is needed:
  operator play --config %[1]s --examples
change %[1]s/operator.yaml meanwhile, and see what becomes of it. Check it, and test it:
  operator validate --config %[1]s/operator.yaml
  operator test %[1]s
run it here with your kubeconfig, until Ctrl-C:
  operator run --config %[1]s/operator.yaml%[2]s
in another terminal, make an object, and see its children come:
  kubectl apply -f %[1]s/example.yaml
and when it does what you want, run it in the cluster (docs/deploy.md):
  operator bundle --config %[1]s/operator.yaml --create-namespace%[3]s | kubectl apply --server-side -f -
`, filepath.ToSlash(dir), flags, image)
}

// write writes the files, unless one of them exists.
func (p *program) write(f *initFlags, files []newFile) error {
	if err := checkMissing(f, files); err != nil {
		return err
	}
	if err := writeFiles(f.dir, files); err != nil {
		return err
	}
	for _, file := range files {
		fmt.Fprintln(p.Out, "wrote", filepath.Join(f.dir, file.name))
	}
	return nil
}

// checkMissing returns an error if one of the files exists and may not be overwritten.
func checkMissing(f *initFlags, files []newFile) error {
	for _, file := range files {
		if _, err := os.Stat(filepath.Join(f.dir, file.name)); err == nil && !f.force {
			return fmt.Errorf("%s is there already (overwrite it with --force)", filepath.Join(f.dir, file.name))
		}
	}
	return nil
}

// writeFiles writes files into a folder. If one cannot be written, the others become what they were.
func writeFiles(dir string, files []newFile) error {
	var undo []func() error
	write := func(file newFile) error {
		name := filepath.Join(dir, file.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		before, err := os.ReadFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			undo = append(undo, func() error { return os.Remove(name) })
		case err != nil:
			return err
		default:
			undo = append(undo, func() error { return os.WriteFile(name, before, 0o644) })
		}
		return os.WriteFile(name, []byte(file.text), 0o644)
	}
	for _, file := range files {
		if err := write(file); err != nil {
			for _, back := range slices.Backward(undo) {
				_ = back() // the first error is the one to report
			}
			return err
		}
	}
	return nil
}

// plainly returns the faults of a configuration without their places.
func plainly(err error) error {
	list, ok := errors.AsType[source.Faults](err)
	if !ok {
		return err
	}
	var out []error
	for _, f := range list {
		out = append(out, errors.New(strings.TrimPrefix(f.Path+": "+f.Message, ": ")))
	}
	return errors.Join(out...)
}

// terminalWidth returns the number of columns of a terminal; zero for other writers.
func terminalWidth(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// isTerminal reports whether a reader or a writer is a terminal.
func isTerminal(in any) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
