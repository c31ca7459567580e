// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// BenchmarkPress holds s2 against zstd, both with the first object for a dictionary.
func BenchmarkPress(b *testing.B) {
	var base string
	hold(b, Form{}, sample(b)).body.read(func(json []byte) { base = string(json) })
	var all [][]byte
	for i := range 1000 {
		text := strings.ReplaceAll(base, "7f3ad3c2", fmt.Sprintf("%08x", uint32(i)*2654435761))
		all = append(all, []byte(strings.ReplaceAll(text, "foo", fmt.Sprintf("foo-%05d", i))))
	}
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderDictRaw(1, all[0]), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		b.Fatal(err)
	}
	unzip, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(1, all[0]), zstd.WithDecoderConcurrency(1))
	if err != nil {
		b.Fatal(err)
	}
	p := &press{}
	held, out := p.hold(all[0], nil)
	zipped := zip.EncodeAll(all[7], nil)
	each := func(name string, encode func(json []byte) int) {
		b.Run(name, func(b *testing.B) {
			size, n := 0, 0
			for b.Loop() {
				size += encode(all[1+n%999])
				n++
			}
			b.ReportMetric(float64(size)/float64(n), "B/object")
			b.ReportMetric(float64(len(all[1])), "JSON-B/object")
		})
	}
	each("s2", func(json []byte) int { held, out = p.hold(json, out); return len(held.data) })
	var dst []byte
	each("zstd", func(json []byte) int { dst = zip.EncodeAll(json, dst[:0]); return len(dst) })
	each("s2, decoding", func([]byte) int { held.read(func([]byte) {}); return len(held.data) })
	each("zstd, decoding", func([]byte) int { dst, _ = unzip.DecodeAll(zipped, dst[:0]); return len(zipped) })
}
