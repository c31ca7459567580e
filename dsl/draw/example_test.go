// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

func idle(context.Context, *dsl.Request) error { return nil }

func holds(*dsl.Subject) (bool, error) { return true, nil }

// everything is an operator with one of each.
func everything() *dsl.Operator {
	op := dsl.New("everything")
	op.Index("owners", "teams.v1.example.com", func(*unstructured.Unstructured) ([]dsl.Entry, error) { return nil, nil }, dsl.LabelExists("team"))
	op.Index("apps", "apps.v1.example.com", func(*unstructured.Unstructured) ([]dsl.Entry, error) { return nil, nil })
	op.OnStartup("warm", idle)
	op.OnCleanup("flush", idle)
	op.OnHealth("alive", idle)
	op.OnReady("open", idle)
	op.Resource("apps.v1.example.com", func(r *dsl.Resource) {
		r.Resync, r.LabelSelector, r.FieldSelector = 10*time.Minute, "tier=front", "status.phase=Running"
		deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
		r.OwnsKind(deployment)
		r.Owns("configmaps.v1")
		r.Relates(dsl.Relation{Name: "plan", Resource: dsl.ResourceName{Resource: "plans", Group: "example.com"}, LabelSelector: "public", One: true})
		r.Relates(dsl.Relation{Name: "quotas", Resource: dsl.ResourceName{Resource: "resourcequotas"}})
		r.Makes = []shape.NamedChild{
			{Name: "web", Kind: deployment, Maker: "app", Needs: []string{"config"}},
			{Name: "config", Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Maker: "app.first", List: true},
			{Name: "any"}, {Name: "job", Kind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, Maker: "machine.Pending.enter"},
		}
		known := func(reads dsl.KnownReads, sets ...dsl.Path) dsl.Option {
			return func(h *dsl.Handler) { h.Known = dsl.Known{Action: "set", Reads: reads, Sets: sets} }
		}
		r.OnReconcile("app", idle, known(dsl.KnownReads{Only: true, Paths: []dsl.Path{{"spec", "image"}}, ChildNames: []string{"config"}, RelatedNames: []string{"plan"}, Related: true}))
		r.OnReconcile("status", idle, dsl.After("app"), known(dsl.KnownReads{Only: true, Children: true, ChildNames: []string{"web"}, Indexes: []string{"*"}},
			dsl.Path{"status", "url"}, dsl.Path{"status", "conditions"}), func(h *dsl.Handler) { h.Known.Conditions = []string{"Ready"} })
		r.OnField("spec.size", "resize", idle, dsl.Label("tier", "front"), dsl.AnnotationAbsent("paused"), dsl.When(holds))
		r.OnDelete("last", idle)
		r.OnReconcile("go", idle)
		r.Cron("0 3 * * *", "nightly", idle)
		r.Every(time.Minute, "poll", idle)
		r.Pausing(time.Minute, "rest", idle)
		r.Idle(time.Hour, "old", idle)
		r.Schedule(dsl.Timing{Cron: "@daily", TimeZone: "Europe/Berlin"}, "census", idle)
		r.Daemon("watch", func(context.Context, *dsl.DaemonRequest) error { return nil })
		r.Machine(*rollout())
	})
	op.Resource("teams.example.com", func(r *dsl.Resource) {
		r.Machine(dsl.Machine{Name: "review", States: []dsl.State{{Name: "Open", Terminal: true}}})
	})
	return op
}

// rollout is a machine with one of each.
func rollout() *dsl.Machine {
	ready := true
	return &dsl.Machine{
		Initial: "Pending", AllowCycles: true, Migrate: map[string]string{"Waiting": "Pending", "Starting": "Running", "Lost": "Nowhere"},
		States: []dsl.State{
			{Name: "Paused", Ready: &ready, Transitions: []dsl.Transition{{To: "Running", When: holds}}},
			{
				Name: "Pending", Doc: "Waits for its Job to start, however long that takes, or until somebody cancels it.", Condition: "Scheduled",
				Enter: idle, Action: "enter: apply",
				Transitions: []dsl.Transition{
					{To: "Cancelled", Manual: true}, {To: "Running", When: holds, Why: "children.job.status.active > 0 && children.job.status.ready == 1"},
				},
				Stay: &dsl.Stay{AtMost: 10 * time.Minute, Then: "Failed"}, Retries: &dsl.Budget{AtMost: 3, Then: "Failed"},
			},
			{
				Name: "Running", Enter: idle, During: idle,
				Transitions: []dsl.Transition{
					{To: "Finished", When: holds, Why: "all is done"}, {To: "Failed", When: holds}, {To: "Running", Manual: true, Why: "begin again"}, {To: "Paused"},
				},
				Retries: &dsl.Budget{Then: "Failed"},
			},
			{Name: "Finished", Terminal: true, Doc: "Done."},
			{Name: "Failed", Terminal: true, Failed: true, Retries: &dsl.Budget{AtMost: 1, Then: "Pending"}},
			{Name: "Cancelled", Terminal: true},
		},
		Deletion: []dsl.State{
			{Name: "Draining", Transitions: []dsl.Transition{{To: "Gone", When: holds, Why: "no client is connected"}}, Stay: &dsl.Stay{AtMost: 30 * time.Second, Then: "Gone"}},
			{Name: "Gone", Terminal: true},
		},
	}
}
