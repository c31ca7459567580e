// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
)

// Workloads says what becomes of the workloads of a sandbox. Its methods are safe for use by several goroutines.
//
// Workloads are named as for kubectl: "deployments/web" is in the namespace default, "deployments/team-a/web" in another one.
// Namespaces and names may be globs, as in "pods/*/web-*", and "deployments" alone means all. What holds for a workload holds for
// its Pods, too. Of several names that match, the one that was given last applies.
type Workloads struct {
	// plan is nil if no workloads come alive.
	plan   *workloads.Plan
	first  []workloads.Rule
	server *server.Server
}

// Workloads returns what becomes of the workloads, on top of [Options].Plan.
func (s *Sandbox) Workloads() *Workloads { return &Workloads{s.plan, s.first, s.server} }

// Hold leaves workloads as they are until [Workloads.Release]: a Deployment makes no ReplicaSets, a new Pod stays Pending, and a
// ready one stays ready.
func (w *Workloads) Hold(name string) error {
	return w.set("holding", name, workloads.Rule{Hold: true})
}

// Fail makes workloads fail until [Workloads.Release]. The reason is that of containers, such as CrashLoopBackOff or
// ImagePullBackOff, or Unready, Unschedulable, or one of a Job's. See [workloads.Rule].
func (w *Workloads) Fail(name, reason string) error {
	if reason == "" {
		return fmt.Errorf("failing %s: a reason is required, such as CrashLoopBackOff", name)
	}
	return w.set("failing", name, workloads.Rule{Fail: reason})
}

// Delay makes workloads take their time, until [Workloads.Release]: Pods are ready after it, or have succeeded if they are a
// Job's, and claims are bound.
func (w *Workloads) Delay(name string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("delaying %s: %s is less than no time", name, d)
	}
	return w.set("delaying", name, workloads.Rule{Delay: d})
}

// Release ends what Hold, Fail or Delay of this name began. The workloads go on, or recover.
func (w *Workloads) Release(name string) error {
	rule, err := w.rule(name)
	if err == nil && !w.plan.Drop(rule) {
		err = w.notFound()
	}
	if err != nil {
		return fmt.Errorf("releasing %s: %w", name, err)
	}
	return nil
}

// ReleaseAll ends all that Hold, Fail and Delay began: [Options].Plan is as it was at the start.
func (w *Workloads) ReleaseAll() {
	if w.plan != nil {
		w.plan.Replace(w.first...)
	}
}

func (w *Workloads) set(doing, name string, rule workloads.Rule) error {
	where, err := w.rule(name)
	if err != nil {
		return fmt.Errorf("%s %s: %w", doing, name, err)
	}
	rule.Kind, rule.Namespace, rule.Name = where.Kind, where.Namespace, where.Name
	w.plan.Set(rule)
	return nil
}

// rule returns a rule for the workloads of a name.
func (w *Workloads) rule(name string) (out workloads.Rule, err error) {
	parts := strings.Split(name, "/")
	for _, part := range parts {
		if _, malformed := path.Match(part, ""); part == "" || malformed != nil || len(parts) > 3 {
			return out, errors.New("want a name as in deployments/web or deployments/team-a/web")
		}
	}
	if w.plan == nil {
		return out, errors.New("no workloads come alive in this sandbox")
	}
	kind, err := w.kind(parts[0])
	if err != nil || len(parts) == 1 {
		return workloads.Rule{Kind: kind.GVR.Resource}, err
	}
	out = workloads.Rule{Kind: kind.GVR.Resource, Name: parts[len(parts)-1]}
	switch {
	case len(parts) == 3:
		out.Namespace = parts[1]
	case kind.Namespaced:
		out.Namespace = metav1.NamespaceDefault
	}
	return out, nil
}

// kind finds a kind that comes alive by one of its names.
func (w *Workloads) kind(name string) (server.Served, error) {
	var all []string
	for _, alive := range workloads.Resources() {
		all = append(all, alive.Resource)
		for _, kind := range w.server.Named(strings.ToLower(name)) {
			if kind.GVR.GroupResource() == alive.GroupResource() {
				return kind, nil
			}
		}
	}
	slices.Sort(all)
	return server.Served{}, fmt.Errorf("%s do not come alive; these do: %s", name, strings.Join(all, ", "))
}

// notFound returns the error for a name of which nothing was said.
func (w *Workloads) notFound() error {
	var names []string
	for _, rule := range w.plan.Rules() {
		parts := []string{cmp.Or(strings.ToLower(rule.Kind), "*"), rule.Namespace, rule.Name}
		names = append(names, strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "/"))
	}
	if len(names) == 0 {
		return errors.New("nothing is held, failed or delayed")
	}
	return fmt.Errorf("it is not held, failed or delayed; these are: %s", strings.Join(names, ", "))
}
