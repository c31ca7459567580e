// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit

// missed fails the test, because a handler reads a field of its object that its option dsl.Reads does not list. Each
// field is reported once.
func (c *Cluster) missed(resource, handler, field string) {
	key := resource + " " + handler + " " + field
	c.mu.Lock()
	known := c.unlisted[key]
	if c.unlisted == nil {
		c.unlisted = map[string]bool{}
	}
	c.unlisted[key] = true
	c.mu.Unlock()
	switch {
	case known:
	case field == "":
		c.t.Errorf("handler %s of %s panicked over a field that its dsl.Reads does not list: it converts it, or copies the whole object; see the log", handler, resource)
	default:
		c.t.Errorf("handler %s of %s reads %s, which its dsl.Reads does not list: add %[3]q to it", handler, resource, field)
	}
}
