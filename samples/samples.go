// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package samples has the files of the samples that are in YAML alone, for programs that write them out.
package samples

import (
	"embed"
	"io/fs"
)

//go:embed approval/*.yaml canary/*.yaml causes/*.yaml cleanup/*.yaml ephemeral-volume-claim-yaml/*.yaml foo/*.yaml foo-yaml/*.yaml
//go:embed index/*.yaml job-machine/*.yaml node-labeller/*.yaml password/*.yaml policy/*.yaml rollout/*.yaml route-certificate/*.yaml
//go:embed secret-copier/*.yaml shared-ingress/*.yaml shop/*.yaml shop/parts/*.yaml tenant/*.yaml timer/*.yaml ttl/*.yaml versions/*.yaml webapp/*.yaml
var files embed.FS

// Files returns the YAML files of the samples, a folder each. A sample may have its parts in a folder within.
func Files() fs.FS { return files }
