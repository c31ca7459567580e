// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestARecordThatAnEarlierReleasePackedIsRead holds that children are known after an upgrade, however alike their names are: earlier
// releases packed as densely as they could.
func TestARecordThatAnEarlierReleasePackedIsRead(t *testing.T) {
	const children = 2000
	var lines []string
	for i := range children {
		place := Place{
			Kind: schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}, Namespace: fmt.Sprintf("team-production-%04d", i),
			Name: "default-network-policy-of-the-platform-team-for-namespaces",
		}
		lines = append(lines, line(place, "default-network-policy"))
	}
	list, err := json.Marshal(lines)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(list); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(storedRecord{Version: 1, UID: "1", Packed: base64.StdEncoding.EncodeToString(packed.Bytes())})
	if err != nil {
		t.Fatal(err)
	}
	record, err := ParseRecord(string(text), "1")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(record.Places()); n != children {
		t.Errorf("%d children, want %d", n, children)
	}
}
