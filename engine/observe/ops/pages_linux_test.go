// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPagesOfTheProgramLeaveItsMemory(t *testing.T) {
	before := rssFile(t)
	freeFilePages()
	if after := rssFile(t); after > before/2 {
		t.Errorf("%d kB of files are in memory, of %d before", after, before)
	}
}

func TestPagesThatWereWrittenToStay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "library")
	if err := os.WriteFile(file, make([]byte, os.Getpagesize()), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page, err := syscall.Mmap(int(f.Fd()), 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(page) }()
	page[0] = 7 // as a loader writes addresses
	if err := syscall.Mprotect(page, syscall.PROT_READ); err != nil {
		t.Fatal(err)
	}
	freePagesOf(file)
	if page[0] != 7 {
		t.Error("what was written to a page is lost")
	}
}

func TestMappingsThatLeave(t *testing.T) {
	tests := map[string]struct {
		line, anonymous, swap string
		leaves                bool
	}{
		"code":                                   {"00400000-02a3d000 r-xp 00000000 fe:01 2228364 /operator", "0", "0", true},
		"constants":                              {"02a3d000-04c00000 r--p 0263d000 fe:01 2228364 /operator", "0", "0", true},
		"code in which a debugger was":           {"00400000-02a3d000 r-xp 00000000 fe:01 2228364 /operator", "4", "0", false},
		"addresses of a loader that are in swap": {"02a3d000-04c00000 r--p 0263d000 fe:01 2228364 /operator", "0", "4", false},
		"variables":                              {"04c00000-04d00000 rw-p 04800000 fe:01 2228364 /operator", "0", "0", false},
		"a part of a file that is shared":        {"7f0000000000-7f0000001000 r--s 00000000 fe:01 99 /data", "0", "0", false},
		"what cannot be read":                    {"7f0000000000-7f0000001000 ---p 00000000 fe:01 99 /data", "0", "0", false},
		"the heap":                               {"c000000000-c000400000 rw-p 00000000 00:00 0", "0", "0", false},
		"a library, which may be unmapped":       {"7f0000000000-7f0000001000 r-xp 00000000 fe:01 99 /lib/libc.so.6", "0", "0", false},
		"what the kernel maps":                   {"7fff00000000-7fff00001000 r-xp 00000000 00:00 0 [vdso]", "0", "0", false},
		"a program that has been replaced":       {"00400000-02a3d000 r-xp 00000000 fe:01 2228364 /operator (deleted)", "0", "0", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			smaps := fmt.Sprintf("%s\nSize: 4 kB\nAnonymous: %s kB\nSwap: %s kB\nSwapPss: 0 kB\nVmFlags: rd ex\n", test.line, test.anonymous, test.swap)
			// The next mapping does not leave for the one before.
			smaps += "7ffe00000000-7ffe00001000 rw-p 00000000 00:00 0 [stack]\nAnonymous: 0 kB\nSwap: 0 kB\n"
			program := "/operator"
			if strings.HasSuffix(test.line, " (deleted)") {
				program += " (deleted)" // as the link to it says then
			}
			if got := len(clean(strings.NewReader(smaps), program)); got != map[bool]int{true: 1}[test.leaves] {
				t.Errorf("%d mappings leave, want it: %v", got, test.leaves)
			}
		})
	}
	got := clean(strings.NewReader("00400000-02a3d000 r-xp 00000000 fe:01 2228364 /operator\nAnonymous: 0 kB\n"), "/operator")
	if diff := cmp.Diff([]mapping{{0x400000, 0x2a3d000}}, got, cmp.AllowUnexported(mapping{})); diff != "" {
		t.Errorf("mappings (-want +got):\n%s", diff)
	}
}

// rssFile is how much of files the process has in memory, in kB.
func rssFile(t *testing.T) (out int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscanf(rest, "%d kB", &out); !found || err != nil {
		t.Fatalf("RssFile is not in %s", status)
	}
	return out
}
