// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import "time"

// ClockSkew is the greatest difference between clocks in a cluster. A time on an object that is further in the
// future is ignored.
const ClockSkew = time.Minute
