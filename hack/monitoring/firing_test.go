// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// of are the labels that Prometheus puts on each series of one Pod.
const of = `namespace="shop", job="webapp", pod="webapp-0"`

// other are those of another Pod of the operator.
const other = `namespace="shop", job="webapp", pod="webapp-1"`

// TestAlertsFire plays samples, one a minute, and holds which alerts fire at the end, by their summaries.
func TestAlertsFire(t *testing.T) {
	tests := map[string]struct {
		// series are as in promtool's tests: a series and its samples, 0x10 for eleven times 0.
		series []string
		want   []string
	}{
		"an operator that is well": {series: []string{
			`up{` + of + `} 1x30`, `up{` + other + `} 1x30`,
			`leader_election_master_status{` + of + `, name="webapp-leader"} 1x30`, `leader_election_master_status{` + other + `, name="webapp-leader"} 0x30`,
			`handwerk_resource_up{` + of + `, resource="foos"} 1x30`, `handwerk_feed_up{` + of + `, resource="foos", feed="child/bars"} 1x30`,
			`handwerk_index_up{` + of + `, index="hosts"} 1x30`, `handwerk_breaker_open{` + of + `, resource="foos"} 0x30`,
			`handwerk_objects{` + of + `, resource="foos", state="ready"} 9x30`, `handwerk_objects{` + of + `, resource="foos", state="waiting"} 9x30`,
			`handwerk_objects{` + of + `, resource="foos", state="failing"} 0x30`, `handwerk_objects{` + of + `, resource="foos", state="held"} 0x30`,
			`handwerk_informer_age_seconds{` + of + `, resource="foos"} 20+3x10 1+5x20`,
			`workqueue_queue_duration_seconds_bucket{` + of + `, name="foos", le="10"} 0+60x30`, `workqueue_queue_duration_seconds_bucket{` + of + `, name="foos", le="+Inf"} 0+60x30`,
			`workqueue_longest_running_processor_seconds{` + of + `, name="foos"} 0x30`,
		}},
		"a limit holds deletions": {
			series: []string{
				`up{` + of + `} 1x30`, `handwerk_deletions_waiting{` + of + `, resource="foos", kind="ConfigMap", cause="handler", reason="ShareExceeded"} 0x20 70x10`,
				`handwerk_deletions_waiting{` + of + `, resource="foos", kind="ConfigMap", cause="deletion", reason="RateExceeded"} 70x30`,
			},
			want: []string{"70 deletions of ConfigMap of foos are held."},
		},
		"no Pod answers": {
			series: []string{`up{` + of + `} 1x10 0x20`, `up{` + other + `} 1x10 0x20`, `handwerk_resource_up{` + of + `, resource="foos"} 1x10`},
			want:   []string{"No process of the operator webapp answers."},
		},
		"one of two Pods answers": {
			series: []string{`up{` + of + `} 1x30`, `up{` + other + `} 1x10 0x20`, `handwerk_resource_up{` + of + `, resource="foos"} 1x30`},
		},
		"something else does not answer": {series: []string{`up{namespace="shop", job="db"} 0x30`}},
		"an operator that was taken away": {
			series: []string{`up{` + of + `} 1x10`, `leader_election_master_status{` + of + `, name="webapp-leader"} 1x10`, `handwerk_resource_up{` + of + `, resource="foos"} 1x10`},
		},
		"all Pods stand by": {
			series: []string{`leader_election_master_status{` + of + `, name="webapp-leader"} 0x30`, `leader_election_master_status{` + other + `, name="webapp-leader"} 0x30`},
			want:   []string{"No process of the operator webapp leads."},
		},
		"leadership goes over within a minute": {
			series: []string{`leader_election_master_status{` + of + `, name="webapp-leader"} 1x27 0x3`, `leader_election_master_status{` + other + `, name="webapp-leader"} 0x28 1x2`},
		},
		"a resource is not served": {
			series: []string{`handwerk_resource_up{` + of + `, resource="foos"} 1x10 0x20`, `handwerk_resource_up{` + other + `, resource="foos"} 1x30`},
			want:   []string{"The operator webapp does not handle foos."},
		},
		"a resource is listed for five minutes": {
			series: []string{`handwerk_resource_up{` + of + `, resource="foos"} 0x5 1x25`},
		},
		"children and an index are not watched": {
			series: []string{`handwerk_feed_up{` + of + `, resource="foos", feed="child/bars"} 0x30`, `handwerk_index_up{` + of + `, index="hosts"} 0x30`},
			want:   []string{"The operator webapp does not watch all of index hosts.", "The operator webapp does not watch child/bars of foos."},
		},
		"a right is missing": {
			series: []string{`handwerk_missing_rights{` + of + `, resource="bars", verb="create"} 2x30`},
			want:   []string{"The operator webapp may not create bars."},
		},
		"a right is given after ten minutes": {
			series: []string{`handwerk_missing_rights{` + of + `, resource="bars", verb="create"} 1x10 stale`},
		},
		"handlers fail": {
			series: []string{`handwerk_objects{` + of + `, resource="foos", state="failing"} 3x30`, `handwerk_objects{` + other + `, resource="foos", state="failing"} 0x30`},
			want:   []string{"Handlers of foos fail for 3 objects."},
		},
		"a handler fails now and then": {series: []string{`handwerk_objects{` + of + `, resource="foos", state="failing"} 1x10 0 1x10 0 1x8`}},
		"deletions are held": {
			series: []string{`handwerk_objects{` + of + `, resource="foos", state="held"} 2x30`},
			want:   []string{"2 objects of foos cannot be deleted."},
		},
		"objects wait long": {
			series: []string{
				`workqueue_queue_duration_seconds_bucket{` + of + `, name="foos", le="100"} 0x30`,
				`workqueue_queue_duration_seconds_bucket{` + of + `, name="foos", le="1000"} 0+60x30`, `workqueue_queue_duration_seconds_bucket{` + of + `, name="foos", le="+Inf"} 0+60x30`,
			},
			want: []string{"Objects of foos are handled late, by 16m 31s."},
		},
		"a handler hangs": {
			series: []string{`workqueue_longest_running_processor_seconds{` + of + `, name="foos"} 0+60x30`},
			want:   []string{"Objects of foos are handled late, by 21m 0s."},
		},
		"an object loops, and is looked at each minute": {
			series: []string{`handwerk_breaker_open{` + of + `, resource="foos"} 1 0x2 1 0x2 1 0x2 1 0x2 1 0x2 1 0x2 1 0x2 1 0x2 1 0x2 1`},
			want:   []string{"1 objects of foos loop."},
		},
		"a watch is silent in one Pod": {
			series: []string{`handwerk_informer_age_seconds{` + of + `, resource="foos"} 0+60x30`, `handwerk_informer_age_seconds{` + other + `, resource="foos"} 50x30`},
			want:   []string{"webapp has heard nothing of foos for 30m 0s."},
		},
	}
	rules, fired := alerts(t), map[string]bool{}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			samples := parse(t, test.series)
			for name, rule := range rules {
				for _, alert := range firing(t, rule, samples) {
					fired[name] = true
					got = append(got, alert)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("what fires (-want +got):\n%s", diff)
			}
		})
	}
	for name := range rules {
		if !fired[name] {
			t.Errorf("no samples make %s fire", name)
		}
	}
}

// firing returns the summaries with which a rule fires at the last minute: its expression had a value for the labels all the time that it says.
func firing(t *testing.T, rule rulefmt.Rule, from storage.Queryable) (summaries []string) {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: promQL})
	t.Cleanup(func() { _ = engine.Close() })
	end := time.Unix(30*60, 0)
	query, err := engine.NewRangeQuery(t.Context(), from, nil, rule.Expr, end.Add(-time.Duration(rule.For)), end, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	matrix, err := query.Exec(t.Context()).Matrix()
	if err != nil {
		t.Fatalf("evaluating %s: %v", rule.Expr, err)
	}
	for _, series := range matrix {
		if len(series.Floats) == int(time.Duration(rule.For)/time.Minute)+1 {
			summaries = append(summaries, expand(t, rule, series.Metric, series.Floats[len(series.Floats)-1].F))
		}
	}
	return summaries
}

// expand returns the summary of an alert. Each annotation has to say something for each label that it names.
func expand(t *testing.T, rule rulefmt.Rule, found labels.Labels, value float64) string {
	t.Helper()
	out := map[string]string{}
	for name, text := range rule.Annotations {
		head := `{{$labels := .Labels}}{{$value := .Value}}`
		data := template.AlertTemplateData(found.Map(), nil, "", promql.Sample{F: value})
		said, err := template.NewTemplateExpander(t.Context(), head+text, rule.Alert, data, 0, nil, nil, nil).Expand()
		if err != nil || strings.Contains(said, "  ") || strings.Contains(said, " .") {
			t.Errorf("%s of %s says %q (%v)", name, rule.Alert, said, err)
		}
		out[name] = said
	}
	return out["summary"]
}

// parse returns samples as a Prometheus that has scraped them each minute.
func parse(t *testing.T, series []string) storage.Queryable {
	t.Helper()
	there := listed(t)
	var all []storage.Series
	for _, text := range series {
		found, values, err := promQL.ParseSeriesDesc(text)
		if err != nil {
			t.Fatalf("parsing %s: %v", text, err)
		}
		for _, label := range slices.Collect(maps.Keys(found.Map())) {
			if label != "__name__" && !slices.Contains(there[found.Get("__name__")], label) {
				t.Errorf("no operator has such a series: %s", text)
			}
		}
		var samples []chunks.Sample
		for minute, value := range values {
			if !value.Omitted {
				samples = append(samples, sample{minute, value.Value})
			}
		}
		all = append(all, storage.NewListSeries(found, samples))
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			return &seriesSet{left: slices.DeleteFunc(slices.Clone(all), func(s storage.Series) bool { return !matches(s.Labels(), matchers) })}
		},
	}}
}

func matches(of labels.Labels, all []*labels.Matcher) bool {
	return !slices.ContainsFunc(all, func(m *labels.Matcher) bool { return !m.Matches(of.Get(m.Name)) })
}

// seriesSet is series one after the other.
type seriesSet struct {
	at   storage.Series
	left []storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.at, s.left = s.left[0], s.left[1:]
	return true
}

func (s *seriesSet) At() storage.Series                     { return s.at }
func (*seriesSet) Err() error                               { return nil }
func (*seriesSet) Warnings() (none annotations.Annotations) { return nil }

// sample is the value of a series in a minute.
type sample struct {
	minute int
	value  float64
}

func (s sample) T() int64                           { return int64(s.minute) * time.Minute.Milliseconds() }
func (sample) ST() int64                            { return 0 }
func (s sample) F() float64                         { return s.value }
func (sample) H() (none *histogram.Histogram)       { return nil }
func (sample) FH() (none *histogram.FloatHistogram) { return nil }
func (sample) Type() chunkenc.ValueType             { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample                { return s }
