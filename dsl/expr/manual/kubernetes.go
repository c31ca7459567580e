// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package manual

// kubernetes are the functions for values that Kubernetes has and CEL has not.
func kubernetes() []Group {
	return []Group{
		{"Quantities", quantities()},
		{"Versions", versions()},
		{"URLs", urls()},
		{"Addresses", addresses()},
		{"Formats", formats()},
	}
}

func quantities() []Function {
	return []Function{
		entry("quantity", "quantity(text)", "quantity", "A quantity as in resources.requests. In a template it becomes its text.",
			`quantity("1Gi").add(quantity("512Mi"))`, `"1536Mi"`),
		entry("isQuantity", "isQuantity(text)", "true or false", "Whether a text is a quantity.",
			`isQuantity("1.5GB")`, `false`),
		entry("add sub", "quantity.add(other), quantity.sub(other)", "quantity", "The sum or the difference with another quantity, or with a whole number.",
			`quantity("1500m").sub(quantity("250m"))`, `"1250m"`),
		entry("isGreaterThan isLessThan", "quantity.isGreaterThan(other)", "true or false", "Whether it is more or less than another quantity.",
			`quantity("2Gi").isGreaterThan(quantity("1G"))`, `true`),
		entry("compareTo", "quantity.compareTo(other)", "whole number", "0 if two quantities are equal, 1 if the first one is greater, -1 if it is less.",
			`quantity("1000m").compareTo(quantity("1"))`, `0`),
		entry("sign", "sign(quantity)", "whole number", "-1, 0 or 1.",
			`sign(quantity("-1Gi"))`, `-1`),
		entry("asInteger", "quantity.asInteger()", "whole number", "The quantity as a number. One that has a fraction or is too large is an error.",
			`quantity("1Gi").asInteger()`, `1073741824`),
		entry("isInteger", "quantity.isInteger()", "true or false", "Whether asInteger can give a number.",
			`quantity("250m").isInteger()`, `false`),
		entry("asApproximateFloat", "quantity.asApproximateFloat()", "number", "The quantity as a number that may have a fraction, and be less exact.",
			`quantity("250m").asApproximateFloat()`, `0.25`),
	}
}

func versions() []Function {
	return []Function{
		entry("semver", "semver(text), semver(text, normalize)", "version", "A semantic version. With true, v1.2 is 1.2.0.",
			`semver("v1.2", true)`, `"1.2.0"`),
		entry("isSemver", "isSemver(text), isSemver(text, normalize)", "true or false", "Whether a text is a semantic version.",
			`isSemver("v1.2")`, `false`),
		entry("isGreaterThan isLessThan", "version.isGreaterThan(other)", "true or false", "Whether it is later or earlier than another version.",
			`semver("1.10.0").isGreaterThan(semver("1.9.0"))`, `true`),
		entry("compareTo", "version.compareTo(other)", "whole number", "0 if two versions are equal, 1 if the first one is later, -1 if it is earlier.",
			`semver("1.10.0-rc.1").compareTo(semver("1.10.0"))`, `-1`),
		entry("major minor patch", "version.major(), version.minor(), version.patch()", "whole number", "A part of the version.",
			`semver("1.10.2").minor()`, `10`),
	}
}

func urls() []Function {
	return []Function{
		entry("url", "url(text)", "URL", "A URL, or an absolute path. Another text is an error.",
			`url("https://example.com/a")`, `"https://example.com/a"`),
		entry("isURL", "isURL(text)", "true or false", "Whether a text is a URL, or an absolute path.",
			`isURL("example.com")`, `false`),
		entry("getScheme", "url.getScheme()", "text", "The scheme. It is empty for a URL without a scheme.",
			`url("https://example.com").getScheme()`, `"https"`),
		entry("getHost", "url.getHost()", "text", "The host with its port.",
			`url("https://example.com:8443/a").getHost()`, `"example.com:8443"`),
		entry("getHostname", "url.getHostname()", "text", "The host without its port.",
			`url("https://example.com:8443/a").getHostname()`, `"example.com"`),
		entry("getPort", "url.getPort()", "text", "The port. It is empty for a URL without a port.",
			`url("https://example.com:8443/a").getPort()`, `"8443"`),
		entry("getEscapedPath", "url.getEscapedPath()", "text", "The path, escaped.",
			`url("https://example.com/a b").getEscapedPath()`, `"/a%20b"`),
		entry("getQuery", "url.getQuery()", "map of lists of text", "The parameters, each with all its values.",
			`url("https://example.com?a=1&a=2").getQuery()`, `{"a":["1","2"]}`),
	}
}

func addresses() []Function {
	return []Function{
		entry("ip", "ip(text)", "address", "An IP address, of version 4 or 6.",
			`ip("2001:db8::1")`, `"2001:db8::1"`),
		entry("isIP", "isIP(text)", "true or false", "Whether a text is an IP address.",
			`isIP("10.0.0.256")`, `false`),
		entry("ip.isCanonical", "ip.isCanonical(text)", "true or false", "Whether an address is written in the one way that its text can be compared in.",
			`ip.isCanonical("2001:DB8::1")`, `false`),
		entry("family", "address.family()", "whole number", "4 or 6.",
			`ip("2001:db8::1").family()`, `6`),
		entry("isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast", "address.isLoopback()", "true or false",
			"Whether it is an address of this kind: unspecified (0.0.0.0), of the host itself, of the link (to many or to one), or of the network.",
			`ip("127.0.0.1").isLoopback()`, `true`),
		entry("cidr", "cidr(text)", "network", "A network in CIDR notation.",
			`cidr("10.0.0.0/8")`, `"10.0.0.0/8"`),
		entry("isCIDR", "isCIDR(text)", "true or false", "Whether a text is a network in CIDR notation.",
			`isCIDR("10.0.0.0/33")`, `false`),
		entry("containsIP", "network.containsIP(address or text)", "true or false", "Whether an address is in the network.",
			`cidr("10.0.0.0/8").containsIP("10.1.2.3")`, `true`),
		entry("containsCIDR", "network.containsCIDR(network or text)", "true or false", "Whether another network is in the network.",
			`cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16")`, `true`),
		entry("ip", "network.ip()", "address", "The address before the slash.",
			`cidr("10.0.0.0/8").ip()`, `"10.0.0.0"`),
		entry("masked", "network.masked()", "network", "The network with all bits behind its prefix 0.",
			`cidr("10.1.2.3/8").masked()`, `"10.0.0.0/8"`),
		entry("prefixLength", "network.prefixLength()", "whole number", "The number behind the slash.",
			`cidr("10.0.0.0/8").prefixLength()`, `8`),
	}
}

func formats() []Function {
	return []Function{
		entry("validate", "format.validate(text)", "optional list of text", "What is wrong with a text of this format; absent if nothing is.",
			`format.dns1123Label().validate("web-1").hasValue()`, `false`),
		entry("format.dns1123Label format.dns1123Subdomain format.dns1035Label format.dns1123LabelPrefix format.dns1123SubdomainPrefix format.dns1035LabelPrefix format.qualifiedName format.labelValue",
			"format.dns1123Label()", "format", "The format of a name: of most objects (dns1123Subdomain), of Namespaces (dns1123Label), of Services (dns1035Label), of keys and values of labels (qualifiedName, labelValue). A prefix may end with a hyphen.",
			`format.labelValue().validate("a b").hasValue()`, `true`),
		entry("format.uri format.uuid format.byte format.date format.datetime", "format.uuid()", "format", "The format of a URL, a UUID, base64, a day (2030-01-31), or a time.",
			`format.date().validate("2030-02-31").hasValue()`, `true`),
		entry("format.named", "format.named(name)", "optional format", "The format of a name that is only known when the expression runs.",
			`format.named("uuid").hasValue()`, `true`),
	}
}
