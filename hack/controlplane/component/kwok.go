// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !assets

package component

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/kustomize/stage/node/fast"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/consts"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

// runKwok is kwok's own main function, with kwok's default stages added: without any stage kwok refuses to start,
// and reading stages from the cluster would need its CRDs there.
func runKwok() {
	if err := kwok(); err != nil {
		fmt.Fprintf(os.Stderr, "running kwok: %v\n", err)
		os.Exit(1)
	}
}

func kwok() error {
	// cobra would mix in the flags that Kubernetes packages have registered for the whole program,
	// whose --version collides with kwok's.
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ContinueOnError)
	if err := writeStages(filepath.Join(config.WorkDir, consts.ConfigName)); err != nil {
		return err
	}
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := log.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		return err
	}
	command := cmd.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	return command.ExecuteContext(ctx)
}

// writeStages puts the stages where kwok reads its configuration unasked. Its working folder comes
// from the variable KWOK_WORKDIR, which keeps a ~/.kwok/kwok.yaml of the user's out.
func writeStages(path string) error {
	if os.Getenv("KWOK_WORKDIR") == "" {
		return nil
	}
	stages := []string{
		fast.DefaultNodeInit, podfast.DefaultPodReady, podfast.DefaultPodComplete, podfast.DefaultPodDelete,
	}
	if err := os.WriteFile(path, []byte(strings.Join(stages, "\n---\n")), 0o600); err != nil {
		return fmt.Errorf("writing stages: %w", err)
	}
	return nil
}
