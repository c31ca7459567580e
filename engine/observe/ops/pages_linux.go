// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"bufio"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const (
	// cold is MADV_COLD of Linux 5.4 and newer: the pages are the first to go when memory is short.
	cold = 20
	// dontNeed is MADV_DONTNEED: the pages leave the process, and come back from the file when they are used.
	dontNeed = syscall.MADV_DONTNEED
)

// freeFilePages takes the program's own pages out of the process's memory. Most of them are of code that only a start
// needs. Those that are used come back from the page cache. An error changes nothing: the pages stay.
func freeFilePages() {
	if program, err := os.Readlink("/proc/self/exe"); err == nil {
		freePagesOf(program)
	}
}

// freePagesOf takes the pages of a file out of the process's memory. The file must stay mapped meanwhile: the address of a mapping
// that ends, as of a file that a C library looks into, may be that of a stack or a heap at once.
func freePagesOf(file string) {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	for _, m := range clean(maps, file) {
		// An older kernel knows no MADV_COLD. The pages may leave the process all the same.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, cold)
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, dontNeed)
	}
}

// mapping is a part of the address space.
type mapping struct{ start, end uintptr }

// clean returns the mappings of a file which cannot be written to, and in which nothing was. What was written is in no file,
// and would be lost: a loader and a debugger write to pages that are closed afterwards. Such a page is anonymous, and counts as
// swap alone when it is there. The format is that of proc_pid_smaps(5).
func clean(smaps io.Reader, file string) (out []mapping) {
	var last mapping
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if m, is := mappingOf(file, fields); is {
			last = m
		} else if len(fields) > 1 && strings.Contains(fields[0], "-") {
			last = mapping{}
		}
		switch {
		case len(fields) != 3 || last.end == 0:
		case fields[0] == "Anonymous:" && fields[1] == "0":
			out = append(out, last)
		case fields[0] == "Swap:" && fields[1] != "0": // this line comes after that one
			out = slices.DeleteFunc(out, func(m mapping) bool { return m == last })
		}
	}
	return out
}

// mappingOf returns the mapping of a line such as "00400000-02a3d000 r-xp 00000000 fe:01 2228364 /operator", if it is
// private, of that file, and cannot be written to.
func mappingOf(file string, fields []string) (m mapping, is bool) {
	if len(fields) < 6 || strings.Join(fields[5:], " ") != file {
		return m, false
	}
	if rights := fields[1]; len(rights) != 4 || rights[0] != 'r' || rights[1] == 'w' || rights[3] != 'p' {
		return m, false
	}
	from, to, _ := strings.Cut(fields[0], "-")
	start, err1 := strconv.ParseUint(from, 16, strconv.IntSize)
	end, err2 := strconv.ParseUint(to, 16, strconv.IntSize)
	return mapping{uintptr(start), uintptr(end)}, err1 == nil && err2 == nil
}
