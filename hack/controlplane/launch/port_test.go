// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestPickPort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	taken := listener.Addr().(*net.TCPAddr).Port
	free, err := probePort(0)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := pickPort(taken, 0); err == nil {
		t.Error("a wanted port that is taken is no error")
	}
	if got, err := pickPort(free, taken); err != nil || got != free {
		t.Errorf("wanted port %d: got %d, %v", free, got, err)
	}
	if got, err := pickPort(0, free); err != nil || got != free {
		t.Errorf("last port %d: got %d, %v", free, got, err)
	}
	if got, err := pickPort(0, taken); err != nil || got == taken || got == 0 {
		t.Errorf("last port %d is taken: got %d, %v", taken, got, err)
	}
	if got, err := pickPort(0, 0); err != nil || got == 0 {
		t.Errorf("any port: got %d, %v", got, err)
	}
}

func TestLastPort(t *testing.T) {
	tests := map[string]struct {
		text string
		want int
	}{
		"a port":   {"6443\n", 6443},
		"no file":  {"", 0},
		"nonsense": {"x", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "port")
			if test.text != "" {
				if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := lastPort(path); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
