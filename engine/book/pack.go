// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"errors"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
)

const (
	// From is the size of what is kept, as JSON and in bytes, from which it is worth packing.
	From = 1024
	// Most is the largest size, in bytes, of what is packed.
	Most = 4 << 20
	// ratio bounds how many times as large as its text unpacked data may be. Whoever may edit an object can write its
	// annotations: flate alone would make a gigabyte of one megabyte.
	ratio = 32
	// dense is that for UnpackDense: lists of long names that differ in a number come to a good third of it.
	dense = 128
)

// ErrLarge says that data is too large to be packed, or was too large to be unpacked.
var ErrLarge = errors.New("what is packed is too large")

// Pack returns the data compressed, as a text that Unpack takes. The error is ErrLarge when there is no such text.
func Pack(data []byte) (text string, err error) {
	if len(data) > Most {
		return "", ErrLarge
	}
	for _, level := range []int{flate.BestCompression, flate.HuffmanOnly} { // the second takes at least a bit for a byte
		if text, err = deflate(data, level); err != nil || len(data) <= limit(text) {
			break
		}
	}
	return text, err
}

func deflate(data []byte, level int) (string, error) {
	var buf bytes.Buffer
	w, err := flate.NewWriter(&buf, level)
	if err != nil {
		return "", err
	}
	if _, err = w.Write(data); err == nil {
		err = w.Close()
	}
	return base64.StdEncoding.EncodeToString(buf.Bytes()), err
}

// limit is how large the data of a text may be, in bytes.
func limit(text string) int { return min(Most, From+ratio*len(text)) }

// Unpack returns what was packed. The error is ErrLarge when it is too large, in all or for the size of its text, and
// otherwise says that the text is not what Pack writes.
func Unpack(text string) ([]byte, error) { return unpack(text, limit(text)) }

// UnpackDense is Unpack for what earlier releases have packed, too, and must not be lost: they packed as densely as they could.
func UnpackDense(text string) ([]byte, error) { return unpack(text, min(Most, From+dense*len(text))) }

func unpack(text string, most int) ([]byte, error) {
	packed := base64.NewDecoder(base64.StdEncoding, strings.NewReader(text))
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(packed), int64(most)+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > most {
		return nil, ErrLarge
	}
	return plain, nil
}

// Weight is about how many bytes of memory the values of a JSON text take once it is decoded: "{}," is three bytes of text
// and a map of its own. It is never less than half of what they take.
func Weight(json []byte) (bytes int) {
	inText := false
	for i := 0; i < len(json); i++ {
		switch c := json[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' && i+1 < len(json) && json[i+1] == '}':
			bytes += emptyMap
		case c == '{':
			bytes += someMap
		case c == '[', c == ',', c == ':':
			bytes += oneValue
		}
	}
	return bytes + len(json)
}

// What Go takes for a map without members, for one of up to eight, and for one more value in a map or a list.
const (
	emptyMap = 64
	someMap  = 384
	oneValue = 40
)

// WeightOf is Weight for values that are decoded already.
func WeightOf(value any) (bytes int) {
	switch value := value.(type) {
	case map[string]any:
		if bytes = emptyMap; len(value) > 0 {
			bytes = someMap
		}
		for key, member := range value {
			bytes += oneValue + len(key) + WeightOf(member)
		}
	case []any:
		bytes = oneValue * max(1, len(value))
		for _, element := range value {
			bytes += WeightOf(element)
		}
	case string:
		bytes = len(value)
	}
	return bytes
}

// MostOfAll is the size, in bytes, of all annotations of an object together that the API server takes.
const MostOfAll = validation.TotalAnnotationSizeLimitB

// Room returns how many bytes an object's other annotations leave to the value of one with this key; less than
// zero when there is none for the key.
func Room(annotations map[string]string, key string) int {
	room := MostOfAll - len(key)
	for other, value := range annotations {
		if other != key {
			room -= len(other) + len(value)
		}
	}
	return room
}
