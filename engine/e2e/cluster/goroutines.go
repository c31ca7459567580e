// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"fmt"
	"runtime/pprof"
	"strings"
	"time"
)

// goroutineLabel is the label that goroutines inherit from their parent.
const goroutineLabel = "e2e-operator"

// awaitNoGoroutines waits until no goroutine has the label, and returns the stacks of those that have not ended in
// time. It must poll.
func awaitNoGoroutines(id string, most time.Duration) (leak string) {
	late, tick := time.After(most), time.NewTicker(glance)
	defer tick.Stop()
	for {
		if leak = goroutines(id); leak == "" {
			return ""
		}
		select {
		case <-tick.C:
		case <-late:
			return leak
		}
	}
}

// goroutines returns the stacks of our and client-go's goroutines with the label. Connections are left out:
// transports keep them for the next client.
func goroutines(id string) string {
	var all bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&all, 1) // a buffer takes all
	label := fmt.Sprintf("%q:%q", goroutineLabel, id)
	var found []string
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		ours := strings.Contains(stack, "handwerk-dev/handwerk/") || strings.Contains(stack, "k8s.io/client-go/")
		if ours && strings.Contains(stack, label) && !strings.Contains(stack, "k8s.io/client-go/transport.") {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}
