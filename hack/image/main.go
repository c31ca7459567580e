// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Command image builds a container image of a Go program without a container engine, and its bill of materials.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

// options are the options of the command line.
type options struct {
	// dir is the folder of the program's module; main is the program's package, relative to it.
	dir, main string
	// name is the image's name with its tag.
	name string
	// output is the archive, sbom the bill of materials.
	output, sbom string
	platforms    string
	// The rest are labels. An empty one gets its value from the module and from git, or is left out.
	source, version, licenses, title string
	// arguments are the default arguments of the program.
	arguments []string
}

func main() {
	var o options
	flags := flag.NewFlagSet("image", flag.ExitOnError)
	flags.StringVar(&o.dir, "dir", ".", "the folder of the program's module")
	flags.StringVar(&o.main, "main", "./cmd/operator", "the program's package, relative to -dir")
	flags.StringVar(&o.name, "name", "handwerk:dev", "the image's name:tag")
	flags.StringVar(&o.output, "o", filepath.Join("bin", "image.tar"), "the archive to write; the bill of materials is beside it, with the ending .spdx.json")
	flags.StringVar(&o.platforms, "platforms", "linux/amd64,linux/arm64", "the platforms; Docker's classic image store loads the first alone")
	flags.StringVar(&o.source, "source", "", "the URL of the source (default: the module's path, if it is on github.com or gitlab.com)")
	flags.StringVar(&o.version, "version", "", "the version (default: what git describe says)")
	flags.StringVar(&o.licenses, "licenses", "", "the program's SPDX licence expression")
	flags.StringVar(&o.title, "title", "", "the title (default: the last element of the package's path)")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: image [FLAGS] [-- ARGUMENTS OF THE PROGRAM]")
		flags.PrintDefaults()
	}
	_ = flags.Parse(os.Args[1:]) // it exits
	o.arguments = flags.Args()
	o.sbom = strings.TrimSuffix(o.output, ".tar") + ".spdx.json"
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.build(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Printf("%s: %s\n%s: its bill of materials\n", o.output, o.name, o.sbom)
}
