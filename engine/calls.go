// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

// calls has the methods that packages below call on the engine. They are not methods of [Engine] because that type is exported.
type calls struct{ *Engine }

// VersionsWentBack implements [watch.Listener]: the register may have changed, and the versions of own writes may be those of
// other writes now.
func (e calls) VersionsWentBack() {
	e.register.Doubt()
	for r := range e.resources.All {
		r.box.ForgetEchoes()
	}
}
