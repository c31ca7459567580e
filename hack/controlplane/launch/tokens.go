// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"crypto/rand"
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// prepareTokens returns a bearer token for each of users. They are kept in the folder, so a kubeconfig outlives a restart.
// With a certificate the API server would check a signature for each request, which was a seventh of its work in a
// test.
func (f folder) prepareTokens() (map[string]string, error) {
	tokens := map[string]string{}
	lines, err := f.readTokens()
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		tokens[line[1]] = line[0]
	}
	byClient := map[string]string{}
	var file bytes.Buffer
	w := csv.NewWriter(&file)
	for _, client := range slices.Sorted(maps.Keys(users)) {
		name, groups := users[client][0], users[client][1:]
		if tokens[name] == "" {
			tokens[name] = rand.Text()
		}
		byClient[client] = tokens[name]
		if err := w.Write([]string{tokens[name], name, name, strings.Join(groups, ",")}); err != nil {
			return nil, fmt.Errorf("writing %s: %w", tokensFile, err)
		}
	}
	w.Flush()
	return byClient, f.write(tokensFile, file.Bytes())
}

// readTokens returns the lines of an earlier run: token, user, UID, groups.
func (f folder) readTokens() ([][]string, error) {
	data, err := os.ReadFile(f.path(tokensFile))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", tokensFile, err)
	}
	r := csv.NewReader(bytes.NewReader(data))
	r.FieldsPerRecord = 4
	lines, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", tokensFile, err)
	}
	return lines, nil
}
