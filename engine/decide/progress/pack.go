// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

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
	// From is the size in bytes of JSON from which packing is worthwhile.
	From = 1024
	// Most is the largest size in bytes of data to pack.
	Most = 4 << 20
	// ratio limits the size of unpacked data relative to its text. Whoever may edit an object can write its
	// annotations, and flate alone would turn one megabyte into a gigabyte.
	ratio = 32
)

// ErrLarge says that data is too large to pack or to unpack.
var ErrLarge = errors.New("what is packed is too large")

// Pack compresses data to a text for Unpack. The error is ErrLarge if there is no such text.
func Pack(data []byte) (text string, err error) {
	if len(data) > Most {
		return "", ErrLarge
	}
	if text, err = deflate(data, 0); err == nil && len(data) > limit(text) {
		text, err = deflate(data, (len(data)-From+ratio-1)/ratio)
	}
	return text, err
}

// deflate returns a text of at least so many bytes. A shorter one is filled up with empty blocks, which flate skips.
func deflate(data []byte, least int) (string, error) {
	var buf bytes.Buffer
	w, err := flate.NewWriter(&buf, flate.BestCompression)
	if err != nil {
		return "", err
	}
	_, err = w.Write(data)
	for err == nil && base64.StdEncoding.EncodedLen(buf.Len()) < least {
		err = w.Flush() // writes an empty block
	}
	if err == nil {
		err = w.Close()
	}
	return base64.StdEncoding.EncodeToString(buf.Bytes()), err
}

// limit returns the greatest size of a text's data in bytes.
func limit(text string) int { return min(Most, From+ratio*len(text)) }

// Unpack returns the data of a text. The error is ErrLarge if it is too large, absolutely or relative to its text;
// otherwise the text is not from Pack.
func Unpack(text string) ([]byte, error) {
	most := limit(text)
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

// Weight estimates the memory in bytes that JSON values take after decoding: "{}," is three bytes of text and a
// map. The estimate is at least half of the real size.
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

// The memory of a map without members, of a map with up to eight, and of one more value in a map or a list.
const (
	emptyMap = 64
	someMap  = 384
	oneValue = 40
)

// WeightOf is Weight for decoded values.
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

// MostOfAll is the API server's limit in bytes for all annotations of an object together.
const MostOfAll = validation.TotalAnnotationSizeLimitB

// Room returns how many bytes an object's other annotations leave for the value of this key; negative if there is
// not even room for the key.
func Room(annotations map[string]string, key string) int {
	room := MostOfAll - len(key)
	for other, value := range annotations {
		if other != key {
			room -= len(other) + len(value)
		}
	}
	return room
}
