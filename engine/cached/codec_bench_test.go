// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

func many(t testing.TB, n int) (out [][]byte) {
	t.Helper()
	base := string(hold(t, Form{}, sample(t)).raw)
	for i := range n {
		s := strings.ReplaceAll(base, "7f3ad3c2", fmt.Sprintf("%08x", uint32(i)*2654435761))
		s = strings.ReplaceAll(s, "2026-", fmt.Sprintf("2026-%02d", i%28))
		out = append(out, []byte(strings.ReplaceAll(s, "foo", fmt.Sprintf("foo-%05d", i))))
	}
	return out
}

func BenchmarkCodecs(b *testing.B) {
	all := many(b, 1000)
	b.Run("s2", func(b *testing.B) {
		d := s2.MakeDict(all[0], nil)
		size, dst := 0, []byte(nil)
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			out := d.Encode(dst, all[1+i%999])
			dst = out[:cap(out)]
			size += len(out)
			i++
		}
		b.ReportMetric(float64(size)/float64(i), "B/object")
		b.ReportMetric(float64(len(all[1])), "JSON")
	})
	b.Run("s2 decode", func(b *testing.B) {
		d := s2.MakeDict(all[0], nil)
		out := d.Encode(nil, all[7])
		var dst []byte
		b.ReportAllocs()
		for b.Loop() {
			dst, _ = d.Decode(dst[:0], out)
		}
	})
	b.Run("zstd", func(b *testing.B) {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderDictRaw(1, all[0]), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithWindowSize(16<<10))
		if err != nil {
			b.Fatal(err)
		}
		size, dst := 0, []byte(nil)
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			dst = e.EncodeAll(all[1+i%999], dst[:0])
			size += len(dst)
			i++
		}
		b.ReportMetric(float64(size)/float64(i), "B/object")
	})
	b.Run("zstd decode", func(b *testing.B) {
		e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderDictRaw(1, all[0]), zstd.WithEncoderConcurrency(1))
		d, _ := zstd.NewReader(nil, zstd.WithDecoderDictRaw(1, all[0]), zstd.WithDecoderConcurrency(1))
		out := e.EncodeAll(all[7], nil)
		var dst []byte
		b.ReportAllocs()
		for b.Loop() {
			dst, _ = d.DecodeAll(out, dst[:0])
		}
	})
}
