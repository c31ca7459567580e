// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard is what the tests read of Grafana's JSON.
type dashboard struct {
	UID           string
	Title         string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
			Definition string
		}
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	Datasource               struct{ Type, UID string }
	Targets                  []struct{ RefID, Expr, LegendFormat string }
}

// grafana returns the dashboard.
func grafana(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, "deploy/chart/files/dashboard.json")), &d); err != nil {
		t.Fatalf("reading dashboard: %v", err)
	}
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 42 || len(d.Panels) == 0 {
		t.Fatalf("the dashboard lacks something: %+v", d)
	}
	return d
}

// inGrafana puts values into the place of Grafana's own variables, which are no PromQL.
var inGrafana = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h")

// legendLabel is a label in the legend of a graph.
var legendLabel = regexp.MustCompile(`{{(\w+)}}`)

func TestTheDashboardUsesMetricsThatThereAre(t *testing.T) {
	there := listed(t)
	for _, p := range grafana(t).Panels {
		for _, target := range p.Targets {
			expr := inGrafana.Replace(target.Expr)
			there.check(t, expr)
			if selectors := strings.Count(expr, "{"); selectors != strings.Count(expr, `{namespace=~"$namespace", job=~"$operator"`) {
				t.Errorf("panel %q does not keep to the variables: %s", p.Title, expr)
			}
			for _, label := range legendLabel.FindAllStringSubmatch(target.LegendFormat, -1) {
				if by := grouped.FindStringSubmatch(expr); by == nil || !slices.Contains(strings.Split(by[1], ", "), label[1]) {
					t.Errorf("panel %q has no label %s: %s", p.Title, label[1], expr)
				}
			}
		}
	}
}

// grouped is the first by clause of an expression, whose labels are those of its result.
var grouped = regexp.MustCompile(`by \(([\w, ]+)\)`)

// labelValues is the query of a variable.
var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

func TestVariablesOfTheDashboardAskForLabelsThatThereAre(t *testing.T) {
	there, names := listed(t), []string(nil)
	for _, v := range grafana(t).Templating.List {
		names = append(names, v.Name)
		if v.Type == "datasource" {
			continue
		}
		asks := labelValues.FindStringSubmatch(v.Definition)
		if asks == nil || !strings.Contains(string(v.Query), "label_values(") {
			t.Errorf("variable %s asks %q", v.Name, v.Definition)
			continue
		}
		there.check(t, "count by ("+asks[2]+") ("+asks[1]+")")
	}
	if want := []string{"datasource", "namespace", "operator"}; !slices.Equal(names, want) {
		t.Errorf("the variables are %v, want %v", names, want)
	}
}

func TestEachPanelSaysWhatItShowsAndHasAPlaceOfItsOwn(t *testing.T) {
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range grafana(t).Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q has the id of another one, or no title", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if at := [2]int{x, y}; taken[at] != "" || x >= 24 {
					t.Errorf("panel %q lies on panel %q, or beside the page", p.Title, taken[at])
				} else {
					taken[at] = p.Title
				}
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %q has no description, no target or another datasource", p.Title)
		}
		if strings.Contains(p.Description, `" in docs/`) {
			checkSections(t, p.Title, p.Description)
		}
	}
}
