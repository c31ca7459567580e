// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// pickPort returns the port the API server should try. A wanted port that is taken is an error.
// The last port is a preference only: with it a kubeconfig outlives a restart.
func pickPort(wanted, last int) (int, error) {
	if wanted != 0 {
		if _, err := probePort(wanted); err != nil {
			return 0, fmt.Errorf("taking port %d: %w", wanted, err)
		}
		return wanted, nil
	}
	if last != 0 {
		if port, err := probePort(last); err == nil {
			return port, nil
		}
	}
	port, err := probePort(0)
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	return port, nil
}

// probePort listens for a moment and returns the port it listened on. Somebody else may take the
// port before the API server does; [plane.startAPIServer] then tries another.
func probePort(port int) (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// lastPort reads the port of an earlier run. Zero says that there is none.
func lastPort(path string) int {
	text, _ := os.ReadFile(path)
	port, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return port
}
