// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"log/slog"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// promQL is the language as each Prometheus reads it.
var promQL = parser.NewParser(parser.Options{})

// alerts returns the alerts by name.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	file, faults := rulefmt.Parse([]byte(read(t, "deploy/chart/files/alerts.yaml")), false, model.LegacyValidation, promQL, slog.Default())
	if len(faults) > 0 {
		t.Fatalf("reading alerts: %v", faults)
	}
	out := map[string]rulefmt.Rule{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			out[rule.Alert] = rule
		}
	}
	return out
}

func TestAlertsUseMetricsThatThereAre(t *testing.T) {
	there := listed(t)
	for _, rule := range alerts(t) {
		there.check(t, rule.Expr)
	}
}

func TestEachAlertSaysHowGraveItIsAndWhatToDo(t *testing.T) {
	for name, rule := range alerts(t) {
		if rule.For == 0 {
			t.Errorf("%s has no for", name)
		}
		if s := rule.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has severity %q", name, s)
		}
		if rule.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", name)
		}
		if checkSections(t, name, rule.Annotations["description"]) == 0 {
			t.Errorf("%s names no section of docs/troubleshooting.md", name)
		}
	}
}
