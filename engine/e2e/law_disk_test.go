// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestADiskThatIsFull holds what an operator does while etcd takes no writes: one line says so, however many objects it
// concerns, no handler's work is lost, and all of it is written when there is space again.
func TestADiskThatIsFull(t *testing.T) {
	t.Parallel()
	const count, ticks = 20, 5
	own := plane.Own(t, "samples/foo/crd.yaml")
	objects := own.Objects(foos, "default")
	name := func(i int) string { return fmt.Sprint("foo-", i) }
	for i := range count {
		objects.Create(t, foo(name(i), 1))
	}
	ran := make(chan struct{}, 1000)
	op := dsl.New("beats")
	op.Resource(foos, func(r *dsl.Resource) {
		r.Every(time.Second, "beat", func(_ context.Context, r *dsl.Request) error {
			r.Patch.Annotate("example.com/beat", fmt.Sprint(time.Now().UnixNano()))
			select {
			case ran <- struct{}{}:
			default:
			}
			return nil
		})
	})
	running := cluster.Run(t, op, engine.Settings{Config: own.Config()})
	beats := func(when string) {
		t.Helper()
		since := time.Now().UnixNano()
		for i := range count {
			objects.Await(t, name(i), when, func(o *unstructured.Unstructured) bool {
				var at int64
				_, _ = fmt.Sscan(o.GetAnnotations()["example.com/beat"], &at) // there was none
				return at > since
			})
		}
	}
	beats("a beat")
	free := own.FillDisk()
	for len(ran) > 0 {
		<-ran
	}
	for range ticks * count {
		<-ran // handlers run, and what they want is refused
	}
	free()
	beats("a beat when there is space again")
	running.Await(t, "requests get through again")
	var loud []string
	for _, line := range running.All() {
		if !strings.Contains(line, `"level"=1`) && (strings.Contains(line, "etcdserver") || strings.Contains(line, "ERROR") || strings.Contains(line, "requests fail")) {
			loud = append(loud, line)
		}
	}
	if len(loud) != 1 || !strings.Contains(loud[0], "requests fail") || !strings.Contains(loud[0], "storage") {
		t.Errorf("the log says %d lines, want one of an outage:\n%s", len(loud), strings.Join(loud, "\n"))
	}
}
