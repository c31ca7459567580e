// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The jobs that every subject can do: keep the status of Foos as their spec asks, keep a ConfigMap for each besides, and
// keep a finalizer on each, which is taken off when it is deleted.
const (
	statusJob    = "status"
	childrenJob  = "children"
	finalizerJob = "finalizer"
)

// subject is a program that is measured.
type subject struct {
	name, title string
	// program is its file in the folder of programs, agent how its user agent begins.
	program, agent string
	// released says that it is the released program, which reads a configuration and reports by its metrics. The others are
	// programs of this module.
	released bool
}

var subjects = []subject{
	{"minimal", "minimal client", "minimal", "bench-minimal", false},
	{"yaml", "Handwerk in YAML", "handwerk", "bench-yaml-", true},
	{"go", "Handwerk in Go", "operator", "bench-go", false},
	{"typed", "controller-runtime", "runtime", "bench-typed", false},
}

// chosen returns the subjects with these names.
func chosen(names string) (out []subject, err error) {
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(subjects, func(s subject) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no subject %q", name)
		}
		out = append(out, subjects[i])
	}
	return out, nil
}

// paired are Handwerk in YAML at a commit, and as it is here.
func paired(commit string) []subject {
	return []subject{
		{"before", "at " + commit, "before", "bench-yaml-", true},
		{"now", "now", "handwerk", "bench-yaml-", true},
	}
}

// errand says what a subject is started for.
type errand struct {
	job, namespace string
	// expected is after how many objects it reports that it has looked at all of them, 0 for never.
	expected int
}

// start starts a subject against the control plane; stop must be called in the end.
func (s *session) start(ctx context.Context, sub subject, e errand) (*process, error) {
	l := launch{
		path: filepath.Join(s.dir, sub.program), log: filepath.Join(s.dir, sub.name+".log"), env: "KUBECONFIG=" + s.plane.kubeconfig,
		args: []string{"-job", e.job, "-namespace", e.namespace, "-n", strconv.Itoa(e.expected)},
	}
	if !sub.released {
		return start(l)
	}
	metrics, err := freePort()
	if err != nil {
		return nil, err
	}
	profiles, err := freePort()
	if err != nil {
		return nil, err
	}
	l.args = []string{
		"run", "--config", filepath.Join("yaml", e.job+".yaml"), "--namespace", e.namespace,
		"--health-probe-bind-address", "127.0.0.1:0", "--metrics-bind-address", metrics,
	}
	if s.profile != "" {
		l.args = append(l.args, "--pprof-bind-address", profiles)
	}
	p, err := start(l)
	if err != nil {
		return nil, err
	}
	p.metrics = metrics
	if s.profile != "" {
		p.profiling = profiled(ctx, profiles, filepath.Join(s.profile, fmt.Sprintf("%s-%s-%s", time.Now().Format("150405"), sub.name, e.namespace)))
	}
	return p, nil
}

// freePort finds a free address.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
