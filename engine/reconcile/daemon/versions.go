// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import "k8s.io/apimachinery/pkg/util/resourceversion"

// versions decides which versions of an object are news to its daemon. Versions that it has read or written are not.
type versions struct {
	// known is the version up to which changes are no news.
	known string
	// sending: a write is in progress. came is the version of the last event since it began.
	sending bool
	came    string
}

// event reports whether the version of an event is news.
func (v *versions) event(version string) (news bool) {
	if v.sending {
		v.came = version // it may be the version of the write
		return false
	}
	return v.comes(version)
}

// comes reports whether a version is news, and notes it.
func (v *versions) comes(version string) (news bool) {
	if atMost(version, v.known) {
		return false
	}
	v.known = version
	return true
}

// read notes that the daemon reads a version, and reports whether it is the newest known.
func (v *versions) read(version string) (newest bool) {
	newest = !older(version, v.known)
	v.comes(version)
	return newest
}

// send notes the start of a write to a version, and reports whether that version is news. Its event may come during the
// write, and would be taken for the event of the write.
func (v *versions) send(base string) (news bool) {
	v.sending, v.came = true, ""
	return v.comes(base)
}

// sent notes the end of a write, with the version that it has made; empty for none. It reports whether news came in the
// meantime.
func (v *versions) sent(version string) (news bool) {
	v.sending = false
	if version != "" {
		v.known = version
	}
	return v.came != "" && v.comes(v.came)
}

// atMost reports whether a version is known to be no newer than another one.
func atMost(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order <= 0
}

// older reports whether a version is known to be older than another one.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
