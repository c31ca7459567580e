// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import "k8s.io/apimachinery/pkg/api/validation"

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
