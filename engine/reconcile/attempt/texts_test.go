// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// crowd is many objects whose handlers fail.
type crowd struct {
	log      logr.Logger
	lines    []string
	texts    *Texts
	troubles map[string]*Troubles
}

func newCrowd() *crowd {
	c := &crowd{troubles: map[string]*Troubles{}}
	c.log = funcr.New(func(_, args string) { c.lines = append(c.lines, args) }, funcr.Options{})
	c.texts = NewTexts(c.log)
	c.texts.Begin()
	return c
}

// fails is a failed attempt of a handler for an object, which is tried again after five minutes.
func (c *crowd) fails(name, handler, text string) {
	if c.troubles[name] == nil {
		c.troubles[name] = &Troubles{}
	}
	key := cache.ObjectName{Namespace: "shop", Name: name}
	f := Failure{Log: c.log.WithValues("name", name), Key: key, Handler: handler, Err: errors.New(text)}
	c.troubles[name].Complain(c.texts, Attempt{Failure: f, After: progress.Record{Due: time.Now().Add(5 * time.Minute)}})
}

func (c *crowd) works(name, handler string) {
	c.troubles[name].LogRecovered(c.log.WithValues("name", name), handler, "handler works again")
}

// take returns the lines since it was called before.
func (c *crowd) take() []string {
	synctest.Wait()
	c.texts.mu.Lock()
	defer c.texts.mu.Unlock()
	out := c.lines
	c.lines = nil
	return out
}

// says holds what the lines since then are, a pattern for each.
func (c *crowd) says(t *testing.T, want ...string) {
	t.Helper()
	got := c.take()
	fits := func(line, pattern string) bool { return regexp.MustCompile(pattern).MatchString(line) }
	if !slices.EqualFunc(got, want, fits) {
		t.Errorf("the log says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// known is how many texts are known, and how many bytes of them.
func (c *crowd) known() (texts, bytes int) {
	c.texts.mu.Lock()
	defer c.texts.mu.Unlock()
	for _, one := range c.texts.known {
		bytes += len(one.text)
	}
	return len(c.texts.known), bytes
}

// long is a text about an object that is longer than what a short line has of it.
func long(name string) string {
	return "applying Deployment shop/" + name + ": it is invalid: " + strings.Repeat("spec.template ", 20) + "end"
}

// TestTexts holds which line says what of failures with the same text.
func TestTexts(t *testing.T) {
	const (
		whole = `"msg"="handler will be tried again" "name"="%s" .*spec.template end" "retryAfter"="5m0s"`
		short = `"msg"="handler will be tried again" "name"="%s" "handwerk.warning"=true "error"="applying Deployment shop/%[1]s: it is invalid: [^"]*…" "sameAs"="%s"`
	)
	tests := map[string]func(t *testing.T, c *crowd){
		"the first object's line has the text, another's its beginning, and a summary counts": func(t *testing.T, c *crowd) {
			for range 3 {
				for _, name := range []string{"a", "b", "c", "d"} {
					c.fails(name, "app", long(name))
				}
				time.Sleep(10 * time.Second)
			}
			c.says(t, fmt.Sprintf(whole, "a"), fmt.Sprintf(short, "b", "shop/a"), fmt.Sprintf(short, "c", "shop/a"), fmt.Sprintf(short, "d", "shop/a"))
			time.Sleep(time.Minute)
			c.says(t, `"msg"="objects still fail" "handwerk.warning"=true "error"="applying Deployment shop/a: .* end" "handler"="app" "line"="handler will be tried again" "objects"=4 "names"=\["shop/a" "shop/b" "shop/c" "shop/d"\] "failed"=12 "within"="1m0s"$`)
			time.Sleep(time.Hour)
			c.says(t)
		},
		"a summary names those that fail still, and the lines after it its first": func(t *testing.T, c *crowd) {
			c.fails("a", "app", long("a"))
			c.fails("b", "app", long("b"))
			time.Sleep(time.Minute)
			c.fails("b", "app", long("b"))
			time.Sleep(2 * time.Minute)
			c.take()
			c.works("a", "app")
			c.fails("b", "app", long("b"))
			time.Sleep(4*time.Minute + time.Second)
			c.fails("c", "app", long("c"))
			c.says(t, "works again", `still fail.*shop/b: .*"objects"=1 "names"=\["shop/b"\] "failed"=1 "within"="4m0s"`, fmt.Sprintf(short, "c", "shop/b"))
		},
		"a text that no object fails with any more is forgotten": func(t *testing.T, c *crowd) {
			c.fails("a", "app", long("a"))
			c.works("a", "app")
			c.fails("b", "app", long("b"))
			c.says(t, fmt.Sprintf(whole, "a"), "works again", fmt.Sprintf(whole, "b"))
		},
		"a summary leaves out those that work again, or are gone": func(t *testing.T, c *crowd) {
			for range 2 {
				for _, name := range []string{"a", "b", "c", "d", "e"} {
					c.fails(name, "app", long(name))
				}
			}
			c.take()
			c.works("a", "app")
			c.troubles["b"].Gone()
			c.fails("d", "app", long("d"))
			time.Sleep(time.Minute + time.Second)
			c.says(t, "works again", `still fail.*"error"="applying Deployment shop/d: .*"objects"=3 "names"=\["shop/c" "shop/d" "shop/e"\] "failed"=11`)
		},
		"there is no summary of a text with which all have failed for good": func(t *testing.T, c *crowd) {
			c.fails("a", "app", "x")
			c.fails("a", "app", "x")
			f := Failure{Log: c.log, Key: cache.ObjectName{Namespace: "shop", Name: "a"}, Handler: "app", Err: errors.New("x")}
			c.troubles["a"].Complain(c.texts, Attempt{Failure: f, After: progress.Record{Done: true, Failed: true}})
			time.Sleep(time.Hour)
			c.says(t, `"error"="x" "retry`, `"msg"="handler failed for good" "error"="x"`)
		},
		"so is one whose objects were deleted unseen, some time later": func(t *testing.T, c *crowd) {
			c.fails("a", "app", long("a"))
			time.Sleep(20 * time.Minute)
			if n, _ := c.known(); n != 0 {
				t.Errorf("%d texts are known", n)
			}
		},
		"another text is said, of whatever object": func(t *testing.T, c *crowd) {
			c.fails("a", "app", "x")
			c.fails("a", "app", "y")
			c.fails("b", "app", "z")
			c.fails("a", "app", "x")
			c.says(t, `"error"="x" "retry`, `"error"="y" "retry`, `"error"="z" "retry`, `"error"="x" "retry`)
		},
		"there is room for a text where others have become other texts": func(t *testing.T, c *crowd) {
			for i := range 3 * textsMost {
				c.fails("a", "app", fmt.Sprintf("request %d failed", i))
			}
			c.take()
			c.fails("b", "app", long("b"))
			c.fails("b", "app", long("b"))
			c.says(t, fmt.Sprintf(whole, "b"))
		},
		"another handler says it, too": func(t *testing.T, c *crowd) {
			c.fails("a", "app", "x")
			c.fails("a", "other", "x")
			c.says(t, `"error"="x" "retry`, `"error"="x" "retry`)
		},
		"sub-handlers of one handler share a text, and their objects are named once": func(t *testing.T, c *crowd) {
			for range 2 {
				for _, zone := range []string{"north", "south"} {
					c.fails("a", "app/"+zone, "zone "+zone+" is full")
				}
			}
			time.Sleep(time.Minute)
			c.says(t, `"error"="zone north is full" "retry`, `"error"="zone south is full" "sameAs"="shop/a app/north"`,
				`still fail.*"handler"="app/\*" .*"subHandlers"=2 "names"=\["shop/a"\] "failed"=4`)
		},
		"who is tried less often than each hour has a line each time": func(t *testing.T, c *crowd) {
			for range 3 {
				c.fails("a", "app", long("a"))
				time.Sleep(2 * time.Hour)
			}
			c.says(t, fmt.Sprintf(whole, "a"), fmt.Sprintf(whole, "a"), fmt.Sprintf(whole, "a"))
		},
		"outside of a term each failure has its line, and there is no summary": func(t *testing.T, c *crowd) {
			c.fails("a", "app", long("a"))
			c.fails("a", "app", long("a"))
			c.texts.End()
			c.fails("a", "app", long("a"))
			c.fails("b", "app", long("b"))
			time.Sleep(time.Hour)
			c.says(t, fmt.Sprintf(whole, "a"), fmt.Sprintf(whole, "a"), fmt.Sprintf(whole, "b"))
			c.texts.Begin()
			c.works("a", "app")
			c.fails("c", "app", long("c"))
			c.says(t, "works again", fmt.Sprintf(whole, "c"))
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd()
				play(t, c)
				c.texts.End()
			})
		})
	}
}

// TestManyObjectsThatFail holds that what is said in full and what is remembered of texts is bounded, however many objects fail, and
// that nothing is hidden beyond the bound.
func TestManyObjectsThatFail(t *testing.T) {
	const objects = 10_000
	name := func(i int) string { return fmt.Sprintf("web-%d", i) }
	all := func(c *crowd, text func(i int) string) {
		for i := range objects {
			c.fails(name(i), "app", text(i))
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd()
		for range 12 { // an hour
			all(c, func(i int) string { return long(name(i)) })
			time.Sleep(5 * time.Minute)
		}
		whole, lines := 0, c.take()
		for _, line := range lines {
			if strings.Contains(line, "spec.template end") {
				whole++
			}
		}
		if len(lines) != objects+3 || whole != 4 {
			t.Errorf("there are %d lines, %d of them with the whole text, want %d and 4: that of the first object, and summaries", len(lines), whole, objects+3)
		}
		c.texts.End()
	})
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd()
		for range 3 {
			all(c, func(i int) string {
				return fmt.Sprintf("disk %d is full: %s", i*objects, strings.Repeat("x", textMost+100))
			})
			if n, bytes := c.known(); n > textsMost || bytes > textsMost*(textMost+10) {
				t.Errorf("%d texts of %d bytes are known", n, bytes)
			}
		}
		if n := len(c.take()); n != 3*objects-2*textsMost {
			t.Errorf("there are %d lines, want one of each failure but those whose text is known", n)
		}
		for i := range objects {
			c.works(name(i), "app")
		}
		if n, _ := c.known(); n != 0 {
			t.Errorf("%d texts are known when all work again", n)
		}
		c.texts.End()
	})
}
