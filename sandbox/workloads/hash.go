// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/rand"
)

// hashOf returns the hash of a template, in the form of Kubernetes' controllers, though not the same.
func hashOf(template any, collisions *int32) string {
	data, err := json.Marshal(template)
	if err != nil {
		panic("workloads: " + err.Error()) // not reached: it came as JSON
	}
	h := fnv.New32a()
	h.Write(data)
	if collisions != nil && *collisions > 0 {
		h.Write(binary.LittleEndian.AppendUint32(nil, uint32(*collisions)))
	}
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}
