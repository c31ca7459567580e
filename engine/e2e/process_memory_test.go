// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// household is an operator of two tenants as it is deployed: the program itself, with what the Deployment says of memory.
type household struct {
	user       *cluster.User
	config     string
	mine, hers string // namespaces: of who is hostile, and of somebody else
	program    *cluster.Operator
	// limit is the memory of its container, in bytes, and runtime that of Go's runtime, as the variable has it.
	limit   int
	runtime string
}

// keeps is an operator that makes a child for each name, and wants to see what was.
const keeps = `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: household}
resources:
  - resource: works.v1.e2e.example.com
    handlers:
      - id: note
        causes: [create, update]
        log: {message: "it has changed in ${cause == 'update' ? size(diff) : 0} places"}
      - id: parts
        apply:
          part:
            forEach: "${self.spec.?names.orValue([])}"
            ownership: labelled
            template:
              apiVersion: v1
              kind: ConfigMap
              metadata: {name: "${self.metadata.name}-${item}"}
              data: {text: "${self.spec.?text.orValue('')}"}
`

func newHousehold(t *testing.T) *household {
	t.Helper()
	h := &household{user: plane.User("household"), mine: plane.Namespace(t), hers: plane.Namespace(t), config: filepath.Join(t.TempDir(), "operator.yaml")}
	h.limit, h.runtime = deployedMemory(t)
	for _, ns := range []string{h.mine, h.hers} {
		h.user.AllowIn(t, ns, []rbacv1.PolicyRule{
			cluster.Rule("e2e.example.com", "works", "get", "list", "watch", "patch"), cluster.Rule("e2e.example.com", "works/status", "patch"),
			cluster.Rule("", "configmaps", "*"), cluster.Rule("coordination.k8s.io", "leases", "*"), eventRule(),
		}...)
	}
	if err := os.WriteFile(h.config, []byte(keeps), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// start starts the program.
func (h *household) start(t *testing.T, more ...string) {
	t.Helper()
	h.program = plane.Operator(t, cluster.Launch{
		Config: h.user.Config(), Measured: true, Args: append([]string{"run", "--config", h.config, "-n", h.mine, "-n", h.hers}, more...),
		Env: []string{"GOMEMLIMIT=" + h.runtime, "POD_NAMESPACE=" + h.mine},
	})
}

// serves holds that an object of the other tenant gets its child.
func (h *household) serves(t *testing.T, name string) {
	t.Helper()
	begun := time.Now()
	plane.Objects(works, h.hers).Create(t, parted(name, "small", "a"))
	plane.Objects(configMaps, h.hers).Await(t, name+"-a", "the other tenant's child", func(*unstructured.Unstructured) bool { return true })
	t.Logf("the other tenant is served after %v", time.Since(begun).Round(time.Millisecond))
}

// ofFiles is how much of a container's memory a program needs for pages of files, at least: those that run all the time.
const ofFiles = 16 << 20

// mustFit holds that the program never came to its limit.
func (h *household) mustFit(t *testing.T) {
	t.Helper()
	peak := h.program.Peak(t)
	t.Logf("its peak is %d MiB", peak>>20)
	if peak+ofFiles >= h.limit {
		t.Errorf("it took %d MiB of its own and %d of files, and has %d", peak>>20, ofFiles>>20, h.limit>>20)
	}
}

// parted is a work with a text that has children with these names.
func parted(name, text string, names ...any) *unstructured.Unstructured {
	w := work(name, "marker")
	w.Object["spec"] = map[string]any{"text": text, "names": names}
	return w
}

// pressed is what a hostile hand packs.
func pressed(t *testing.T, plain []byte) string {
	t.Helper()
	var buf bytes.Buffer
	w, err := flate.NewWriter(&buf, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.Write(plain); err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(buf.Bytes())
}

// TestBombsInAnnotations has one tenant write progress and inventories of children on twelve objects that are small for what they
// come to.
func TestBombsInAnnotations(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	essence := pressed(t, []byte(`{"old":{"spec":[`+strings.Repeat("{},", 1<<20)+`{}]}}`))
	var invented bytes.Buffer
	for i := range 30_000 {
		fmt.Fprintf(&invented, `"/ConfigMap/%s/%x",`, h.mine, rand.Uint32()+uint32(i))
	}
	places := pressed(t, []byte("["+strings.TrimSuffix(invented.String(), ",")+"]"))
	mine := plane.Objects(works, h.mine)
	for i := range 12 {
		o := mine.Create(t, parted(fmt.Sprint("w", i), "small"))
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
			"household.handwerk.dev/state":    fmt.Sprintf(`{"handwerk":2,"uid":%q,"generation":1,"handlers":{"note":{"seen":"x"}},"packed":%q}`, o.GetUID(), essence),
			"household.handwerk.dev/children": fmt.Sprintf(`{"handwerk":1,"uid":%q,"since":"2026-01-02T03:04:05Z","packed":%q}`, o.GetUID(), places),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		mine.Patch(t, o.GetName(), string(patch))
	}
	h.start(t)
	h.serves(t, "before")
	for i := range 12 {
		mine.Patch(t, fmt.Sprint("w", i), `{"spec":{"names":["a"]}}`)
	}
	for i := range 12 {
		plane.Objects(configMaps, h.mine).Await(t, fmt.Sprintf("w%d-a", i), "its child", func(*unstructured.Unstructured) bool { return true })
	}
	h.serves(t, "after")
	h.mustFit(t)
}

// letters is a text that no compression makes much smaller.
func letters(seed uint64, size int) string {
	const of = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"
	random, out := rand.New(rand.NewPCG(seed, 1)), make([]byte, size)
	for i := range out {
		out[i] = of[random.IntN(len(of))]
	}
	return string(out)
}

// TestLargeChildren has one tenant ask for ten times fifteen megabytes of children, each one within the limits.
func TestLargeChildren(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	mine, maps := plane.Objects(works, h.mine), plane.Objects(configMaps, h.mine)
	var names []any
	for i := range 15 {
		names = append(names, fmt.Sprintf("p%02d", i))
	}
	h.start(t)
	h.serves(t, "before")
	for i := range 6 {
		mine.Create(t, parted(fmt.Sprint("w", i), letters(uint64(i), 1_000_000), names...))
	}
	h.serves(t, "meanwhile")
	for i := range 6 {
		maps.Await(t, fmt.Sprintf("w%d-p14", i), "its last child", func(*unstructured.Unstructured) bool { return true })
	}
	h.serves(t, "after")
	h.mustFit(t)
}

// TestSlowRequests sends eight thousand requests whose bodies never come, with as many headers as anybody takes.
func TestSlowRequests(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	h.start(t)
	h.serves(t, "before")
	t.Logf("at rest its peak is %d MiB", h.program.Peak(t)>>20)
	address := addressesOf(t, h.program).Health
	head := []byte("POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n" + strings.Repeat("X: "+strings.Repeat("x", 1000)+"\r\n", 54) + "\r\n")
	var group sync.WaitGroup
	for client := range 7 { // each has a part of the connections; eight would have all
		group.Go(func() {
			for range 8000 / 7 {
				from := net.Dialer{Timeout: time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(client+1))}}
				conn, err := from.Dial("tcp", address)
				if err != nil {
					continue
				}
				t.Cleanup(func() { _ = conn.Close() })
				_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
				_, _ = conn.Write(head) // the server may close it before
			}
		})
	}
	group.Wait()
	if code, _, err := ask(t, address, "/healthz"); code != 200 {
		t.Errorf("another client gets %d (%v)", code, err)
	}
	h.serves(t, "meanwhile")
	h.mustFit(t)
}
