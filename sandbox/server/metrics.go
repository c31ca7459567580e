// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strings"
)

// metricsText is the content type of metrics.
const metricsText = "text/plain; version=0.0.4; charset=utf-8"

// metrics returns the metrics of a real server that mean something here, in the form of Prometheus.
func (s *Server) metrics() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out strings.Builder
	out.WriteString("# HELP apiserver_resource_objects Number of stored objects, by resource.\n# TYPE apiserver_resource_objects gauge\n")
	for _, t := range s.sorted() {
		if t.stored == nil { // else another table has the objects
			fmt.Fprintf(&out, "apiserver_resource_objects{group=%q,resource=%q} %d\n", t.group, t.plural, len(t.objects.In("")))
		}
	}
	return out.String()
}
