// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// controllerRuntime is the module whose specs run.
const controllerRuntime = "sigs.k8s.io/controller-runtime@v0.25.2"

// slowestPackage is how long the specs of a package may take.
const slowestPackage = 8 * time.Minute

// specPackages are the packages of the module that have integration specs.
func specPackages() []string {
	return []string{
		"client", "cache", "manager", "controller", "builder", "cluster", "source", "handler", "internal/recorder", "internal/controller",
		"controller/controllerutil", "webhook", "metrics/filters", "envtest",
	}
}

// specBinaries are the test binaries of the module, in a folder that stays: building them takes minutes.
type specBinaries struct{ dir string }

// specTests copies the module to a folder of its own.
func specTests(ctx context.Context) (specBinaries, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return specBinaries{}, err
	}
	t := specBinaries{filepath.Join(cache, "handwerk-likeness", filepath.Base(controllerRuntime))}
	if _, err := os.Stat(t.source()); err == nil {
		return t, nil
	}
	source, err := download(ctx, controllerRuntime)
	if err != nil {
		return t, err
	}
	half := t.source() + ".part"
	if err := errors.Join(os.MkdirAll(t.dir, 0o755), os.RemoveAll(half), os.CopyFS(half, os.DirFS(source))); err != nil {
		return t, fmt.Errorf("copying %s: %w", controllerRuntime, err)
	}
	return t, os.Rename(half, t.source())
}

func (t specBinaries) source() string { return filepath.Join(t.dir, "source") }

// build builds the tests of a package, unless they are there.
func (t specBinaries) build(ctx context.Context, name string) (string, error) {
	out := filepath.Join(t.dir, "bin", strings.ReplaceAll(name, "/", "_")+".test")
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	c := exec.CommandContext(ctx, "go", "test", "-vet=off", "-ldflags=-s -w", "-c", "-o", out, "./pkg/"+name)
	c.Dir = t.source()
	if text, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building specs of %s: %w\n%s", name, err, text)
	}
	return out, nil
}

// run runs the specs of a package on a fresh server. Their log is in a folder for scratch files.
func (t specBinaries) run(ctx context.Context, dir, name, binary string, start func(context.Context) (*Server, error)) ([]spec, error) {
	v, err := start(ctx)
	if err != nil {
		return nil, err
	}
	defer v.Stop()
	base := filepath.Join(dir, strings.ReplaceAll(name, "/", "_")+"."+filepath.Base(filepath.Dir(v.Kubeconfig)))
	log, err := os.Create(base + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	limited, cancel := context.WithTimeout(ctx, slowestPackage+time.Minute)
	defer cancel()
	c := exec.CommandContext(limited, binary, "--ginkgo.no-color", "--ginkgo.junit-report="+base+".xml", "--ginkgo.timeout="+slowestPackage.String(),
		"--ginkgo.poll-progress-after=0")
	c.Dir, c.Stdout, c.Stderr = filepath.Join(t.source(), "pkg", name), log, log
	c.Env = append(os.Environ(), "USE_EXISTING_CLUSTER=true", "KUBECONFIG="+v.Kubeconfig)
	err = c.Run()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) { // a failed spec is in the report
		return nil, err
	}
	data, err := os.ReadFile(base + ".xml")
	if err != nil {
		return nil, fmt.Errorf("reading the report: %w; the log is %s", err, log.Name())
	}
	return specsIn(name, data)
}

// specsIn reads the specs of a package from a report in JUnit's form. Skipped ones are left out.
func specsIn(name string, report []byte) (out []spec, err error) {
	type message struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	var content struct {
		Cases []struct {
			Name    string   `xml:"name,attr"`
			Skipped *message `xml:"skipped"`
			Failure *message `xml:"failure"`
			Error   *message `xml:"error"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(report, &content); err != nil {
		return nil, err
	}
	for _, each := range content.Cases {
		if each.Skipped != nil || !strings.HasPrefix(each.Name, "[It]") {
			continue
		}
		why := ""
		for _, failure := range []*message{each.Failure, each.Error} {
			if failure != nil {
				why = strings.Join(strings.Fields(failure.Message+" "+failure.Text), " ")
				why = "failed: " + why[:min(len(why), 200)]
			}
		}
		out = append(out, spec{Package: name, Name: strings.TrimPrefix(each.Name, "[It] "), why: why})
	}
	return out, nil
}
