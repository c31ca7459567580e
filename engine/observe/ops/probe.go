// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// The names of the probes.
const (
	healthz = "healthz"
	readyz  = "readyz"
)

// probe answers /NAME and /NAME/CHECK the way the Kubernetes API server does.
type probe struct {
	name   string
	health HealthChecks
	// brief: only the Pod itself sees the messages of checks.
	brief bool
}

// register adds the probe's paths.
func (p *probe) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /"+p.name, p.whole)
	mux.HandleFunc("GET /"+p.name+"/{check...}", p.single)
}

// whole answers a request for all checks. If they pass, the answer is "ok", or with ?verbose every line. If one fails, it is
// always every line. Each ?exclude=CHECK leaves a check out.
func (p *probe) whole(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	text := &strings.Builder{}
	var counted []Check
	excluded := query["exclude"]
	for _, c := range p.all(r) {
		if i := slices.Index(excluded, c.Name); i >= 0 {
			excluded = slices.Delete(slices.Clone(excluded), i, i+1)
			fmt.Fprintf(text, "[+]%s excluded: ok\n", c.Name)
			continue
		}
		counted = append(counted, c)
		fmt.Fprintln(text, c)
	}
	for _, name := range excluded {
		fmt.Fprintf(text, "warn: cannot exclude %q: no such check\n", name)
	}
	ok := passed(counted)
	if ok && !query.Has("verbose") {
		answer(w, http.StatusOK, "ok")
		return
	}
	if !ok {
		why := ""
		if !slices.ContainsFunc(counted, func(c Check) bool { return c.State == Fail }) {
			why = ": every resource is degraded"
		}
		fmt.Fprintf(text, "%s check failed%s\n", p.name, why)
		answer(w, http.StatusServiceUnavailable, text.String())
		return
	}
	fmt.Fprintf(text, "%s check passed\n", p.name)
	answer(w, http.StatusOK, text.String())
}

// single answers a request for one check. Here a warning fails, too, because the request is about this check alone.
func (p *probe) single(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("check")
	if name == "" {
		p.whole(w, r)
		return
	}
	checks := p.all(r)
	i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == name })
	switch {
	case i < 0:
		answer(w, http.StatusNotFound, fmt.Sprintf("%s has no check %q\n", p.name, name))
	case checks[i].State != Pass:
		answer(w, http.StatusServiceUnavailable, checks[i].String()+"\n")
	case r.URL.Query().Has("verbose"):
		answer(w, http.StatusOK, checks[i].String()+"\n")
	default:
		answer(w, http.StatusOK, "ok")
	}
}

// all returns the checks in the form that the sender of a request may see. A probe without checks returns one that passes.
func (p *probe) all(r *http.Request) []Check {
	var checks []Check
	switch {
	case p.health == nil:
	case p.name == healthz:
		checks = p.health.Healthy()
	default:
		checks = p.health.Ready()
	}
	if len(checks) == 0 {
		return []Check{{Name: "ping"}}
	}
	if p.brief && !local(r) {
		checks = slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return c.OfObject })
		for i := range checks {
			checks[i].Message = ""
		}
	}
	return checks
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache, no-store")
	w.WriteHeader(status)
	// An error here means that the client has closed the connection.
	_, _ = io.WriteString(w, text)
}

// State is the result of a [Check].
type State int

// The states.
const (
	// Pass: all is well.
	Pass State = iota
	// Warn: this part of the operator is degraded. The whole passes, unless all resources are degraded; see
	// resourceCheck.
	Warn
	// Fail: the whole fails.
	Fail
)

// String returns "ok", "degraded" or "failed".
func (s State) String() string {
	switch s {
	case Pass:
		return "ok"
	case Warn:
		return "degraded"
	default:
		return "failed"
	}
}

// resourceCheck is the prefix of the names of checks of watched resources, one for each. If all resources are degraded,
// the operator does nothing, so when all these checks fail, the whole fails.
const resourceCheck = "resource/"

// Check is one line of /healthz or /readyz.
type Check struct {
	// Name is the name of the check, as in "started" or "resource/foos.v1.example.com". Required and unique.
	Name string
	// State defaults to Pass.
	State State
	// Message says why, for people. Optional.
	Message string
	// OfObject: the check is about an object. Only the Pod itself may see it.
	OfObject bool
}

// String is the check's line as ?verbose shows it: "[+]started ok", or
// "[!]resource/foos.v1.example.com degraded: forbidden: list, watch".
func (c Check) String() string {
	mark := map[State]string{Pass: "[+]", Warn: "[!]"}[c.State]
	if mark == "" {
		mark = "[-]"
	}
	line := mark + c.Name + " " + c.State.String()
	if c.Message != "" {
		line += ": " + plain.Escaped(strings.ReplaceAll(strings.TrimSpace(c.Message), "\n", "; "), "")
	}
	return line
}

// passed reports whether the whole passes: nothing fails, and not all resources are degraded.
func passed(checks []Check) bool {
	resources, degraded := 0, 0
	for _, c := range checks {
		if c.State == Fail {
			return false
		}
		if strings.HasPrefix(c.Name, resourceCheck) {
			resources++
			if c.State == Warn {
				degraded++
			}
		}
	}
	return resources == 0 || degraded < resources
}
