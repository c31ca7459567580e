// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/util/workqueue"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

const foos = "foos.v1.example.com"

// TestNames holds the names that dashboards and alerts rely on.
func TestNames(t *testing.T) {
	m := ops.NewMetrics()
	workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[string](),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: foos, MetricsProvider: m.Queues()},
	).ShutDown()
	m.Leader("foo-leader", true)
	m.Declare(foos)
	m.Handled(ops.HandlerRun{Resource: foos, Handler: "farewell", Cause: dsl.Delete, Outcome: ops.Success})
	m.Resources(func() []ops.ResourceStats {
		return []ops.ResourceStats{{Resource: foos, LastEvent: time.Now(), Sources: map[string]bool{"child/bars.v1": true}}}
	})
	m.MissingRights(func() []ops.MissingRight {
		return []ops.MissingRight{{Resource: "deployments.apps", Verb: "create", Namespaces: 2}}
	})
	request(t, m, "GET", "/api", 200)

	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	runtime := map[string]bool{}
	for _, f := range families {
		if prefix, _, _ := strings.Cut(f.GetName(), "_"); prefix == "go" || prefix == "process" {
			runtime[prefix] = true
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", f.GetName())
		}
		got = append(got, f.GetName()+"{"+strings.Join(labels, ",")+"} "+strings.ToLower(f.GetType().String()))
	}
	want := []string{
		"handwerk_breaker_open{resource} gauge",
		"handwerk_cache_objects{resource} gauge",
		"handwerk_events_dropped_total{reporter} counter",
		"handwerk_feed_up{feed,resource} gauge",
		"handwerk_handler_duration_seconds{handler,resource} histogram",
		"handwerk_handler_runs_total{cause,handler,outcome,resource} counter",
		"handwerk_informer_age_seconds{resource} gauge",
		"handwerk_missing_rights{resource,verb} gauge",
		"handwerk_objects{resource,state} gauge",
		"handwerk_parked_keys{resource} gauge",
		"handwerk_resource_up{resource} gauge",
		"handwerk_writes_total{resource,target} counter",
		"leader_election_master_status{name} gauge",
		"rest_client_request_duration_seconds{host,verb} histogram",
		"rest_client_requests_total{code,host,method} counter",
		"workqueue_adds_total{controller,name} counter",
		"workqueue_depth{controller,name} gauge",
		"workqueue_longest_running_processor_seconds{controller,name} gauge",
		"workqueue_queue_duration_seconds{controller,name} histogram",
		"workqueue_retries_total{controller,name} counter",
		"workqueue_unfinished_work_seconds{controller,name} gauge",
		"workqueue_work_duration_seconds{controller,name} histogram",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if !runtime["go"] || !runtime["process"] {
		t.Errorf("metrics of the runtime: got %v, want those of go and of the process", runtime)
	}
	problems, err := testutil.GatherAndLint(m.Registry())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "go_") {
			continue
		}
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ops.NewMetrics()
		config := workqueue.TypedRateLimitingQueueConfig[string]{Name: foos, MetricsProvider: m.Queues()}
		open := func() workqueue.TypedRateLimitingInterface[string] {
			return workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[string](), config)
		}
		q := open()
		q.Add("a")
		q.Add("b")
		q.AddRateLimited("c")
		time.Sleep(time.Second) // a second in the bubble
		key, _ := q.Get()
		time.Sleep(3100 * time.Millisecond)
		// Running work is reported each half second, and the last time was a tenth ago.
		want(t, m, "workqueue_longest_running_processor_seconds", `
			workqueue_longest_running_processor_seconds{controller="foos.v1.example.com",name="foos.v1.example.com"} 3`)
		q.Done(key)
		want(t, m, "workqueue_adds_total", `
			workqueue_adds_total{controller="foos.v1.example.com",name="foos.v1.example.com"} 3`)
		want(t, m, "workqueue_retries_total", `
			workqueue_retries_total{controller="foos.v1.example.com",name="foos.v1.example.com"} 1`)
		want(t, m, "workqueue_depth", `
			workqueue_depth{controller="foos.v1.example.com",name="foos.v1.example.com"} 2`)
		wantSum(t, m, "workqueue_queue_duration_seconds", 1, 1)
		wantSum(t, m, "workqueue_work_duration_seconds", 1, 3.1)
		q.ShutDown()
		m.Queues().Settle(foos)
		want(t, m, "workqueue_depth", `
			workqueue_depth{controller="foos.v1.example.com",name="foos.v1.example.com"} 0`)
		synctest.Wait()
	})
}

func TestHandled(t *testing.T) {
	m := ops.NewMetrics()
	run := ops.HandlerRun{Resource: foos, Handler: "deployment", Cause: dsl.Create, Outcome: ops.Success, Duration: 2 * time.Second}
	m.Handled(run)
	m.Handled(run)
	run.Cause, run.Outcome, run.Duration = dsl.Update, ops.Panic, time.Second
	m.Handled(run)
	for cause, outcome := range map[string]string{"create": `success",resource="foos.v1.example.com"} 2`, "update": `panic",resource="foos.v1.example.com"} 1`} {
		line := `handwerk_handler_runs_total{cause="` + cause + `",handler="deployment",outcome="` + outcome
		if !slices.Contains(lines(scrape(t, m)), line) {
			t.Errorf("there is no line %s", line)
		}
	}
	wantSum(t, m, "handwerk_handler_duration_seconds", 3, 5)
}

func TestWrittenAndLeader(t *testing.T) {
	m := ops.NewMetrics()
	m.Written(foos, ops.Child)
	m.Written(foos, ops.Child)
	m.Written(foos, ops.Status)
	want(t, m, "handwerk_writes_total", `
		handwerk_writes_total{resource="foos.v1.example.com",target="child"} 2
		handwerk_writes_total{resource="foos.v1.example.com",target="status"} 1`)
	m.Leader("foo-leader", true)
	want(t, m, "leader_election_master_status", `leader_election_master_status{name="foo-leader"} 1`)
	m.Leader("foo-leader", false)
	want(t, m, "leader_election_master_status", `leader_election_master_status{name="foo-leader"} 0`)
}

// TestSeriesOfAHandlerAppearWhenItHasRun holds that a page of metrics does not list what never happened:
// of a handler's cause nothing before its first run, and then every outcome.
func TestSeriesOfAHandlerAppearWhenItHasRun(t *testing.T) {
	m := ops.NewMetrics()
	m.Declare(foos)
	for _, name := range []string{"handwerk_handler_runs_total", "handwerk_handler_duration_seconds"} {
		if n, err := testutil.GatherAndCount(m.Registry(), name); err != nil || n != 0 {
			t.Errorf("%s has %d series before a handler ran, %v; want none", name, n, err)
		}
	}
	want(t, m, "handwerk_writes_total", `
		handwerk_writes_total{resource="foos.v1.example.com",target="child"} 0
		handwerk_writes_total{resource="foos.v1.example.com",target="object"} 0
		handwerk_writes_total{resource="foos.v1.example.com",target="other"} 0
		handwerk_writes_total{resource="foos.v1.example.com",target="status"} 0`)
	m.Handled(ops.HandlerRun{Resource: foos, Handler: "farewell", Cause: dsl.Delete, Outcome: ops.Success})
	want(t, m, "handwerk_handler_runs_total", `
		handwerk_handler_runs_total{cause="delete",handler="farewell",outcome="failed",resource="foos.v1.example.com"} 0
		handwerk_handler_runs_total{cause="delete",handler="farewell",outcome="ignored",resource="foos.v1.example.com"} 0
		handwerk_handler_runs_total{cause="delete",handler="farewell",outcome="panic",resource="foos.v1.example.com"} 0
		handwerk_handler_runs_total{cause="delete",handler="farewell",outcome="retry",resource="foos.v1.example.com"} 0
		handwerk_handler_runs_total{cause="delete",handler="farewell",outcome="success",resource="foos.v1.example.com"} 1
		handwerk_handler_runs_total{cause="delete",handler="farewell",outcome="timeout",resource="foos.v1.example.com"} 0
		handwerk_handler_runs_total{cause="delete",handler="farewell",outcome="waiting",resource="foos.v1.example.com"} 0`)
}

func TestResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ops.NewMetrics()
		if n, err := testutil.GatherAndCount(m.Registry(), "handwerk_resource_up"); err != nil || n != 0 {
			t.Errorf("before the state is known: got %d series, %v; want none", n, err)
		}
		last := time.Now()
		time.Sleep(90 * time.Second)
		m.Resources(func() []ops.ResourceStats {
			return []ops.ResourceStats{
				{Resource: foos, Up: true, Sources: map[string]bool{"child/bars.v1": true, "related/peers": false}, Objects: 7, Parked: 2, Broken: 1, LastEvent: last, Health: map[ops.Health]int{ops.Ready: 4, ops.Failing: 2, ops.Held: 1}},
				{Resource: "bars.v1.example.com"},
			}
		})
		want(t, m, "handwerk_resource_up", `
			handwerk_resource_up{resource="bars.v1.example.com"} 0
			handwerk_resource_up{resource="foos.v1.example.com"} 1`)
		want(t, m, "handwerk_feed_up", `
			handwerk_feed_up{feed="child/bars.v1",resource="foos.v1.example.com"} 1
			handwerk_feed_up{feed="related/peers",resource="foos.v1.example.com"} 0`)
		want(t, m, "handwerk_cache_objects", `
			handwerk_cache_objects{resource="bars.v1.example.com"} 0
			handwerk_cache_objects{resource="foos.v1.example.com"} 7`)
		want(t, m, "handwerk_objects", `
			handwerk_objects{resource="bars.v1.example.com",state="failing"} 0
			handwerk_objects{resource="bars.v1.example.com",state="held"} 0
			handwerk_objects{resource="bars.v1.example.com",state="paused"} 0
			handwerk_objects{resource="bars.v1.example.com",state="ready"} 0
			handwerk_objects{resource="bars.v1.example.com",state="waiting"} 0
			handwerk_objects{resource="foos.v1.example.com",state="failing"} 2
			handwerk_objects{resource="foos.v1.example.com",state="held"} 1
			handwerk_objects{resource="foos.v1.example.com",state="paused"} 0
			handwerk_objects{resource="foos.v1.example.com",state="ready"} 4
			handwerk_objects{resource="foos.v1.example.com",state="waiting"} 0`)
		want(t, m, "handwerk_parked_keys", `
			handwerk_parked_keys{resource="bars.v1.example.com"} 0
			handwerk_parked_keys{resource="foos.v1.example.com"} 2`)
		want(t, m, "handwerk_breaker_open", `
			handwerk_breaker_open{resource="bars.v1.example.com"} 0
			handwerk_breaker_open{resource="foos.v1.example.com"} 1`)
		want(t, m, "handwerk_informer_age_seconds", `
			handwerk_informer_age_seconds{resource="foos.v1.example.com"} 90`)
	})
}

func TestAScrapeLeavesOutFaultyMetricsAndLogsThem(t *testing.T) {
	m := ops.NewMetrics()
	m.Leader("foo-leader", true)
	m.Resources(func() []ops.ResourceStats { return []ops.ResourceStats{{Resource: foos}, {Resource: foos}} })
	var logged []string
	log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
	w := httptest.NewRecorder()
	m.Handler(log).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 || !strings.Contains(w.Body.String(), `leader_election_master_status{name="foo-leader"} 1`) {
		t.Errorf("got %d and %.200q", w.Code, w.Body.String())
	}
	if len(logged) != 1 || !strings.Contains(logged[0], "handwerk_resource_up") {
		t.Errorf("log: got %q, want a line on handwerk_resource_up", logged)
	}
	m.Handler(logr.Logger{}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil))
}

// want compares the samples of one metric, given without comments and in the order of a scrape.
func want(t *testing.T, m *ops.Metrics, name, samples string) {
	t.Helper()
	got := slices.DeleteFunc(lines(scrape(t, m)), func(line string) bool {
		return !strings.HasPrefix(line, name+"{")
	})
	if diff := cmp.Diff(lines(samples), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// wantSum compares the count and the sum of a histogram that has one series.
func wantSum(t *testing.T, m *ops.Metrics, name string, count uint64, sum float64) {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		if h := f.GetMetric()[0].GetHistogram(); h.GetSampleCount() != count || h.GetSampleSum() != sum {
			t.Errorf("%s: got %d samples with sum %v, want %d with %v", name, h.GetSampleCount(), h.GetSampleSum(), count, sum)
		}
		return
	}
	t.Errorf("%s is not there", name)
}

func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}
