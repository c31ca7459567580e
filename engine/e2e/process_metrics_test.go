// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

var update = flag.Bool("update", false, "write the list in docs/metrics.md")

// metricsPage is the list of metrics for people. hack/monitoring holds alerts and dashboard against it.
const metricsPage = "../../docs/metrics.md"

// metricsOperator has something of everything that is counted.
const metricsOperator = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: listed}
indexes:
  - {name: names, resource: works.v1.e2e.example.com, key: self.metadata.name, value: self.metadata.uid}
resources:
  - resource: works.v1.e2e.example.com
    machine:
      states:
        - {name: Begun, transitions: [{to: Done, when: "true"}]}
        - {name: Done, ready: true, terminal: true}
    daemons:
      - {id: watch, call: probe.Watch}
    handlers:
      - id: config
        apply:
          config: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}"}}
`

// TestTheListOfMetricsIsThatOfARunningOperator holds the rows of docs/metrics.md against /metrics: names, types, labels and
// help, in both directions. Of the process and of Go's runtime it holds those that have a row.
func TestTheListOfMetricsIsThatOfARunningOperator(t *testing.T) {
	t.Parallel()
	ns, user := plane.Namespace(t), plane.User("listed")
	user.AllowIn(t, ns, // and no right to delete ConfigMaps: it is in handwerk_missing_rights
		cluster.Rule("e2e.example.com", "works,works/status", "get", "list", "watch", "patch"),
		cluster.Rule("", "configmaps", "get", "list", "watch", "create", "patch", "update"),
		eventRule(),
	)
	config := t.TempDir() + "/operator.yaml"
	if err := os.WriteFile(config, []byte(metricsOperator), 0o600); err != nil {
		t.Fatal(err)
	}
	program := plane.Operator(t, cluster.Launch{Main: "samples/daemon", Config: user.Config(), Args: []string{"run", "--config", config, "-n", ns}})
	plane.Objects("works.v1.e2e.example.com", ns).Create(t, work("a", "1"))
	address := addressesOf(t, program).Metrics
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	want, served := listedRows(string(page)), []string(nil)
	eventually(t, "metrics of all that happens", func() (bool, string) {
		_, text, err := ask(t, address, "/metrics")
		served = rowsOf(text, want)
		isLacking := func(late string) bool { return !strings.Contains(text, "\n"+late+"{") }
		return err == nil && !slices.ContainsFunc(lateMetrics, isLacking), fmt.Sprint(err, cmp.Diff(want, served))
	})
	for _, row := range want {
		if name := rowStart.FindStringSubmatch(row)[1]; slices.Contains(rareMetrics, name) {
			at, _ := slices.BinarySearchFunc(served, name, func(row, name string) int { return strings.Compare(rowStart.FindStringSubmatch(row)[1], name) })
			served = slices.Insert(served, at, row)
		}
	}
	if *update {
		if err := os.WriteFile(metricsPage, []byte(withRows(string(page), served)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, served); diff != "" {
		t.Errorf("docs/metrics.md and /metrics differ; go test ./engine/e2e -run ListOfMetrics -update writes the page (-page +/metrics):\n%s", diff)
	}
}

// lateMetrics appear when something has happened.
var lateMetrics = []string{
	"handwerk_handler_runs_total", "handwerk_machine_state_seconds_count", "handwerk_missing_rights", "workqueue_work_duration_seconds_count",
}

// rareMetrics are not served by an operator that is well and has no webhooks; the tests of package scenarios/limits and e2e/admission
// have them.
var rareMetrics = []string{"handwerk_deletions_waiting", "handwerk_webhook_duration_seconds", "handwerk_webhooks_in_flight"}

// rowStart begins a row of the list, and names its metric.
var rowStart = regexp.MustCompile("(?m)^\\| `(\\w+)` \\|")

// listedRows returns the rows of a page.
func listedRows(page string) (rows []string) {
	for line := range strings.Lines(page) {
		if rowStart.MatchString(line) {
			rows = append(rows, strings.TrimSuffix(line, "\n"))
		}
	}
	return rows
}

// withRows returns a page with other rows in the place of its own.
func withRows(page string, rows []string) string {
	first := strings.Index(page, rowStart.FindString(page))
	rest := page[first:]
	for rowStart.MatchString(rest) && strings.HasPrefix(rest, "| `") {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	return page[:first] + strings.Join(rows, "\n") + "\n" + rest
}

var labelName = regexp.MustCompile(`[{,](\w+)="`)

// rowsOf returns the rows of what /metrics says. Those of the process and of Go's runtime have one where they had one before.
func rowsOf(text string, before []string) (rows []string) {
	kinds, helps, labels := map[string]string{}, map[string]string{}, map[string]map[string]bool{}
	name := ""
	for line := range strings.Lines(text) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 4)
		switch {
		case words[0] != "#":
			for _, found := range labelName.FindAllStringSubmatch(line, -1) {
				if found[1] != "le" && found[1] != "quantile" {
					labels[name][found[1]] = true
				}
			}
		case words[1] == "HELP":
			name = words[2]
			helps[name], labels[name] = strings.NewReplacer("<", "&lt;", "|", `\|`).Replace(words[3]), map[string]bool{}
		default:
			kinds[name] = words[3]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		prefix, _, _ := strings.Cut(name, "_")
		isListed := func(row string) bool { return strings.HasPrefix(row, "| `"+name+"` |") }
		if slices.Contains([]string{"go", "process", "promhttp"}, prefix) && !slices.ContainsFunc(before, isListed) {
			continue
		}
		names := strings.Join(slices.Sorted(maps.Keys(labels[name])), ", ")
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", name, kinds[name], names, helps[name]))
	}
	return rows
}
