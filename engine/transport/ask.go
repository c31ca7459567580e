// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// askTimeout is how long the API server has to say whether it is ready: it answers at once, and a connection that was lost on the
// way is given up for another one.
const askTimeout = 2 * time.Second

// Ask asks whether the API server is ready: once, and whatever limit there is on requests. It needs no right but that of everybody.
func (c *Clients) Ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request := c.Kubernetes.Discovery().RESTClient().Get().AbsPath("/readyz").MaxRetries(0).Throttle(flowcontrol.NewFakeAlwaysRateLimiter())
	if err := request.Do(ctx).Error(); err != nil {
		return fmt.Errorf("asking whether the API server is ready: %w", err)
	}
	return nil
}
