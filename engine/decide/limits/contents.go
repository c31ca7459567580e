// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The keys of the ConfigMap of an operator's limits.
const (
	// WaitingKey has the records of this process for the next leader.
	WaitingKey = "waiting"
	// ReleasedKey has the releases by people.
	ReleasedKey = "released"
)

// Contents are the contents of the ConfigMap.
type Contents struct {
	// Records are the records of the operator's limits, by resource.
	Records  map[string]Record
	Releases []Release
}

// ParseContents reads the data of the ConfigMap. A key that cannot be read counts as empty, and the error says why.
func ParseContents(data map[string]string) (Contents, error) {
	records, err := parseKey[map[string]Record](data, WaitingKey)
	releases, alsoErr := parseKey[[]Release](data, ReleasedKey)
	for i := range releases {
		releases[i].Until = releases[i].Until.UTC() // a person may write another zone, and releases are compared
	}
	return Contents{records, releases}, errors.Join(err, alsoErr)
}

func parseKey[T any](data map[string]string, key string) (out T, err error) {
	if data[key] == "" {
		return out, nil
	}
	var read T
	if err := json.Unmarshal([]byte(data[key]), &read); err != nil {
		return out, fmt.Errorf("reading key %s: %w", key, err)
	}
	return read, nil
}
