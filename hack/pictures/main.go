// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command pictures makes the pictures of README.md anew: the drawing of a sample, and what operator play writes about it on a
// terminal, as it comes. Both are the output of operator.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	sample = "samples/foo"
	folder = "docs/pictures"
	// recorded is the time for which play is recorded.
	recorded = 12 * time.Second
)

func main() {
	operator := flag.String("operator", filepath.Join("bin", "operator"), "the program")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := pictures(ctx, *operator); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// pictures makes all pictures.
func pictures(ctx context.Context, operator string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	graph := exec.CommandContext(ctx, operator, "graph", "--config", sample, "-o", filepath.Join(folder, "graph.svg"))
	if out, err := graph.CombinedOutput(); err != nil {
		return fmt.Errorf("drawing %s: %w\n%s", sample, err, out)
	}
	lines, err := record(ctx, operator, "play", "--config", sample, "--examples")
	if err != nil {
		return fmt.Errorf("recording play: %w", err)
	}
	var out bytes.Buffer
	writeRecording(&out, "$ operator play --config "+sample+" --examples", lines)
	return os.WriteFile(filepath.Join(folder, "play.svg"), out.Bytes(), 0o644)
}

// line is a line that a program wrote to its terminal, with its colors, and when.
type line struct {
	at   time.Duration
	text string
}

// record runs a program on a terminal of 100 columns for a while, and returns its lines.
func record(ctx context.Context, program string, args ...string) (out []line, err error) {
	ours, theirs, err := openTerminal(size{rows: 40, columns: columns})
	if err != nil {
		return nil, fmt.Errorf("opening a terminal: %w", err)
	}
	defer ours.Close()
	defer theirs.Close()
	run := exec.CommandContext(ctx, program, args...)
	run.Stdin, run.Stdout, run.Stderr = nil, theirs, theirs
	run.Env = append(os.Environ(), "NO_COLOR=", "TERM=xterm-256color")
	if err := run.Start(); err != nil {
		return nil, err
	}
	began := time.Now()
	end := time.AfterFunc(recorded, func() { _ = run.Process.Signal(os.Interrupt) })
	defer end.Stop()
	ended := make(chan error, 1)
	go func() {
		ended <- run.Wait()
		_ = theirs.Close() // reading ends
	}()
	var text strings.Builder
	part := make([]byte, 4096)
	for {
		n, err := ours.Read(part)
		for _, c := range part[:n] {
			if c != '\n' {
				text.WriteByte(c)
				continue
			}
			if at := time.Since(began); at < recorded {
				out = append(out, line{at, strings.TrimRight(text.String(), "\r")})
			}
			text.Reset()
		}
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO) {
			return out, <-ended
		}
		if err != nil {
			return nil, err
		}
	}
}
