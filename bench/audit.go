// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// request is a line of the audit log.
type request struct {
	UserAgent, Verb, RequestURI string
	RequestReceivedTimestamp    time.Time
	ObjectRef                   struct{ Resource, Subresource, Name string }
	ResponseStatus              struct{ Code int }
}

// requested returns the requests about objects that a program with such a user agent has sent since the log was so
// long. Watches do not count, for they are logged when they end, nor does what is asked of the server as a whole. The
// log is written before the answer is, so it is complete once the program has nothing under way.
func (p *plane) requested(agent string, since int64) ([]request, error) {
	file, err := os.Open(p.audit)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(since, io.SeekStart); err != nil {
		return nil, err
	}
	var out []request
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, err
		}
		if strings.HasPrefix(r.UserAgent, agent) && r.Verb != "watch" && r.ObjectRef.Resource != "" {
			out = append(out, r)
		}
	}
}

// logged is how long the log is.
func (p *plane) logged() (int64, error) {
	info, err := os.Stat(p.audit)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// about are the requests for objects: without lists, and without those that an operator sends once, about its rights and the
// CRDs.
func about(requests []request) []request {
	return slices.DeleteFunc(slices.Clone(requests), func(r request) bool {
		return r.Verb == "list" || strings.HasSuffix(r.ObjectRef.Resource, "reviews") || r.ObjectRef.Resource == "customresourcedefinitions"
	})
}

// writes are those of them that change something.
func writes(requests []request) []request {
	return slices.DeleteFunc(about(requests), func(r request) bool { return r.Verb == "get" })
}

// sorted are the keys of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
