// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/words"
)

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// ask asks a person for missing flags. An empty answer means the value in brackets.
func ask(in io.Reader, out io.Writer, f *initFlags) error {
	answers := bufio.NewScanner(in)
	question := func(text, otherwise string, into *string, check func() error) error {
		for *into == "" {
			fmt.Fprintf(out, "%s [%s]: ", text, otherwise)
			if !answers.Scan() {
				return errors.New("there was no answer")
			}
			if *into = strings.TrimSpace(answers.Text()); *into == "" {
				*into = otherwise
			}
			if err := check(); err != nil {
				fmt.Fprintln(out, err)
				*into = ""
			}
		}
		return nil
	}
	children := strings.Join(f.children, ",")
	steps := []func() error{
		func() error {
			return question("Resource, as plural.version.group", "webapps.v1alpha1.example.com", &f.resource, f.checkResource)
		},
		func() error { return question("Kind of its objects", guessKind(f.resource), &f.kind, f.checkKind) },
		func() error {
			if f.golang {
				return nil
			}
			return question("Kinds of its children, of "+strings.Join(childKinds(), ", "), "Deployment", &children, func() error {
				f.children = strings.FieldsFunc(children, func(r rune) bool { return r == ',' || r == ' ' })
				return f.checkChildren()
			})
		},
		func() error {
			return question("Name of the operator", strings.ToLower(f.kind), &f.name, f.checkName)
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// guessKind derives a kind from a resource's plural name.
func guessKind(resource string) string {
	plural, _, _ := strings.Cut(resource, ".")
	singular := strings.TrimSuffix(plural, "s")
	if stem, is := strings.CutSuffix(plural, "ies"); is {
		singular = stem + "y"
	}
	if singular == "" {
		return "Kind"
	}
	return strings.ToUpper(singular[:1]) + singular[1:]
}

// check reports the first invalid flag.
func (f *initFlags) check() error {
	for _, check := range []func() error{f.checkResource, f.checkKind, f.checkChildren, f.checkName} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (f *initFlags) checkResource() error {
	name, err := dsl.ParseResourceName(f.resource)
	if err == nil && (name.Version == "" || !strings.Contains(name.Group, ".")) {
		return fmt.Errorf("%q has no version, or no group of its own (want plural.version.group, as in webapps.v1alpha1.example.com)", f.resource)
	}
	return err
}

func (f *initFlags) checkKind() error {
	if !camelCase.MatchString(f.kind) {
		return fmt.Errorf("%q is not a kind (want CamelCase, as in WebApp)", f.kind)
	}
	if f.kind == "List" || slices.Contains(childKinds(), f.kind) {
		return fmt.Errorf("%s is a kind of Kubernetes already", f.kind)
	}
	return nil
}

func (f *initFlags) checkChildren() error {
	seen := map[string]bool{}
	for i, kind := range f.children {
		at := slices.IndexFunc(childKinds(), func(known string) bool { return strings.EqualFold(known, kind) })
		if at < 0 {
			hint := "want some of " + strings.Join(childKinds(), ", ")
			if near, found := words.Nearest(kind, childKinds()); found {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			return fmt.Errorf("there is no template for children of kind %q (%s)", kind, hint)
		}
		f.children[i] = childKinds()[at]
		if seen[f.children[i]] {
			return fmt.Errorf("%s is there twice", f.children[i])
		}
		seen[f.children[i]] = true
	}
	return nil
}

func (f *initFlags) checkName() error {
	if faults := validation.IsDNS1123Label(f.name); len(faults) > 0 {
		return fmt.Errorf("%q is not a name for an operator: %s", f.name, faults[0])
	}
	return nil
}
