// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// envAnnotation is the annotation of a flag with the name of its environment variable.
const envAnnotation = "env"

// envName returns the environment variable of a flag.
func envName(flag string) string {
	return "HANDWERK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// addObjectNamespace adds the flag for the namespace of an object. It has no environment variable: that of this name says for which
// namespaces operator run works.
func addObjectNamespace(set *pflag.FlagSet, namespace *string) {
	set.StringVarP(namespace, "namespace", "n", "", "the `namespace` of the object (default that of the context)")
	set.Lookup("namespace").Annotations = map[string][]string{envAnnotation: {}}
}

// documentEnv gives each flag its environment variable and adds it to the flag's help, but for those that have none.
func documentEnv(set *pflag.FlagSet) {
	set.VisitAll(func(f *pflag.Flag) {
		if _, has := f.Annotations[envAnnotation]; has {
			return
		}
		name := envName(f.Name)
		f.Annotations = map[string][]string{envAnnotation: {name}}
		f.Usage += "\n[$" + name + "]"
	})
}

// setFromEnv sets the flags that were not given from their variables. They then count as given.
func setFromEnv(set *pflag.FlagSet, env []string) (err error) {
	set.VisitAll(func(f *pflag.Flag) {
		if err != nil || f.Changed || len(f.Annotations[envAnnotation]) == 0 {
			return
		}
		name := f.Annotations[envAnnotation][0]
		value := lookup(env, name)
		if value == "" {
			return
		}
		if cause := f.Value.Set(value); cause != nil {
			err = fmt.Errorf("invalid value %q for %s: %w", value, name, cause)
			return
		}
		f.Changed = true
	})
	return err
}

// lookup returns a variable's value; empty if it is not set. As in os/exec, the last of several wins.
func lookup(env []string, name string) string {
	value := ""
	for _, entry := range env {
		if key, rest, found := strings.Cut(entry, "="); found && key == name {
			value = rest
		}
	}
	return value
}
