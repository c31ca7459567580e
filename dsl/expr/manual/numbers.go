// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package manual

// numbers are the functions for numbers and for times.
func numbers() []Group {
	return []Group{{"Numbers", []Function{
		entry("math.greatest math.least", "math.greatest(a, b, …), math.least(list)", "number", "The greatest or the least of some numbers, or of a list of them.",
			`math.greatest(1, 5, 3)`, `5`),
		entry("math.ceil math.floor", "math.ceil(number), math.floor(number)", "number", "The next whole number up or down. int() makes it one that goes with whole numbers.",
			`int(math.ceil(7.0 / 2.0))`, `4`),
		entry("math.round math.trunc", "math.round(number), math.trunc(number)", "number", "The nearest whole number, or the number without its fraction.",
			`math.round(2.5)`, `3`),
		entry("math.abs", "math.abs(number)", "number", "The number without its sign.",
			`math.abs(-3)`, `3`),
		entry("math.sign", "math.sign(number)", "number", "-1, 0 or 1.",
			`math.sign(-3)`, `-1`),
		entry("math.sqrt", "math.sqrt(number)", "number", "The square root.",
			`math.sqrt(16)`, `4`),
		entry("math.isNaN math.isInf math.isFinite", "math.isNaN(number)", "true or false", "Whether a number with a fraction is not a number, infinite, or neither.",
			`math.isFinite(1.0 / 0.0)`, `false`),
		entry("math.bitAnd math.bitOr math.bitXor", "math.bitAnd(a, b)", "whole number", "The bits that are set in both numbers, in one of them at least, or in one of them alone.",
			`math.bitAnd(6, 3)`, `2`),
		entry("math.bitNot", "math.bitNot(number)", "whole number", "The number with all bits turned.",
			`math.bitNot(1)`, `-2`),
		entry("math.bitShiftLeft math.bitShiftRight", "math.bitShiftLeft(number, n)", "whole number", "The number with its bits moved by n places.",
			`math.bitShiftLeft(1, 4)`, `16`),
	}}, {"Times", []Function{
		entry("timestamp", "timestamp(text or seconds)", "time", "The time of a text, as in metadata.creationTimestamp, or so many seconds after 1970. The variable now is the time of the reconcile.",
			`timestamp("2030-01-31T12:00:00Z") + duration("36h")`, `"2030-02-02T00:00:00Z"`),
		entry("duration", "duration(text)", "duration", "A length of time: a number with h, m, s, ms, us or ns behind it, or several of these.",
			`timestamp("2030-01-31T12:00:00Z") - timestamp("2030-01-31T10:30:00Z") < duration("2h")`, `true`),
		entry("getHours getMinutes getSeconds getMilliseconds", "time.getHours(), time.getHours(zone), duration.getHours()", "whole number", "A part of a time, in UTC or in a time zone; all hours, minutes, seconds of a duration.",
			`timestamp("2030-01-31T12:00:00Z").getHours("Europe/Berlin")`, `13`),
		entry("getFullYear", "time.getFullYear(), time.getFullYear(zone)", "whole number", "The year.",
			`timestamp("2030-01-31T12:00:00Z").getFullYear()`, `2030`),
		entry("getMonth", "time.getMonth(), time.getMonth(zone)", "whole number", "The month; 0 is January.",
			`timestamp("2030-01-31T12:00:00Z").getMonth()`, `0`),
		entry("getDate", "time.getDate(), time.getDate(zone)", "whole number", "The day of the month, from 1 on.",
			`timestamp("2030-01-31T12:00:00Z").getDate()`, `31`),
		entry("getDayOfMonth", "time.getDayOfMonth(), time.getDayOfMonth(zone)", "whole number", "The day of the month, from 0 on.",
			`timestamp("2030-01-31T12:00:00Z").getDayOfMonth()`, `30`),
		entry("getDayOfWeek", "time.getDayOfWeek(), time.getDayOfWeek(zone)", "whole number", "The day of the week; 0 is Sunday.",
			`timestamp("2030-01-31T12:00:00Z").getDayOfWeek()`, `4`),
		entry("getDayOfYear", "time.getDayOfYear(), time.getDayOfYear(zone)", "whole number", "The day of the year, from 0 on.",
			`timestamp("2030-01-31T12:00:00Z").getDayOfYear()`, `30`),
	}}}
}
