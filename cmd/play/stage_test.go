// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
)

// patience is how long a test waits for what has to come. It is generous: a machine may be busy.
const patience = 20 * time.Second

// sites is an operator that keeps a Deployment for each Site.
const sites = `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: sites}
resources:
  - resource: sites.v1.example.com
    schema:
      kind: Site
      spec: {replicas: integer, large: integer}
    handlers:
      - id: web
        apply:
          web:
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: "${self.metadata.name}"}
            spec:
              replicas: ${self.spec.replicas}
              selector: {matchLabels: &labels {site: "${self.metadata.name}"}}
              template:
                metadata: {labels: *labels}
                spec: {containers: [{name: web, image: nginx}]}
`

// example is a Site, as it lies beside the operator.
const example = `apiVersion: example.com/v1
kind: Site
metadata: {name: home}
spec: {replicas: 2}
`

// stage is a play in a test.
type stage struct {
	t        *testing.T
	dir      string
	settings Settings
	out      *transcript
	stop     context.CancelFunc
	ended    chan error
	// label is that of its goroutines.
	label string
}

// newStage returns a play of the operator sites with an example, which has not begun.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir(), out: &transcript{changed: make(chan struct{})}, label: t.Name()}
	s.write("operator.yaml", sites)
	s.write("example.yaml", example)
	s.settings = Settings{
		Paths:    []string{s.dir},
		Load:     func() (*dsl.Operator, error) { return config.Load([]string{s.dir}, handlers.Standard()) },
		Examples: true, Namespace: "default", Out: s.out,
	}
	return s
}

// write writes a file of the configuration.
func (s *stage) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// begin begins the play.
func (s *stage) begin() {
	ctx, stop := context.WithCancel(s.t.Context())
	s.stop, s.ended = stop, make(chan error, 1)
	go pprof.Do(ctx, pprof.Labels("play", s.label), func(ctx context.Context) { s.ended <- Run(ctx, s.settings) })
	s.t.Cleanup(stop)
}

// end ends the play as Ctrl-C does.
func (s *stage) end() {
	s.t.Helper()
	s.stop()
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Errorf("the play ended with %v", err)
		}
	case <-time.After(patience):
		s.t.Fatalf("the play has not ended:\n%s", s.out)
	}
}

// awaits waits for a line that matches, after those that were awaited before, and returns it without its time.
func (s *stage) awaits(pattern string) string {
	s.t.Helper()
	want := regexp.MustCompile(pattern)
	late := time.After(patience)
	for {
		line, changed := s.out.find(want)
		if line != "" {
			return line
		}
		select {
		case <-changed:
		case err := <-s.ended:
			s.t.Fatalf("the play ended with %v before %s:\n%s", err, pattern, s.out)
		case <-late:
			s.t.Fatalf("there is no line %s:\n%s", pattern, s.out)
		}
	}
}

// kubeconfig is the path that the play has printed.
func (s *stage) kubeconfig() string {
	s.t.Helper()
	_, path, _ := strings.Cut(s.awaits("export KUBECONFIG="), "=")
	return path
}

// client is one in another process.
func (s *stage) client(kubeconfig string) dynamic.Interface {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		s.t.Fatal(err)
	}
	config.UserAgent = "somebody/1"
	return dynamic.NewForConfigOrDie(config)
}

var (
	siteGVR       = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "sites"}
	deploymentGVR = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// get reads an object in the namespace default.
func (s *stage) get(client dynamic.Interface, gvr schema.GroupVersionResource, name string) *unstructured.Unstructured {
	s.t.Helper()
	o, err := client.Resource(gvr).Namespace("default").Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// awaitNoGoroutines waits until the play has no goroutines.
func (s *stage) awaitNoGoroutines() {
	s.t.Helper()
	late, tick := time.After(patience), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		var all strings.Builder
		if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
			s.t.Fatal(err)
		}
		if !strings.Contains(all.String(), `"play":"`+s.label+`"`) {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			s.t.Fatalf("goroutines are left:\n%s", all.String())
		}
	}
}

// transcript is what a play has written.
type transcript struct {
	mu   sync.Mutex
	text string
	// read is how much of the text was awaited.
	read    int
	changed chan struct{}
}

// Write takes lines.
func (o *transcript) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text += string(data)
	close(o.changed)
	o.changed = make(chan struct{})
	return len(data), nil
}

// String returns all lines.
func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text
}

// find returns the next line that matches, or a channel that is closed with the next line.
func (o *transcript) find(want *regexp.Regexp) (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.read
	for line := range strings.Lines(o.text[o.read:]) {
		at += len(line)
		if text := strings.TrimSpace(timeless.ReplaceAllString(line, "")); want.MatchString(text) {
			o.read = at
			return text, nil
		}
	}
	return "", o.changed
}

var timeless = regexp.MustCompile(`^\d\d:\d\d:\d\d\.\d\d\d  `)
