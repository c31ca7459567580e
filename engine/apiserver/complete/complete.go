// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package complete is the API server in memory with all that it can do. People and tests of operators work against it;
// the tests of the engine use a server that takes objects as they are.
package complete

import (
	"time"

	"github.com/handwerk-dev/handwerk/engine/apiserver"
)

// The past that a server keeps, and the pause between bookmarks, are those of a real API server.
const (
	history   = 1000
	bookmarks = time.Minute
)

// Settings returns the settings of a server that has controllers of objects' lives and rights by roles.
func Settings() apiserver.Settings {
	return apiserver.Settings{History: history, Bookmarks: bookmarks, Controllers: true, Authorize: true}
}
