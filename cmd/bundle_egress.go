// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// destination is where a NetworkPolicy lets the operator connect to by TCP. CIDR is empty for any address.
type destination struct {
	CIDR string
	Port uint16
}

// parseEgress reads a value of --egress: a port, or a network and a port.
func parseEgress(text string) (destination, error) {
	cidr, port := "", text
	if i := strings.LastIndex(text, ":"); i >= 0 {
		cidr, port = strings.Trim(text[:i], "[]"), text[i+1:]
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return destination{}, fmt.Errorf("invalid value %q for --egress: want a port, or a network and a port, as in 10.0.0.0/8:5432", text)
	}
	out := destination{Port: uint16(number)}
	if cidr == "" {
		return out, nil
	}
	network, err := netip.ParsePrefix(cidr)
	if err != nil {
		return destination{}, fmt.Errorf("invalid value %q for --egress: %q is no network such as 10.0.0.0/8", text, cidr)
	}
	out.CIDR = network.Masked().String()
	return out, nil
}
