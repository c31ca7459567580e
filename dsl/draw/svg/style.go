// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package svg

// style is the picture's stylesheet. Boxes are filled with a little of the color of their border, so they go with both
// backgrounds.
const style = `
.handwerk { font-family: Helvetica, Arial, "Liberation Sans", sans-serif; }
.handwerk text { fill: #1f2328; font-size: 11px; }
.handwerk .title { font-size: 16px; font-weight: bold; }
.handwerk .name { font-size: 13px; font-weight: bold; }
.handwerk .line { fill: #4d555e; }
.handwerk .page { fill: #ffffff; }
.handwerk .part { fill: none; stroke: #8c959f; stroke-dasharray: 2 3; }
.handwerk .box { stroke-width: 1.5; fill-opacity: 0.1; }
.handwerk .inner { fill: none; }
.handwerk .edge { fill: none; stroke: #57606a; stroke-width: 1.3; }
.handwerk .head { fill: #57606a; }
.handwerk .resource { stroke: #1f6feb; fill: #1f6feb; }
.handwerk .handler { stroke: #2da44e; fill: #2da44e; }
.handwerk .child { stroke: #bf8700; fill: #bf8700; }
.handwerk .related { stroke: #8250df; fill: #8250df; }
.handwerk .state { stroke: #6e7781; fill: #6e7781; }
.handwerk .terminal { stroke: #2da44e; fill: #2da44e; }
.handwerk .failed { stroke: #cf222e; fill: #cf222e; }
.handwerk .former { stroke: #8c959f; fill: #8c959f; stroke-dasharray: 4 3; }
.handwerk .inner.box, .handwerk rect.inner { fill: none; }
.handwerk .start { fill: #57606a; }
.handwerk .edge.dashed { stroke: #9a6700; stroke-dasharray: 6 4; }
.handwerk .edge.dotted { stroke: #8250df; stroke-dasharray: 1.5 3.5; }
.handwerk .edge.thick { stroke: #0969da; stroke-width: 2.6; }
.handwerk .head.dashed { fill: #9a6700; }
.handwerk .head.dotted { fill: #8250df; }
.handwerk .head.thick { fill: #0969da; }
@media (prefers-color-scheme: dark) {
.handwerk text { fill: #e6edf3; }
.handwerk .line { fill: #a8b1bb; }
.handwerk .page { fill: #0d1117; }
.handwerk .box { fill-opacity: 0.18; }
.handwerk .edge { stroke: #9198a1; }
.handwerk .head, .handwerk .start { fill: #9198a1; }
.handwerk .edge.dashed { stroke: #d29922; }
.handwerk .edge.dotted { stroke: #a371f7; }
.handwerk .edge.thick { stroke: #4493f8; }
.handwerk .head.dashed { fill: #d29922; }
.handwerk .head.dotted { fill: #a371f7; }
.handwerk .head.thick { fill: #4493f8; }
}
`
