// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"encoding/binary"
	"net/netip"
)

// pool gives out the addresses of a network of 16 bits, one after the other. After the last one it begins again.
type pool struct {
	network [2]byte
	last    uint16
}

// firstAddress leaves the first addresses to what a cluster has of its own.
const firstAddress = 9

func newPool(a, b byte) *pool { return &pool{network: [2]byte{a, b}, last: firstAddress} }

// note says that an address is in use: those after it are free.
func (p *pool) note(text string) {
	address, err := netip.ParseAddr(text)
	if err != nil || !address.Is4() {
		return
	}
	parts := address.As4()
	if parts[0] == p.network[0] && parts[1] == p.network[1] {
		p.last = max(p.last, binary.BigEndian.Uint16(parts[2:]))
	}
}

// next returns an address.
func (p *pool) next() string {
	if p.last++; p.last < firstAddress {
		p.last = firstAddress
	}
	return netip.AddrFrom4([4]byte{p.network[0], p.network[1], byte(p.last >> 8), byte(p.last)}).String()
}
