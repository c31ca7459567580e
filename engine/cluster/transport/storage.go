// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"io"
	"net/http"
	"strings"
)

// mostPeeked is the number of bytes of a response to look at. The Status of an error of etcd is shorter.
const mostPeeked = 1024

// unstored reports whether a response is an error of the API server's storage. The caller can still read the response.
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

// ofStorage reports whether a text is an error of etcd about itself. Errors about a single request, such as one that is too
// large, do not count.
func ofStorage(text string) bool {
	_, said, found := strings.Cut(text, "etcdserver: ")
	return found && !strings.HasPrefix(said, "request is too large")
}
