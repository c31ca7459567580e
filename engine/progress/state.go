// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	// compressFrom is the size of an essence's JSON, in bytes, from which it is compressed.
	compressFrom = 1024
	// MaxSize is the largest state that is stored, in bytes. All annotations of an object share
	// 256 KiB, so half of it is left to others.
	MaxSize = 128 * 1024
	// maxEssence bounds what is unpacked, against a small annotation that unpacks to a huge one.
	maxEssence = 4 << 20
)

// State is what is stored on an object.
type State struct {
	// Handled: the object was handled whole at least once.
	Handled bool
	// Base digests what handlers looked at when the object was last handled whole, by field.
	Base map[string]string
	// Old is the essence at that time, or the fields of it that handlers name. Nil where a digest
	// is enough.
	Old map[string]any
	// Records are of handlers that are not finished, that finished while others were not, or
	// that failed last.
	Records map[string]Record
}

// stored is the form of the annotation. Version comes first: its key marks the annotation as an
// operator's.
type stored struct {
	Version int               `json:"handwerk"`
	Base    map[string]string `json:"base,omitempty"`
	Old     map[string]any    `json:"old,omitempty"`
	Packed  string            `json:"packed,omitempty"`
	Records map[string]Record `json:"handlers,omitempty"`
}

// Empty reports whether there is nothing to store.
func (s State) Empty() bool { return !s.Handled && len(s.Records) == 0 }

// Lasting returns what of the state is worth storing: that a handler waits is not.
func (s State) Lasting() State {
	records := make(map[string]Record, len(s.Records))
	for handler, r := range s.Records {
		if r.bare() {
			continue
		}
		if r.Waiting {
			r.Due = time.Time{} // what it waits for may come while nobody looks
		}
		records[handler] = r
	}
	s.Records = records
	return s
}

// Encode returns the annotation's value. When it would be larger than MaxSize, the essence is
// left out and degraded is true: the object is handled all the same, without Old.
func (s State) Encode() (text string, degraded bool, err error) {
	out := stored{Version: 1, Base: s.Base, Old: s.Old, Records: s.Records}
	if s.Old != nil {
		if out.Old, out.Packed, err = pack(s.Old); err != nil {
			return "", false, fmt.Errorf("encoding state: %w", err)
		}
	}
	if len(out.Packed) > MaxSize {
		out.Old, out.Packed, degraded = nil, "", true
	}
	data, err := json.Marshal(out)
	if err != nil {
		return "", false, fmt.Errorf("encoding state: %w", err)
	}
	return string(data), degraded, nil
}

// Parse reads an annotation's value; an empty one is the empty state.
func Parse(text string) (State, error) {
	if text == "" {
		return State{}, nil
	}
	var in stored
	if err := utiljson.Unmarshal([]byte(text), &in); err != nil {
		return State{}, fmt.Errorf("decoding state: %w", err)
	}
	if in.Version != 1 {
		return State{}, fmt.Errorf("decoding state: version %d is not known", in.Version)
	}
	s := State{Handled: in.Base != nil, Base: in.Base, Old: in.Old, Records: in.Records}
	if in.Packed != "" {
		var err error
		if s.Old, err = unpack(in.Packed); err != nil {
			return State{}, fmt.Errorf("decoding state: %w", err)
		}
	}
	return s, nil
}

func pack(essence map[string]any) (plain map[string]any, packed string, err error) {
	data, err := json.Marshal(essence)
	if err != nil || len(data) < compressFrom {
		return essence, "", err
	}
	var buf bytes.Buffer
	w, err := flate.NewWriter(&buf, flate.BestCompression)
	if err != nil {
		return nil, "", err
	}
	if _, err = w.Write(data); err == nil {
		err = w.Close()
	}
	return nil, base64.StdEncoding.EncodeToString(buf.Bytes()), err
}

func unpack(packed string) (map[string]any, error) {
	data, err := base64.StdEncoding.DecodeString(packed)
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), maxEssence+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > maxEssence {
		return nil, errors.New("the packed essence is too large")
	}
	var essence map[string]any
	err = utiljson.Unmarshal(plain, &essence)
	return essence, err
}
