// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// startup is how long a control plane may take to be ready.
const startup = 2 * time.Minute

// plane is a control plane of this run's own: an API server and etcd, no controllers.
type plane struct {
	process    *process
	kubeconfig string
	// audit is the log of all requests.
	audit string
}

// startPlane starts one that keeps its data in a folder.
func startPlane(ctx context.Context, dir string) (*plane, error) {
	started, err := start(launch{
		path: "../bin/controlplane",
		args: []string{"start", "--dir", dir, "--crds", "../samples/foo/crd.yaml", "--without", "kcm,scheduler,kwok", "--audit",
			"--arg", "etcd=--quota-backend-bytes=8589934592"},
		log: dir + ".log",
	})
	if err != nil {
		return nil, err
	}
	out := &plane{process: started, kubeconfig: filepath.Join(dir, "kubeconfig"), audit: filepath.Join(dir, "audit.log")}
	if err := out.ready(ctx); err != nil {
		out.stop()
		return nil, fmt.Errorf("starting control plane: %w", err)
	}
	if err := out.uncompressed(); err != nil {
		out.stop()
		return nil, err
	}
	return out, nil
}

// uncompressed has answers come as they are, to all subjects: programs in a pod have a network that is near.
func (p *plane) uncompressed() error {
	text, err := os.ReadFile(p.kubeconfig)
	if err != nil {
		return err
	}
	changed := strings.Replace(string(text), "  cluster:\n", "  cluster:\n    disable-compression: true\n", 1)
	return os.WriteFile(p.kubeconfig, []byte(changed), 0o600)
}

// ready waits for the kubeconfig, which is written last.
func (p *plane) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(p.kubeconfig); err == nil {
			return nil
		}
		select {
		case <-p.process.ended:
			return fmt.Errorf("it ended: %s", p.process.complaint())
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// cpu is the processor time that API server and etcd have taken so far.
func (p *plane) cpu() (sum time.Duration, err error) {
	root := p.process.cmd.Process.Pid
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", root))
	for _, thread := range threads {
		data, err := os.ReadFile(thread)
		if err != nil {
			return 0, err
		}
		for field := range strings.FieldsSeq(string(data)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return 0, err
			}
			took, err := processor(pid)
			if err != nil {
				return 0, err
			}
			sum += took
		}
	}
	return sum, err
}

func (p *plane) stop() { _ = p.process.stop() } // nothing is measured any more
