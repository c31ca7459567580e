// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

const (
	// many is how many objects the server is made for, in a number of namespaces.
	many   = 10_000
	spaces = 20
	// size is the length of an object's JSON in bytes, with all that the server adds.
	size = 1_500
)

// filler brings an object to its size.
var filler = strings.Repeat("x", size-540)

func foosIn(i int) string {
	return fmt.Sprintf("/apis/example.com/v1/namespaces/team-%d/foos", i%spaces)
}

func fooBody(i, n int) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"foo-%d","labels":{"app":"foo","shard":"s%d"}},"spec":{"n":%d,"text":%q}}`, i, i%100, n, filler)
}

// newMany returns a server with many objects, as it is set for use.
func newMany(t testing.TB) wire {
	t.Helper()
	w := newWire(t, complete.Settings())
	w.send(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
	for i := range spaces {
		w.send(http.MethodPost, "/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":"team-%d"}}`, i))
	}
	for i := range many {
		if out := w.send(http.MethodPost, foosIn(i), fooBody(i, 0)); out.code != http.StatusCreated {
			t.Fatal(out.text)
		}
	}
	return w
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// allocated returns the bytes that have been allocated so far.
func allocated() int64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.TotalAlloc)
}

// TestManyObjectsTakeLittleMoreThanTheirJSON holds the memory of 10,000 objects, after each was written twice
// and read, and the garbage of reading them.
func TestManyObjectsTakeLittleMoreThanTheirJSON(t *testing.T) {
	newWire(t, server.Settings{}).put("default", "a") // what is made once
	before := heap()
	w := newMany(t)
	stored := len(w.send(http.MethodGet, "/apis/example.com/v1/foos", "").text)
	if each := stored / many; each < size-150 || each > size+150 {
		t.Fatalf("an object has %d bytes of JSON", each)
	}
	written := heap() - before
	for i := range many {
		w.send(http.MethodPut, foosIn(i%many)+fmt.Sprint("/foo-", i%many), fooBody(i%many, i))
	}
	w.send(http.MethodGet, "/apis/example.com/v1/foos?labelSelector=shard%3Ds1&fieldSelector=spec.n%3D1", "")
	after := heap() - before
	t.Logf("%d KB of JSON: %d KB when created, %d KB after updates", stored>>10, written>>10, after>>10)
	// A history of at most 2,000 changes keeps as many objects again.
	if most := int64(stored) * 2; written > most || after > most {
		t.Errorf("%d KB of JSON take %d KB when created and %d KB after updates, more than %d KB", stored>>10, written>>10, after>>10, most>>10)
	}
	watched := w.open(http.MethodGet, "/apis/example.com/v1/foos?watch=true&resourceVersion=0", "").Body
	defer watched.Close()
	garbage := allocated()
	if _, err := io.CopyN(io.Discard, watched, int64(stored)); err != nil {
		t.Fatal(err)
	}
	if garbage = allocated() - garbage; garbage > int64(stored) {
		t.Errorf("a watch of %d KB of JSON allocates %d KB", stored>>10, garbage>>10)
	}
	runtime.KeepAlive(w)
}

// mixed are the requests of BenchmarkMixed, in turn. Each returns when it began: an update reads the object before.
var mixed = []struct {
	name string
	send func(w wire, i, n int) (answer, time.Time)
}{
	{"get", func(w wire, i, _ int) (answer, time.Time) {
		began := time.Now()
		return w.send(http.MethodGet, foosIn(i)+fmt.Sprint("/foo-", i), ""), began
	}},
	{"update", func(w wire, i, n int) (answer, time.Time) {
		current := w.send(http.MethodGet, foosIn(i)+fmt.Sprint("/foo-", i), "")
		body := strings.Replace(fooBody(i, n), `"labels"`, fmt.Sprintf(`"resourceVersion":%q,"labels"`, current.meta("resourceVersion")), 1)
		began := time.Now()
		return w.send(http.MethodPut, foosIn(i)+fmt.Sprint("/foo-", i), body), began
	}},
	{"patch", func(w wire, i, n int) (answer, time.Time) {
		began := time.Now()
		return w.send(http.MethodPatch, foosIn(i)+fmt.Sprint("/foo-", i), fmt.Sprintf(`{"spec":{"n":%d}}`, n), "Content-Type", "application/merge-patch+json"), began
	}},
	{"apply", func(w wire, i, n int) (answer, time.Time) {
		began := time.Now()
		return w.send(http.MethodPatch, foosIn(i)+fmt.Sprintf("/foo-%d?fieldManager=bench", i), fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"foo-%d"},"spec":{"applied":%d}}`, i, n), "Content-Type", "application/apply-patch+yaml"), began
	}},
	{"list", func(w wire, i, _ int) (answer, time.Time) { // it is not decoded: that would be the client's time
		began := time.Now()
		response := w.open(http.MethodGet, foosIn(i), "")
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body)
		return answer{code: response.StatusCode}, began
	}},
}

// mix sends requests of each kind in turn from four clients at once, and returns how long they took by kind.
func mix(b *testing.B, w wire) map[string][]time.Duration {
	b.Helper()
	var mu sync.Mutex
	took := map[string][]time.Duration{}
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for n := worker; n < b.N; n += 4 {
				kind := mixed[n/4%len(mixed)]
				out, began := kind.send(w, n*7919%many, n)
				mu.Lock()
				took[kind.name] = append(took[kind.name], time.Since(began))
				mu.Unlock()
				if out.code >= http.StatusBadRequest && out.code != http.StatusConflict {
					b.Errorf("%s: %s", kind.name, out.text)
				}
			}
		})
	}
	all.Wait()
	return took
}

// BenchmarkMixed sends requests of each kind to a server with many objects and ten watches, and reports how long the
// slowest hundredth of each kind takes, and the memory.
func BenchmarkMixed(b *testing.B) {
	if b.N == 1 {
		return // the first run is only to learn how long one request takes; its objects would count for the memory
	}
	w := newMany(b)
	for range 10 {
		body := w.open(http.MethodGet, "/apis/example.com/v1/foos?watch=true&resourceVersion=0", "").Body
		defer body.Close()
		go func() { _, _ = io.Copy(io.Discard, body) }() // it ends with the body
	}
	b.ResetTimer()
	took := mix(b, w)
	b.StopTimer()
	for name, times := range took {
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, name+"-p99-ms")
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	b.ReportMetric(float64(stats.Sys)/(1<<20), "MB-of-system")
	b.ReportMetric(float64(heap())/(1<<20), "MB-in-use")
	runtime.KeepAlive(w)
}

// TestANewServerAnswers is what BenchmarkStart runs.
func TestANewServerAnswers(t *testing.T) {
	if out := newWire(t, complete.Settings()).send(http.MethodGet, "/readyz", ""); out.code != http.StatusOK {
		t.Fatal(out.text)
	}
}

// BenchmarkStart is the time from the start of a process until its server has answered and the process has ended.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		process := exec.CommandContext(b.Context(), os.Args[0], "-test.run", "^TestANewServerAnswers$")
		if out, err := process.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
}
