// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/draw"
)

var update = flag.Bool("update", false, "write the golden files")

// TestTexts compares the drawings of an operator, and of a machine, with files. For each they say what they are to show.
func TestTexts(t *testing.T) {
	for name, text := range map[string]string{
		"everything.md":  draw.Mermaid(draw.All(everything())),
		"everything.dot": draw.Dot(draw.All(everything())),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatEdgesSay(t *testing.T) {
	edges := func(d draw.Drawing) string {
		var out []string
		for _, p := range d.Parts {
			for _, e := range p.Edges {
				style := map[draw.Style]string{draw.Solid: "->", draw.Dashed: "- ->", draw.Dotted: "..>", draw.Thick: "=>"}[e.Style]
				out = append(out, strings.TrimSpace(e.From+" "+style+" "+e.To+" "+strings.Join(e.Label, " ")))
			}
		}
		return strings.Join(out, "\n")
	}
	all := draw.All(everything())
	operator, machine := edges(all[0]), edges(all[1])
	tests := map[string]struct{ in, want string }{
		"a resource has handlers":                         {operator, "resource_apps -> handler_apps_app\n"},
		"a handler waits for one before it":               {operator, "handler_apps_status - -> handler_apps_app after\n"},
		"a handler makes a child":                         {operator, "handler_apps_app -> child_apps_web\n"},
		"a step of it does, too":                          {operator, "handler_apps_app -> child_apps_config\n"},
		"the maker of a child is unknown":                 {operator, "resource_apps -> child_apps_any\n"},
		"a child needs another one":                       {operator, "child_apps_web - -> child_apps_config needs\n"},
		"kinds of children have no names":                 {operator, "resource_apps -> owned_apps_configmaps owns\n"},
		"a handler reads a child of another one":          {operator, "handler_apps_status ..> child_apps_web reads\n"},
		"a handler reads related objects":                 {operator, "handler_apps_app ..> related_apps_plan reads\n"},
		"code with unknown reads may read them":           {operator, "handler_apps_go ..> related_apps_quotas reads\n"},
		"a handler reads any index":                       {operator, "handler_apps_status ..> index_owners reads\nhandler_apps_status ..> index_apps reads\n"},
		"an index is filled from what is handled":         {operator, "resource_apps -> index_apps fills"},
		"an index is over all versions":                   {operator, "resource_teams -> index_owners fills\n"},
		"a new object is in the initial state":            {machine, "new -> state_Pending\n"},
		"the order of transitions is that of asking":      {machine, "state_Running -> state_Finished 1: all is done\nstate_Running -> state_Failed 2: when its condition holds\n"},
		"the last one has no condition":                   {machine, "state_Running -> state_Paused 3: otherwise\n"},
		"one alone has no number":                         {machine, "state_Paused -> state_Running when its condition holds\n"},
		"a person takes a way":                            {machine, "state_Pending => state_Cancelled by hand\n"},
		"a person has a reason, and goes back to a state": {machine, "state_Running => state_Running by hand: begin again\n"},
		"a time is over":                                  {machine, "state_Pending - -> state_Failed after 10m\n"},
		"a budget is used up":                             {machine, "state_Pending - -> state_Failed more than 3 failures\n"},
		"there is no budget":                              {machine, "state_Running - -> state_Failed a failure\n"},
		"the budget is one":                               {machine, "state_Failed - -> state_Pending more than one failure\n"},
		"a long reason is shortened":                      {machine, "state_Pending -> state_Running children.job.status. active > 0 && children.job.status…\n"},
		"objects come from an earlier version":            {machine, "former_Starting ..> state_Running is now\nformer_Waiting ..> state_Pending is now\n"},
		"an object is deleted":                            {machine, "deleted -> state_Draining\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(test.in+"\n", test.want) {
				t.Errorf("want %q in\n%s", test.want, test.in)
			}
		})
	}
	for _, not := range []string{"handler_apps_app ..> child_apps_config", "handler_apps_app ..> related_apps_quotas", "Nowhere", "owned_apps_deployments"} {
		if strings.Contains(operator+machine, not) {
			t.Errorf("%s is in\n%s\n%s", not, operator, machine)
		}
	}
}

func TestDrawingsAreTheSameEachTime(t *testing.T) {
	first := draw.Mermaid(draw.All(everything())) + draw.Dot(draw.All(everything()))
	for range 50 {
		if again := draw.Mermaid(draw.All(everything())) + draw.Dot(draw.All(everything())); again != first {
			t.Fatalf("(-first +again):\n%s", cmp.Diff(first, again))
		}
	}
}

func TestWhichMachineIsMeant(t *testing.T) {
	review := func(group string) func(*dsl.Resource) {
		return func(r *dsl.Resource) {
			r.Name.Group = group
			r.Machine(dsl.Machine{Name: "review", States: []dsl.State{{Name: "Open"}}})
		}
	}
	two := everything()
	two.Resource("papers.v1.example.com", review("example.com"))
	two.Resource("papers.v1.other.org", review("other.org"))
	jobs := dsl.New("jobs")
	jobs.Resource("jobs.v1.example.com", review("example.com"))
	tests := map[string]struct {
		of         *dsl.Operator
		text, want string
	}{
		"one without a name":                         {everything(), "machine", "machine of apps.v1.example.com"},
		"one with a name":                            {everything(), "review", "machine review of teams.example.com"},
		"with its resource":                          {everything(), "apps/machine", "machine of apps.v1.example.com"},
		"with group and version":                     {everything(), "apps.v1.example.com/machine", "machine of apps.v1.example.com"},
		"with the group":                             {everything(), "apps.example.com/machine", "machine of apps.v1.example.com"},
		"there are several":                          {two, "review", "drawing machine review: there are several of that name (want teams.example.com/review or papers.v1.example.com/review or papers.v1.other.org/review)"},
		"one of several":                             {two, "papers.other.org/review", "machine review of papers.v1.other.org"},
		"with a plural of a built-in kind, too":      {jobs, "jobs/review", "machine review of jobs.v1.example.com"},
		"it is misspelt":                             {everything(), "reviews", `drawing machine reviews: there is none of that name (did you mean "review"?)`},
		"its resource is misspelt":                   {everything(), "teems.example.com/review", `drawing machine teems.example.com/review: there is none of that name (did you mean "teams.example.com/review"?)`},
		"it is misspelt, with its resource in short": {everything(), "teams/revew", `drawing machine teams/revew: there is none of that name (did you mean "teams/review"?)`},
		"it is misspelt, with its group":             {everything(), "teams.example.com/revew", `drawing machine teams.example.com/revew: there is none of that name (did you mean "teams.example.com/review"?)`},
		"it is of another resource":                  {everything(), "pods/review", "drawing machine pods/review: there is none of that name (want one of apps.v1.example.com/machine, machine, review, teams.example.com/review)"},
		"it is of another version":                   {everything(), "apps.v2.example.com/machine", `drawing machine apps.v2.example.com/machine: there is none of that name (did you mean "apps.v1.example.com/machine"?)`},
		"there are no machines anywhere":             {dsl.New("none"), "machine", "drawing machine machine: the operator has no machines"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := draw.Named(test.of, test.text)
			got := d.Title
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
