// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/trace"
)

// A batch of spans is sent when it is full, or after a time. Past the spans that may wait, new ones are dropped.
const (
	mostSpansOfBatch = 512
	mostSpansWaiting = 4096
	traceInterval    = 5 * time.Second
	traceTimeout     = 10 * time.Second
)

// exporter sends spans to an OpenTelemetry collector, by OTLP over HTTP as JSON
// (https://opentelemetry.io/docs/specs/otlp/#otlphttp). OpenTelemetry's own exporter would bring gRPC into the program.
type exporter struct {
	url     string
	headers map[string]string
	// resource are the attributes of the process.
	resource []attribute
	spans    chan *span
	log      logr.Logger
}

var _ trace.Tracer = (*exporter)(nil)

// newExporter returns an exporter as the variables of OpenTelemetry say, or nil if they name no endpoint. Operator is the default name of
// the service.
func newExporter(env []string, operator string, log logr.Logger) (*exporter, error) {
	endpoint := lookup(env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if base := lookup(env, "OTEL_EXPORTER_OTLP_ENDPOINT"); endpoint == "" && base != "" {
		endpoint = strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	if endpoint == "" || lookup(env, "OTEL_SDK_DISABLED") == "true" {
		return nil, nil
	}
	if to, err := url.Parse(endpoint); err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return nil, fmt.Errorf("reading OTEL_EXPORTER_OTLP_ENDPOINT: %q is not a URL with http or https", endpoint)
	}
	headers, err := pairs(env, "OTEL_EXPORTER_OTLP_HEADERS")
	if err != nil {
		return nil, err
	}
	resource, err := pairs(env, "OTEL_RESOURCE_ATTRIBUTES")
	if err != nil {
		return nil, err
	}
	resource["service.name"] = cmp.Or(lookup(env, "OTEL_SERVICE_NAME"), resource["service.name"], operator)
	out := &exporter{url: endpoint, headers: headers, spans: make(chan *span, mostSpansWaiting), log: log}
	for key, value := range resource {
		out.resource = append(out.resource, attributeOf(key, value))
	}
	return out, nil
}

// pairs reads a variable of the form "a=b,c=d", whose values are encoded as in URLs.
func pairs(env []string, variable string) (map[string]string, error) {
	out := map[string]string{}
	for one := range strings.SplitSeq(lookup(env, variable), ",") {
		key, value, is := strings.Cut(strings.TrimSpace(one), "=")
		if one == "" {
			continue
		}
		decoded, err := url.PathUnescape(value)
		if !is || err != nil {
			return nil, fmt.Errorf("reading %s: want key=value pairs with commas between them, found %q", variable, one)
		}
		out[strings.TrimSpace(key)] = decoded
	}
	return out, nil
}

// span is one span in the JSON of OTLP.
type span struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	Parent     string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes,omitempty"`
	Status     spanStatus  `json:"status"`
}

type spanStatus struct {
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

type attribute struct {
	Key   string `json:"key"`
	Value struct {
		Text string `json:"stringValue"`
	} `json:"value"`
}

func attributeOf(key, value string) (a attribute) {
	a.Key, a.Value.Text = key, value
	return a
}

// The numbers of OTLP for spans within the process, spans of requests, and failures.
const (
	kindInternal, kindClient = 1, 3
	codeError                = 2
)

type spanKey struct{}

// Start begins a span.
func (e *exporter) Start(ctx context.Context, name string, attributes ...string) context.Context {
	s := &span{SpanID: randomID(8), Name: name, Kind: kindInternal, Start: nanoseconds(time.Now())}
	if parent, is := ctx.Value(spanKey{}).(*span); is {
		s.TraceID, s.Parent = parent.TraceID, parent.SpanID
	} else {
		s.TraceID = randomID(16)
	}
	for i := 0; i+1 < len(attributes); i += 2 {
		if s.Attributes = append(s.Attributes, attributeOf(attributes[i], attributes[i+1])); attributes[i] == "http.request.method" {
			s.Kind = kindClient
		}
	}
	return context.WithValue(ctx, spanKey{}, s)
}

// End ends the span of a context, and puts it into the next batch. If too many spans wait, it is dropped.
func (e *exporter) End(ctx context.Context, err error) {
	s, is := ctx.Value(spanKey{}).(*span)
	if !is {
		return
	}
	if s.End = nanoseconds(time.Now()); err != nil {
		s.Status = spanStatus{codeError, err.Error()}
	}
	select {
	case e.spans <- s:
	default:
	}
}

// IDs returns the ids of the context's span.
func (e *exporter) IDs(ctx context.Context) (traceID, spanID string) {
	if s, is := ctx.Value(spanKey{}).(*span); is {
		return s.TraceID, s.SpanID
	}
	return "", ""
}

func nanoseconds(at time.Time) string { return strconv.FormatInt(at.UnixNano(), 10) }

func randomID(bytes int) string {
	id := make([]byte, bytes)
	_, _ = rand.Read(id) // it has no errors to return
	return hex.EncodeToString(id)
}

// Run sends batches of spans until the context ends, and then the spans that are left. A collector that cannot be reached is logged once
// until it can be.
func (e *exporter) Run(ctx context.Context) {
	tick := time.NewTicker(traceInterval)
	defer tick.Stop()
	var batch []*span
	failed := false
	flush := func(ctx context.Context) {
		if len(batch) == 0 {
			return
		}
		err := e.send(ctx, batch)
		if batch = nil; (err != nil) != failed {
			if failed = err != nil; failed {
				e.log.Info("sending spans failed; they are dropped", logmark.Warning, true, "endpoint", e.url, "reason", err.Error())
			} else {
				e.log.Info("spans are sent again", "endpoint", e.url)
			}
		}
	}
	for {
		select {
		case s := <-e.spans:
			if batch = append(batch, s); len(batch) >= mostSpansOfBatch {
				flush(ctx)
			}
		case <-tick.C:
			flush(ctx)
		case <-ctx.Done():
			for len(e.spans) > 0 {
				batch = append(batch, <-e.spans)
			}
			flush(context.WithoutCancel(ctx))
			return
		}
	}
}

// follow has the engine and its requests traced, unless the exporter is nil.
func (e *exporter) follow(s *engine.Settings) {
	if e != nil {
		s.Tracer = e
		s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return trace.Transport(e, next) })
	}
}

// around returns a function that runs work and sends spans in the meantime. It returns when the last spans are sent. A
// nil exporter returns work itself.
func (e *exporter) around(work func(context.Context) error) func(context.Context) error {
	if e == nil {
		return work
	}
	return func(ctx context.Context) error {
		sending, stop := context.WithCancel(context.WithoutCancel(ctx))
		var done sync.WaitGroup
		done.Go(func() { e.Run(sending) })
		err := work(ctx)
		stop()
		done.Wait()
		return err
	}
}

// send sends a batch.
func (e *exporter) send(ctx context.Context, batch []*span) error {
	body, err := json.Marshal(map[string]any{"resourceSpans": []any{map[string]any{
		"resource":   map[string]any{"attributes": e.resource},
		"scopeSpans": []any{map[string]any{"scope": map[string]any{"name": "handwerk"}, "spans": batch}},
	}}})
	if err != nil {
		return fmt.Errorf("encoding spans: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, traceTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("sending spans: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	for key, value := range e.headers {
		request.Header.Set(key, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("sending spans: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 256))
		return fmt.Errorf("sending spans: the collector answers %s: %s", response.Status, text)
	}
	return nil
}
