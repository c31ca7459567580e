// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"go.yaml.in/yaml/v3"
)

// Servers starts the servers that a suite compares.
type Servers struct {
	// Dir is a folder for scratch files of the suite.
	Dir string
	// Remeasure says that a suite is to run its cases on a real server, too, and not to trust what is known.
	Remeasure bool
	// Parallel is how many cases may run at once.
	Parallel int
	// Fuzzing are the settings of the suite fuzz.
	Fuzzing fuzzing

	root, operator string
	only           *regexp.Regexp
}

// Selected reports whether the case of this name is to run.
func (s Servers) Selected(name string) bool { return s.only.MatchString(name) }

// Kubectl is the path of a kubectl of the version of the real server.
func (s Servers) Kubectl() string { return filepath.Join(s.root, "bin/kubectl") }

// prepare builds the operator unless a program was named.
func (s *Servers) prepare(ctx context.Context) error {
	if s.operator != "" {
		var err error
		s.operator, err = filepath.Abs(s.operator)
		return err
	}
	s.operator = filepath.Join(s.Dir, "operator")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", s.operator, "./cmd/operator")
	build.Dir = s.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building operator: %w\n%s", err, out)
	}
	return nil
}

// Server is a server that runs.
type Server struct {
	// Kubeconfig is a file with all rights.
	Kubeconfig string
	// URL is where it listens, and Token that of the user of the kubeconfig.
	URL, Token string

	process *exec.Cmd
	ended   chan error
}

// Sandbox starts a fresh sandbox. The arguments are flags of operator sandbox. Stop stops it.
func (s Servers) Sandbox(ctx context.Context, args ...string) (*Server, error) {
	dir, err := os.MkdirTemp(s.Dir, "sandbox-")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "kubeconfig")
	return start(ctx, dir, file, s.operator, append([]string{"sandbox", "--kubeconfig", file}, args...)...)
}

// Real starts a fresh control plane, without some of its components if without names them: kcm,scheduler,kwok. More are other flags. Stop stops it.
func (s Servers) Real(ctx context.Context, without string, more ...string) (*Server, error) {
	dir, err := os.MkdirTemp(s.Dir, "real-")
	if err != nil {
		return nil, err
	}
	args := append([]string{"start", "--dir", dir}, more...)
	if without != "" {
		args = append(args, "--without", without)
	}
	return start(ctx, dir, filepath.Join(dir, "kubeconfig"), filepath.Join(s.root, "bin/controlplane"), args...)
}

// start starts a program, and waits until it has written its kubeconfig.
func start(ctx context.Context, dir, kubeconfig, program string, args ...string) (*Server, error) {
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	v := &Server{Kubeconfig: kubeconfig, process: exec.CommandContext(ctx, program, args...), ended: make(chan error, 1)}
	v.process.Stdout, v.process.Stderr = log, log
	v.process.Cancel = func() error { return v.process.Process.Signal(os.Interrupt) }
	v.process.WaitDelay = 20 * time.Second
	if err := v.process.Start(); err != nil {
		return nil, err
	}
	go func() { v.ended <- v.process.Wait() }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := v.read(); err == nil {
			return v, nil
		}
		select {
		case <-v.ended:
			text, _ := os.ReadFile(log.Name()) // it says why; without it, the error below has to do
			return nil, fmt.Errorf("starting %s: it has ended\n%s", filepath.Base(program), text)
		case <-tick.C:
		}
	}
}

// read reads the kubeconfig.
func (v *Server) read() error {
	data, err := os.ReadFile(v.Kubeconfig)
	if err != nil {
		return err
	}
	var content struct {
		Clusters []struct{ Cluster struct{ Server string } }
		Users    []struct{ User struct{ Token string } }
	}
	if err := yaml.Unmarshal(data, &content); err != nil {
		return err
	}
	if len(content.Clusters) != 1 || len(content.Users) != 1 {
		return errors.New("the kubeconfig is not complete")
	}
	v.URL, v.Token = content.Clusters[0].Cluster.Server, content.Users[0].User.Token
	return nil
}

// Stop stops the server, and waits for its end.
func (v *Server) Stop() {
	_ = v.process.Process.Signal(os.Interrupt) // it may have ended
	<-v.ended
}
