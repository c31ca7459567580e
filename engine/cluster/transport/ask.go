// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// askTimeout is the timeout for the question whether the API server is ready. It answers at once, so a later answer means a lost
// connection, and the next question uses another one.
const askTimeout = 2 * time.Second

// Ask asks the API server whether it is ready, once, and regardless of the limit on requests. Every account has the right to it.
func (c *Clients) Ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request := c.Discovery.RESTClient().Get().AbsPath("/readyz").MaxRetries(0).Throttle(flowcontrol.NewFakeAlwaysRateLimiter())
	if err := request.Do(ctx).Error(); err != nil {
		return fmt.Errorf("asking whether the API server is ready: %w", err)
	}
	return nil
}
