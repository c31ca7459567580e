// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package pack makes what is kept in annotations small. It is pure.
package pack

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/api/validation"
)

const (
	// From is the size of what is kept, as JSON and in bytes, from which it is worth packing.
	From = 1024
	// Most is the largest size, in bytes, of what is unpacked: a small annotation may unpack to a huge one.
	Most = 4 << 20
)

// ErrLarge says that what is packed is larger than Most.
var ErrLarge = errors.New("what is packed is too large")

// Pack returns the data compressed, as text.
func Pack(data []byte) (string, error) {
	var buf bytes.Buffer
	w, err := flate.NewWriter(&buf, flate.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err = w.Write(data); err == nil {
		err = w.Close()
	}
	return base64.StdEncoding.EncodeToString(buf.Bytes()), err
}

// Unpack returns what was packed. The error is ErrLarge when it is too large, and otherwise says that the
// text is not what Pack writes.
func Unpack(text string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), Most+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > Most {
		return nil, ErrLarge
	}
	return plain, nil
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
