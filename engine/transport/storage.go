// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"io"
	"net/http"
	"strings"
)

// mostPeeked is how much of an answer is looked at, in bytes: the Status of an error of etcd is shorter.
const mostPeeked = 1024

// unstored reports whether an answer is an error of the API server's storage. It leaves the answer as it is.
func unstored(response *http.Response) bool {
	if response.Body == nil {
		return false
	}
	buffered := bufio.NewReaderSize(response.Body, mostPeeked)
	response.Body = struct {
		io.Reader
		io.Closer
	}{buffered, response.Body}
	head, _ := buffered.Peek(mostPeeked) // what is there, also where that is less
	return ofStorage(string(head))
}

// ofStorage reports whether a text is an error of etcd about itself. It has others about a single request: one that is
// too large stays so.
func ofStorage(text string) bool {
	_, said, found := strings.Cut(text, "etcdserver: ")
	return found && !strings.HasPrefix(said, "request is too large")
}
