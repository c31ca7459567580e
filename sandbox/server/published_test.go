// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"
)

// TestADocumentDoesNotWaitForAnother holds that clients get a document while a longer one is encoded for others.
func TestADocumentDoesNotWaitForAnother(t *testing.T) {
	var documents published
	release, long, short := make(chan struct{}), make(chan struct{}), make(chan struct{})
	begun := make(chan struct{})
	go func() {
		defer close(long)
		_, _ = documents.get("v2", "1", func() ([]byte, error) { close(begun); <-release; return []byte("long"), nil })
	}()
	<-begun
	go func() {
		defer close(short)
		_, _ = documents.get("api/v1", "1", func() ([]byte, error) { return []byte("short"), nil })
	}()
	select {
	case <-short:
	case <-time.After(time.Minute):
		t.Error("one document waits until another is encoded")
	}
	close(release)
	<-long
	<-short
	again, err := documents.get("v2", "1", func() ([]byte, error) { t.Error("a known document is encoded again"); return nil, nil })
	if err != nil || string(again.text) != "long" {
		t.Errorf("the known document: %s %v", again.text, err)
	}
}
