// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"
)

// BenchmarkWatch measures what is done for an event of a Foo of 2.5 KB, from the bytes of the response to the object of
// the cache.
func BenchmarkWatch(b *testing.B) {
	text, err := os.ReadFile("../../../../dsl/plain/scan/testdata/foo.json")
	if err != nil {
		b.Fatal(err)
	}
	var frame bytes.Buffer
	frame.WriteString(`{"type":"MODIFIED","object":`)
	if err := json.Compact(&frame, text); err != nil {
		b.Fatal(err)
	}
	frame.WriteString("}\n")
	t := transformer(b)
	info := serializer{dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer, style{cut: t.Convert}}.SupportedMediaTypes()[0]
	frames := info.StreamSerializer.NewFrameReader(io.NopCloser(&repeating{text: frame.Bytes()}))
	events := restwatch.NewDecoder(streaming.NewDecoder(frames, info.StreamSerializer), info.Serializer)
	b.SetBytes(int64(frame.Len()))
	b.ReportAllocs()
	for b.Loop() {
		_, object, err := events.Decode()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := t.Transform(object.(*unstructured.Unstructured)); err != nil {
			b.Fatal(err)
		}
	}
}

// repeating is a stream of one event, again and again.
type repeating struct {
	text []byte
	at   int
}

func (r *repeating) Read(into []byte) (int, error) {
	n := copy(into, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}
