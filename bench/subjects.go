// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
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
	// args make it run an errand.
	args func(s *session, e errand) ([]string, error)
	// scraped says that the program reports what it looks at only by its metrics.
	scraped bool
	// handlers is how many handlers it runs for each Foo that it looks at.
	handlers int
	// resyncs says that it looks at everything again after a time, when an errand says so.
	resyncs bool
	// still says that no status follows the spec.
	still bool
}

// namespace is where its Foos are. Those who make children leave them behind, so each has a namespace of its own.
func (s subject) namespace() string {
	if s.handlers == 1 {
		return "bench-status"
	}
	return "bench-" + s.name
}

// subjects are all of them, the one first that the others are compared with.
var subjects = []subject{
	{name: minimalName, title: "minimal client", program: "minimal", agent: "bench-minimal", args: ours(), handlers: 1},
	{name: "yaml", title: "Handwerk in YAML", program: "handwerk", agent: "bench-yaml/", args: released, scraped: true, handlers: 1},
	{name: "go", title: "Handwerk in Go", program: "operator", agent: "bench-go", args: ours(), handlers: 1, resyncs: true},
	{name: "typed", title: "controller-runtime, typed", program: "runtime", agent: "bench-typed", args: ours(), handlers: 1},
	{name: "unstructured", title: "controller-runtime, unstructured", program: "runtime", agent: "bench-unstructured", args: ours("-unstructured"), handlers: 1},
}

// extra are subjects that are measured when they are named.
var extra = []subject{
	{name: "minimal-http2", title: "minimal client, HTTP/2", program: "minimal", agent: "bench-minimal", args: ours("-http2"), handlers: 1},
	{name: "families", title: "five children a Foo, in YAML", program: "handwerk", agent: "families/", args: families, scraped: true, handlers: 2, resyncs: true},
	// No controller runs, so no Deployment ever has available replicas.
	{name: "sample", title: "samples/foo", program: "handwerk", agent: "foo/", args: sample, scraped: true, handlers: 2, still: true},
}

const minimalName = "minimal"

// ours are the arguments of a program of this module.
func ours(more ...string) func(*session, errand) ([]string, error) {
	return func(_ *session, e errand) ([]string, error) {
		args := append([]string{"-job", e.job, "-namespace", e.namespace}, more...)
		if e.resync > 0 {
			args = append(args, "-resync", e.resync.String())
		}
		return args, nil
	}
}

// released are the arguments of the released program.
func released(_ *session, e errand) ([]string, error) {
	return configured(filepath.Join("yaml", e.job+".yaml"), e), nil
}

// sample are its arguments with samples/foo.
func sample(_ *session, e errand) ([]string, error) {
	return configured("../samples/foo/operator.yaml", e), nil
}

// families are its arguments with more children. The resync period is put into the configuration.
func families(s *session, e errand) ([]string, error) {
	data, err := os.ReadFile(filepath.Join("yaml", "families.yaml"))
	if err != nil {
		return nil, err
	}
	period := cmp.Or(e.resync, 24*time.Hour)
	file := filepath.Join(s.dir, fmt.Sprintf("families-%s.yaml", period))
	return configured(file, e), os.WriteFile(file, []byte(strings.Replace(string(data), "RESYNC", period.String(), 1)), 0o600)
}

// configured are the arguments of the released program with a configuration.
func configured(file string, e errand) []string {
	return []string{"run", "--config", file, "--namespace", e.namespace, "--health-probe-bind-address", "127.0.0.1:0"}
}

// chosen are the subjects of these names.
func chosen(names string) ([]subject, error) {
	if names == "" {
		return subjects, nil
	}
	var out []subject
	all := slices.Concat(subjects, extra)
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(s subject) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no subject %q", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// errand is what a subject is started for.
type errand struct {
	job, namespace string
	// expected is after how many objects it is to report that it has looked at all of them, 0 for never.
	expected int
	// traced says that it keeps each look.
	traced bool
	// resync is after what time it looks at everything again, 0 for never.
	resync time.Duration
	// phase names profiles.
	phase string
}

// start starts a subject against the control plane.
func (s *session) start(ctx context.Context, sub subject, e errand) (*process, error) {
	args, err := sub.args(s, e)
	if err != nil {
		return nil, err
	}
	if sub.scraped {
		return s.startScraped(ctx, sub, e, args)
	}
	if e.expected > 0 {
		args = append(args, "-n", fmt.Sprint(e.expected))
	}
	if e.traced {
		args = append(args, "-trace")
	}
	if s.profile != "" && sub.program != minimalName {
		args = append(args, "-profile", s.profileOf(sub, e))
	}
	return start(s.launch(sub, args))
}

// startScraped starts one that reports by its metrics.
func (s *session) startScraped(ctx context.Context, sub subject, e errand, args []string) (*process, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	args = append(args, "--metrics-bind-address", ports[0])
	if s.profile != "" {
		args = append(args, "--pprof-bind-address", ports[1])
	}
	p, err := start(s.launch(sub, args))
	if err != nil {
		return nil, err
	}
	p.metrics = ports[0]
	if s.profile != "" {
		p.profiling = profiled(ctx, ports[1], s.profileOf(sub, e))
	}
	return p, nil
}

func (s *session) launch(sub subject, args []string) launch {
	return launch{
		path: filepath.Join(s.dir, sub.program), args: args,
		env: "KUBECONFIG=" + s.plane.kubeconfig, log: filepath.Join(s.dir, sub.name+".log"),
	}
}

func (s *session) profileOf(sub subject, e errand) string {
	return filepath.Join(s.profile, fmt.Sprintf("%s-%s-%s", time.Now().Format("150405"), sub.name, e.phase))
}

// freePorts finds free addresses.
func freePorts(n int) ([]string, error) {
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		out = append(out, l.Addr().String())
	}
	return out, nil
}
