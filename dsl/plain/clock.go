// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import "time"

// ClockSkew is how far the clocks of a cluster may differ. A time on an object that lies further in the future is not believed.
const ClockSkew = time.Minute
