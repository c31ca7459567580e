// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// The requests of Linux about pseudo terminals, which package syscall does not name.
const (
	getNumber = 0x80045430 // TIOCGPTN
	setLock   = 0x40045431 // TIOCSPTLCK
)

// size is the size of a terminal, as Linux has it.
type size struct{ rows, columns, width, height uint16 }

// openTerminal opens a pseudo terminal of a size: our end of it, and that of a program.
func openTerminal(of size) (ours, theirs *os.File, err error) {
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	var number, unlocked uint32
	if err = control(ours, setLock, unsafe.Pointer(&unlocked)); err == nil {
		err = control(ours, getNumber, unsafe.Pointer(&number))
	}
	if err == nil {
		err = control(ours, syscall.TIOCSWINSZ, unsafe.Pointer(&of))
	}
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		_ = ours.Close() // the first error is the one to report
		return nil, nil, err
	}
	return ours, theirs, nil
}

// control sends a request about a terminal.
func control(of *os.File, request uintptr, argument unsafe.Pointer) error {
	if _, _, code := syscall.Syscall(syscall.SYS_IOCTL, of.Fd(), request, uintptr(argument)); code != 0 {
		return os.NewSyscallError("ioctl", code)
	}
	return nil
}
