// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"io"
	"net/http"
)

// guarded returns the request with a body that asks the fence once more when it is sent. Between the
// fence and the wire a request may wait for a connection, or its goroutine for its turn, and the
// process may be stopped meanwhile. The API server does nothing with half a body.
func guarded(request *http.Request, held Held) *http.Request {
	if request.Body == nil || request.Body == http.NoBody {
		return request
	}
	guard := func(body io.ReadCloser) io.ReadCloser {
		return &guardedBody{ReadCloser: body, held: func() bool { return held(request.Context()) }}
	}
	out := request.WithContext(request.Context()) // a copy: the request is its sender's
	out.Body = guard(request.Body)
	if again := request.GetBody; again != nil { // for a connection that broke before it was used
		out.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				return nil, err
			}
			return guard(body), nil
		}
	}
	return out
}

type guardedBody struct {
	io.ReadCloser
	held func() bool
}

func (b *guardedBody) Read(into []byte) (int, error) {
	if !b.held() {
		return 0, ErrNotLeading
	}
	return b.ReadCloser.Read(into)
}
