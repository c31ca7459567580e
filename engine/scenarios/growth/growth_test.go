// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package growth_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// corner is a number that grows, and the work whose cost grows with it.
type corner struct {
	// title names the work, unit what the cost is divided by.
	title, unit string
	// few are the numbers of the test, many those of the table.
	few, many []int
	// kept says that the work leaves something in memory for each unit.
	kept bool
	// prepare makes everything ready for the work with this number.
	prepare func(g *ground, n int) job
}

// job is work whose cost is taken.
type job struct {
	units int
	run   func()
	// check fails the test unless the work was done.
	check func()
}

// cost is what one unit of work took.
type cost struct {
	// processor is the time that the process took for it, the server in memory included.
	processor time.Duration
	// bytes and objects are what it allocated, and kept is by how many bytes the heap has grown.
	bytes, objects, kept float64
}

const (
	// steady is how many times the least cost of a unit the last one may be. What is allocated varies little from run to run.
	steady = 1.25
	// steadyTime is the same of processor time, which varies.
	steadyTime = 1.5
)

// TestNoCostGrowsFasterThanItsWork takes each corner with few and with many, and fails where a unit of many allocates more
// than a unit of few. Work that allocates nothing shows in the table alone, by its processor time.
func TestNoCostGrowsFasterThanItsWork(t *testing.T) {
	table := os.Getenv("HANDWERK_GROWTH") != ""
	if table {
		fmt.Print("| work | how many | cost of | processor time | allocated | objects | kept |\n|---|---|---|---|---|---|---|\n")
	}
	for _, c := range corners {
		t.Run(c.title, func(t *testing.T) {
			numbers := c.few
			if table {
				numbers = c.many
			}
			var costs []cost
			for _, n := range numbers {
				kit.Run(t, func(t *testing.T, cluster *kit.Cluster) {
					costs = append(costs, measure(c.prepare(&ground{cluster, t}, n)))
				})
				if table {
					fmt.Println(c.row(n, costs))
				}
			}
			c.judge(t, costs)
		})
	}
}

// judge fails the test if a unit allocates more with the last number than with an earlier one.
func (c corner) judge(t *testing.T, costs []cost) {
	t.Helper()
	for what, of := range map[string]func(cost) float64{
		"bytes":   func(one cost) float64 { return one.bytes },
		"objects": func(one cost) float64 { return one.objects },
	} {
		if last, least := of(costs[len(costs)-1]), least(costs, of); last > steady*least {
			t.Errorf("a %s allocates %.0f %s, and %.0f where there are few: the cost grows faster than the work", c.unit, last, what, least)
		}
	}
}

func least(costs []cost, of func(cost) float64) float64 {
	return of(slices.MinFunc(costs, func(a, b cost) int {
		if of(a) < of(b) {
			return -1
		}
		return 1
	}))
}

// row is the row of the last cost. What is larger than it may be is bold.
func (c corner) row(n int, costs []cost) string {
	last := costs[len(costs)-1]
	mark := func(text string, most float64, of func(cost) float64) string {
		if of(last) > most*least(costs, of) {
			return "**" + text + "**"
		}
		return text
	}
	kept := "–"
	if c.kept {
		kept = mark(fmt.Sprintf("%.1f KB", last.kept/1e3), steady, func(one cost) float64 { return one.kept })
	}
	return fmt.Sprintf("| %s | %d | a %s | %s | %s | %s | %s |", c.title, n, c.unit,
		mark(fmt.Sprintf("%.0f µs", last.processor.Seconds()*1e6), steadyTime, func(one cost) float64 { return one.processor.Seconds() }),
		mark(fmt.Sprintf("%.1f KB", last.bytes/1e3), steady, func(one cost) float64 { return one.bytes }),
		mark(fmt.Sprintf("%.0f", last.objects), steady, func(one cost) float64 { return one.objects }), kept)
}

// measure does the work and returns what a unit of it took.
func measure(j job) cost {
	before := take()
	began := processor()
	j.run()
	ended := processor()
	after := take()
	j.check()
	each := func(more, less uint64) float64 { return (float64(more) - float64(less)) / float64(j.units) }
	return cost{
		processor: (ended - began) / time.Duration(j.units),
		bytes:     each(after.TotalAlloc, before.TotalAlloc), objects: each(after.Mallocs, before.Mallocs),
		kept: each(after.HeapAlloc, before.HeapAlloc),
	}
}

// take is what there is in memory, after the garbage is collected.
func take() (out runtime.MemStats) {
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	runtime.ReadMemStats(&out)
	return out
}

// processor is the processor time of this process.
func processor() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // Linux does not fail here
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// ground is a cluster in memory on which operators run.
type ground struct {
	*kit.Cluster
	t *testing.T
}

// launch runs an operator until the test ends, and returns when it is at rest. Unlike [kit.Cluster.Start] it keeps no log
// and no requests, which would count.
func (g *ground) launch(op *dsl.Operator) {
	g.t.Helper()
	op.Settings.LeaderElection.Mode = dsl.LeaderNone
	e, err := engine.New(op, engine.Settings{Config: g.Config()})
	if err != nil {
		g.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	g.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			g.t.Error(err)
		}
	})
	g.rest()
}

// rest returns when the operator has nothing to do, now and in the next minute.
func (g *ground) rest() { g.Advance(time.Minute) }
