// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// The variables of one element.
const (
	Item  = "item"
	Value = "value"
	Index = "index"
	Key   = "key"
)

// ItemVariables returns the variables of one element. Value is another name for item.
func ItemVariables() []string { return []string{Item, Index, Key, Value} }

// Each evaluates to the elements of a list or a map.
type Each struct {
	// Of evaluates to the list or the map. A missing value, or null, has no elements.
	Of *Template
	// Key identifies an element. It may use the variables of the element. The default, nil, is the element itself
	// if it is text or a number, and the key in a map.
	Key *Template
	// Most is the greatest number of elements.
	Most int
}

// Element is one element. Keys are unique, and not empty.
type Element struct {
	Key string
	// Vars are its variables, for [Scope].
	Vars map[string]any
}

// TooManyError says that there are too many elements.
type TooManyError struct{ Found, Most int }

// Error names the numbers.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("forEach has %d items, and the limit is %d", e.Found, e.Most)
}

// Elements returns the elements, sorted by key. Scope is the scope of expressions with the given variables. The
// error is a [TooManyError], or a fault of elements or their keys.
func (e *Each) Elements(scope func(vars map[string]any) Scope) ([]Element, error) {
	given, err := e.Of.Render(scope(nil))
	if err != nil {
		return nil, err
	}
	var out []Element
	add := func(value any) map[string]any {
		vars := map[string]any{Item: value, Value: value, Index: int64(len(out))}
		out = append(out, Element{Vars: vars})
		return vars
	}
	switch given := given.(type) {
	case []any:
		for _, value := range given {
			add(value)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(given)) {
			add(given[key])[Key] = key
			out[len(out)-1].Key = key
		}
	default:
		if given != nil && given != None {
			return nil, fmt.Errorf("forEach gives %s, want a list or a map", kindOf(given))
		}
	}
	if len(out) > e.Most {
		return nil, &TooManyError{len(out), e.Most}
	}
	return e.keyed(out, scope)
}

// keyed sets the key of each element.
func (e *Each) keyed(list []Element, scope func(map[string]any) Scope) ([]Element, error) {
	seen, secrets := map[string]int{}, scope(nil).secrets()
	secret := e.Key == nil && len(list) > 0 && secrets.In(e.Of.Reads().Values)
	for i := range list {
		one := &list[i]
		if err := e.setKey(one, scope, secret); err != nil {
			return nil, fmt.Errorf("item %d of forEach: %w", i, err)
		}
		if other, twice := seen[one.Key]; twice {
			return nil, fmt.Errorf("items %d and %d of forEach have the key %s", other, i, secrets.Shown(one.Key))
		}
		seen[one.Key] = i
		one.Vars[Key] = one.Key
	}
	slices.SortFunc(list, func(a, b Element) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}

// setKey sets the key of an element. Secret: the element may be a value of a Secret.
func (e *Each) setKey(one *Element, scope func(map[string]any) Scope, secret bool) error {
	value := one.Vars[Item]
	switch {
	case e.Key != nil:
		var err error
		if value, err = e.Key.Render(scope(one.Vars)); err != nil {
			return err
		}
	case one.Key != "":
		return nil // the key in the map
	case secret:
		return errors.New("forEach reads a Secret, and a key is written where people look: say with key what names an item without being secret")
	}
	switch value := value.(type) {
	case string:
		one.Key = value
	case int64:
		one.Key = strconv.FormatInt(value, 10)
	case float64:
		one.Key = plain.Text(value)
	default:
		if e.Key == nil {
			return errors.New("it has no key: say with key which one it is, as in key: ${item.name}")
		}
		return fmt.Errorf("its key is %s, want text or a number", kindOf(value))
	}
	if one.Key == "" {
		return errors.New("its key is empty")
	}
	return nil
}
