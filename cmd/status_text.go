// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/handwerk-dev/handwerk/engine/operate/status"
)

// statusPage writes a status for people.
type statusPage struct {
	*status.Status
	out    io.Writer
	colors bool
}

// write writes all parts that say something.
func (p *statusPage) write() {
	p.head()
	p.resources()
	p.table("FEED STATE OBJECTS CACHE EVENT WHY", p.feeds())
	p.table("MACHINE RESOURCE STATE OBJECTS OLDEST", p.machines())
	p.table("DAEMONS RESOURCE RUNNING LATE", p.daemons())
	p.table("OBJECT RESOURCE STATE FOR WHY", p.objects())
	p.table("DEGRADED WHY", p.degraded())
}

// table writes rows below a title, if there are any.
func (p *statusPage) table(title string, rows []row) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(p.out)
	table(p.out, p.colors, slices.Insert(rows, 0, row{strings.Fields(title), bold}))
}

func (p *statusPage) head() {
	c := p.Configuration
	config := "in Go, loaded " + p.ago(&c.Loaded)
	if len(c.Files) > 0 {
		config = fmt.Sprintf("%s, digest %.12s, loaded %s", strings.Join(c.Files, " "), c.Digest, p.ago(&c.Loaded))
	}
	color := noColor
	if p.State != status.Working && p.State != status.StandingBy {
		color = yellow
	}
	rows := []row{
		plainRow("operator", strings.TrimSpace(p.Operator+" "+p.Version)),
		plainRow("process", p.Process+", started "+p.ago(&p.Started)),
		{[]string{"state", string(p.State)}, color},
		plainRow("leader", p.leader()),
		plainRow("configuration", config),
	}
	for _, one := range p.Pauses {
		rows = append(rows, row{[]string{"paused", one.String()}, yellow})
	}
	table(p.out, p.colors, rows)
}

// leader says who leads, and by what.
func (p *statusPage) leader() string {
	l := p.Leader
	switch {
	case l.Lock == "":
		return "none is elected: each process works"
	case l.Leads:
		return fmt.Sprintf("this process, by Lease %s, for %s", l.Lock, p.since(l.Since))
	case l.Holder == "":
		return "not known, by Lease " + l.Lock
	}
	return fmt.Sprintf("%s, by Lease %s", l.Holder, l.Lock)
}

func (p *statusPage) resources() {
	var rows []row
	for _, r := range p.Resources {
		standing := func(how string) string { return strconv.Itoa(r.Health[how]) }
		one := row{[]string{
			r.Name, r.State, strconv.Itoa(r.Objects), standing("ready"), standing("waiting"), standing("failing"), standing("held"), standing("paused"),
			size(r.Bytes), p.queue(r.Queue), fmt.Sprintf("%d/%d", r.Queue.Working, r.Queue.Workers), p.since(r.LastEvent), besides(r),
		}, noColor}
		if r.State != "running" || r.Health["failing"]+r.Health["held"]+r.Looping > 0 {
			one.color = red
		}
		rows = append(rows, one)
	}
	p.table("RESOURCE STATE OBJECTS READY WAITING FAILING HELD PAUSED CACHE QUEUE WORKERS EVENT WHY", rows)
}

// queue says how many objects wait for a worker, why, and how long the first of them.
func (p *statusPage) queue(q status.Queue) string {
	var parts []string
	total := 0
	for _, class := range []string{"fresh", "due", "backlog", "resync"} {
		if n := q.Waiting[class]; n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%d %s", n, class))
		}
	}
	if total == 0 {
		return "0"
	}
	return fmt.Sprintf("%d for %s (%s)", total, p.since(q.Oldest), strings.Join(parts, ", "))
}

// besides says what else there is to a resource.
func besides(r status.Resource) string {
	var out []string
	if r.Message != "" {
		out = append(out, r.Message)
	}
	if r.Parked > 0 {
		out = append(out, count(r.Parked, "object")+" wait for the cache")
	}
	if r.Looping > 0 {
		out = append(out, count(r.Looping, "object")+" held by the breaker")
	}
	return strings.Join(out, "; ")
}

func (p *statusPage) feeds() (rows []row) {
	for _, r := range p.Resources {
		for _, f := range r.Sources {
			one := plainRow(f.Name, f.State, strconv.Itoa(f.Objects), size(f.Bytes), p.since(f.LastEvent), f.Message)
			if f.State != "running" || f.Message != "" {
				one.color = red
			}
			rows = append(rows, one)
		}
	}
	return rows
}

func (p *statusPage) machines() (rows []row) {
	for _, r := range p.Resources {
		for _, in := range r.States {
			if in.Objects > 0 {
				rows = append(rows, plainRow(in.Machine, r.Name, in.State, strconv.Itoa(in.Objects), p.since(in.Oldest)))
			}
		}
	}
	return rows
}

func (p *statusPage) daemons() (rows []row) {
	for _, r := range p.Resources {
		for _, d := range r.Daemons {
			rows = append(rows, plainRow(d.Handler, r.Name, strconv.Itoa(d.Running), strconv.Itoa(d.Late)))
		}
	}
	return rows
}

func (p *statusPage) objects() (rows []row) {
	for _, r := range p.Resources {
		for _, o := range r.NotReady {
			one := plainRow(o.Name, r.Name, o.Health, p.since(&o.Since), strings.Join(o.Why, "; "))
			if o.Health != "waiting" && o.Health != "paused" {
				one.color = red
			}
			rows = append(rows, one)
		}
		if more := r.Health["waiting"] + r.Health["failing"] + r.Health["held"] + r.Health["paused"] - len(r.NotReady); more > 0 {
			rows = append(rows, plainRow(fmt.Sprintf("and %d more", more), r.Name))
		}
	}
	return rows
}

func (p *statusPage) degraded() (rows []row) {
	for _, c := range p.Degraded {
		rows = append(rows, row{[]string{c.Name, cmp.Or(c.Message, c.State)}, red})
	}
	return rows
}

// since is how long ago something was, "-" if it never was.
func (p *statusPage) since(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return duration.HumanDuration(p.At.Sub(*at))
}

func (p *statusPage) ago(at *time.Time) string { return p.since(at) + " ago" }

// size writes a number of bytes for people.
func size(bytes int) string {
	const step = 1024
	value, unit := float64(bytes), 0
	units := []string{"B", "KiB", "MiB", "GiB"}
	for value >= step && unit < len(units)-1 {
		value, unit = value/step, unit+1
	}
	if value >= 10 || unit == 0 {
		return fmt.Sprintf("%.0f %s", value, units[unit])
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
