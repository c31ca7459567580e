// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/bench/tell"
)

// resyncPeriod is how often all Foos are looked at again while resyncs are counted.
const resyncPeriod = 10 * time.Second

// family is what an operator in YAML with five children for each Foo did.
type family struct {
	life
	// stormWrites are those of the storm, resync is what one resync of all took.
	stormWrites int
	resync      phase
}

// family measures an operator that is written in YAML alone: from nothing, when every Foo changes,
// when it is started again, and while everything is looked at again and again.
func (s *session) family(ctx context.Context) (family, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSlow)
	defer cancel()
	var out family
	fs := &session{plan: s.plan, plane: s.plane}
	fs.objects = s.families
	var err error
	if fs.foos, err = newFoos(s.plane.kubeconfig, "families", s.families); err != nil {
		return out, err
	}
	if err := fs.foos.namespace(ctx, "families"); err != nil {
		return out, err
	}
	if err := fs.foos.create(ctx); err != nil {
		return out, err
	}
	heard := listen()
	calm, busy, err := s.familyConfigs()
	if err != nil {
		return out, err
	}
	if err := fs.familyLife(ctx, calm, &out); err != nil {
		return out, err
	}
	if out.restart, err = fs.restart(ctx, calm); err != nil {
		return out, err
	}
	out.resync, err = fs.resyncs(ctx, busy)
	out.others = heard.share()
	return out, err
}

// familyConfigs are the operator without resync, and with one.
func (s *session) familyConfigs() (calm, busy subject, err error) {
	data, err := os.ReadFile("families.yaml")
	if err != nil {
		return calm, busy, err
	}
	made := func(name, period string) subject {
		file := filepath.Join(s.dir, name+".yaml")
		err = errors.Join(err, os.WriteFile(file, []byte(strings.Replace(string(data), "RESYNC", period, 1)), 0o600))
		return subject{name: "operator", args: []string{"-config", file, "-namespace", "families"}}
	}
	calm, busy = made("calm", "24h"), made("busy", resyncPeriod.String())
	return calm, busy, err
}

// familyLife is the operator's work from nothing, and when every Foo changes.
func (s *session) familyLife(ctx context.Context, sub subject, out *family) error {
	target := s.next()
	if err := s.foos.scale(ctx, target); err != nil {
		return err
	}
	w, err := s.foos.follow(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	counts := make([]int, 0, 3)
	count := func() error {
		n, err := s.foos.writes(ctx)
		counts = append(counts, n)
		return err
	}
	if err := count(); err != nil {
		return err
	}
	p, err := s.start(ctx, sub)
	if err != nil {
		return err
	}
	err = s.phase(ctx, p, w, target, moment{p.started, s.plane.cpu()}, &out.backlog)
	if err == nil {
		err = count()
	}
	target = s.next()
	begun := moment{time.Now(), s.plane.cpu()}
	if err == nil {
		err = s.foos.scale(ctx, target)
	}
	if err == nil {
		err = s.phase(ctx, p, w, target, begun, &out.storm)
	}
	if err == nil {
		out.storm.cpu -= out.backlog.cpu
		err = count()
	}
	if err == nil {
		out.memory, err = s.atRest(ctx, p)
	}
	_, stopErr := p.stop()
	if err != nil || stopErr != nil {
		return errors.Join(err, stopErr)
	}
	out.backlog.writes = counts[1] - counts[0]
	out.stormWrites = counts[2] - counts[1] - s.objects // those that changed the Foos
	return nil
}

// resyncs lets the operator look at everything three times and returns what one look took.
func (s *session) resyncs(ctx context.Context, sub subject) (phase, error) {
	const looks = 3
	var out phase
	p, err := s.start(ctx, sub, "-n", fmt.Sprint(s.objects))
	if err != nil {
		return out, err
	}
	out, err = s.looks(ctx, p, looks)
	_, stopErr := p.stop()
	out.cpu /= looks
	return out, errors.Join(err, stopErr)
}

func (s *session) looks(ctx context.Context, p *process, looks int) (phase, error) {
	var out phase
	if _, err := p.hear(ctx, func(l tell.Line) bool { return l.Looked }); err != nil {
		return out, err
	}
	before, err := s.foos.writes(ctx)
	if err != nil {
		return out, err
	}
	begun, err := p.cpu()
	if err != nil {
		return out, err
	}
	timer := time.NewTimer(time.Duration(looks) * resyncPeriod)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return out, context.Cause(ctx)
	}
	ended, err := p.cpu()
	if err != nil {
		return out, err
	}
	after, err := s.foos.writes(ctx)
	out.cpu, out.writes = ended-begun, after-before
	return out, err
}

// namespace makes a namespace.
func (f *foos) namespace(ctx context.Context, name string) error {
	body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
	var code int
	err := f.client.Post().AbsPath("/api/v1/namespaces").SetHeader("Content-Type", "application/json").Body(body).Do(ctx).StatusCode(&code).Error()
	if code == http.StatusConflict {
		return nil
	}
	return err
}

func (r *result) writeFamily(out io.Writer) error {
	f := r.family
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	t := &table{}
	t.head(fmt.Sprintf("%d Foos with five children each, in YAML", r.families), "from nothing", "every Foo changes", "restart", "one resync of all")
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
	t.row("until all were done or looked at", seconds(f.backlog.wall), seconds(f.storm.wall), seconds(f.restart.wall), "")
	t.row("processor time", seconds(f.backlog.cpu), seconds(f.storm.cpu), seconds(f.restart.cpu), seconds(f.resync.cpu))
	t.row("processor time of the control plane", seconds(f.backlog.server), seconds(f.storm.server), "", "")
	t.row("writes", fmt.Sprint(f.backlog.writes), fmt.Sprint(f.stormWrites), fmt.Sprint(f.restart.writes), fmt.Sprint(f.resync.writes))
	t.row("memory (RSS) at rest / at most", "", megabytes(f.memory.resident)+" / "+megabytes(f.memory.peak), "", "")
	if _, err := t.WriteTo(out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nOthers took %.0f %% of the machine meanwhile.\n", 100*f.others)
	return err
}
