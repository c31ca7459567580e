// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var etcdGVR = schema.GroupVersionResource{Group: "samples.handwerk.dev", Version: "v1alpha1", Resource: "etcdclusters"}

// etcdWriter writes key after key, each with itself as its value, to whichever member takes it, and keeps in mind what was
// acknowledged.
type etcdWriter struct {
	network *etcdNetwork
	end     context.CancelFunc
	writing sync.WaitGroup

	mu           sync.Mutex
	acknowledged []string
}

func newEtcdWriter(network *etcdNetwork) *etcdWriter {
	return &etcdWriter{network: network, end: func() {}}
}

// start begins to write.
func (w *etcdWriter) start(ctx context.Context) {
	ctx, w.end = context.WithCancel(ctx)
	w.writing.Go(func() {
		pace := time.NewTicker(20 * time.Millisecond)
		defer pace.Stop()
		at := 0
		for i := 0; ctx.Err() == nil; i++ {
			key := fmt.Sprintf("key-%06d", i)
			if members := w.network.members(); len(members) > 0 {
				name := slices.Sorted(maps.Keys(members))[at%len(members)]
				if put(ctx, members[name], key) == nil {
					w.mu.Lock()
					w.acknowledged = append(w.acknowledged, key)
					w.mu.Unlock()
				} else {
					at++ // one without a vote, or that is gone
				}
			}
			select {
			case <-pace.C:
			case <-ctx.Done():
			}
		}
	})
}

// count returns how many writes were acknowledged so far.
func (w *etcdWriter) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acknowledged)
}

// stop ends it, and returns the keys that were acknowledged. It may be called more than once.
func (w *etcdWriter) stop() []string {
	w.end()
	w.writing.Wait()
	return w.acknowledged
}

// put writes a key, or gives up soon: a member that knows of no leader keeps a write for seconds, and another one may take it.
func put(ctx context.Context, address, key string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return askEtcd(ctx, address+"/v3/kv/put", map[string]any{"key": []byte(key), "value": []byte(key)}, nil)
}

// readAll returns all keys with their values. It is a linearizable read: what was acknowledged before is in it.
func readAll(ctx context.Context, address string) (map[string]string, error) {
	var answer struct {
		KVs []struct{ Key, Value []byte }
	}
	err := askEtcd(ctx, address+"/v3/kv/range", map[string]any{"key": []byte{0}, "range_end": []byte{0}}, &answer)
	out := map[string]string{}
	for _, kv := range answer.KVs {
		out[string(kv.Key)] = string(kv.Value)
	}
	return out, err
}

// askEtcd asks the gateway of a member.
func askEtcd(ctx context.Context, address string, question, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s: %s", address, response.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
