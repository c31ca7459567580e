// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import "strings"

// badParts are configurations with parts and their faults, which comments say where they are.
func badParts() map[string]map[string]string {
	one := func(use, part string) map[string]string {
		return map[string]string{"operator.yaml": using(user(use)), "parts/a.yaml": part}
	}
	of := func(handlers string, parts ...string) map[string]string {
		out := map[string]string{"operator.yaml": using(handlers)}
		for i, part := range parts {
			out["parts/"+string(rune('a'+i))+".yaml"] = part
		}
		return out
	}
	line := note("parameters: {text: string | required=true}\nlog: {message: \"${text}\"}")
	return map[string]map[string]string{
		"a parameter that is not there":      one(`{file: parts/a.yaml, with: {text: a, loud: true}} # want@51: unknown parameter "loud"`, line),
		"a parameter that is mistyped":       one(`{file: parts/a.yaml, with: {txet: a}} # want@42: unknown parameter "txet" (did you mean "text"?)`, line),
		"a parameter that is missing":        one(`{file: parts/a.yaml} # want: the parameter text of parts/a.yaml is required`, line),
		"values that are of other types":     one(`{file: parts/a.yaml, with: {name: 7, replicas: many, labels: [a]}} # want@48: want text, found a whole number # want@61: want a whole number, found text # want@75: want a map, found a list`, web),
		"values out of bounds":               one(`{file: parts/a.yaml, with: {name: a, replicas: 10}} # want: less than or equal to 9`, web),
		"an expression of another type":      one(`{file: parts/a.yaml, with: {name: "${self.spec.replicas}"}} # want@51: want text, found a whole number`, web),
		"an expression that is misspelt":     one(`{file: parts/a.yaml, with: {name: "${self.spec.imge}"}} # want@61: unknown field "imge"`, web),
		"an unknown variable in a value":     one(`{file: parts/a.yaml, with: {name: "${ownr}"}} # want: unknown variable "ownr" (did you mean "owner"?)`, web),
		"an absent value that is required":   one(`{file: parts/a.yaml, with: {name: "${self.spec.?image}"}} # want: the value may be absent`, web),
		"parameters of a function":           one(`{file: parts/a.yaml, with: {text: "${params.x}"}} # want: params is not there`, line),
		"values beside the use":              of("      - id: web\n        with: {text: a} # want@9: is for call\n        use: {file: parts/a.yaml, with: {text: a}}\n", line),
		"an action beside the use":           of("      - id: web\n        log: {message: a}\n        use: {file: parts/a.yaml} # want@9: a handler has one action\n", line),
		"a file that is not there":           one("{file: parts/b.yaml} # want@21: reading part parts/b.yaml: no such file", line),
		"a file above the configuration":     one("{file: ../a.yaml} # want: stays in it", line),
		"a file that goes up and comes back": one("{file: parts/../parts/a.yaml} # want: stays in it", line),
		"a file with an absolute path":       one("{file: /etc/a.yaml} # want: stays in it", line),
		"a directory":                        one("{file: parts} # want: it is not a regular file", line),
		"no file":                            one("{with: {text: a}} # want: file is required", line),
		"another kind":                       one("{file: parts/a.yaml}", "apiVersion: handwerk.dev/v1alpha1\nkind: Operator # want: unknown kind \"Operator\"\nlog: {message: a}\n"),
		"two documents":                      one("{file: parts/a.yaml}", line+"---\n"+note("log: {message: a} # want+-2: a part has a file of its own")),
		"nothing":                            one("{file: parts/a.yaml}", "# want: there is no part in here\n"),
		"a syntax error":                     one("{file: parts/a.yaml}", note("log: {message: a # want: invalid YAML")),
		"no action":                          one("{file: parts/a.yaml}", note("doc: A part. # want+-2: a part has an action")),
		"a field that is mistyped":           one("{file: parts/a.yaml}", note("log: {mesage: a} # want@7: unknown field (did you mean \"message\"?)")),
		"an expression with a fault":         one(`{file: parts/a.yaml, with: {text: a}}`, note("parameters: {text: string}\nlog: {message: \"${txt}\"} # want@19: unknown variable \"txt\"")),
		"a parameter of another type":        one(`{file: parts/a.yaml, with: {n: 1}}`, note("parameters: {n: integer | required=true}\nlog: {message: \"${n + 'x'}\"} # want: + with a whole number and text")),
		"a let of the configuration":         one(`{file: parts/a.yaml, with: {text: "${owner}"}}`, note("parameters: {text: string}\nlog: {message: \"${text} ${owner}\"} # want: unknown variable \"owner\"")),
		"a let that hides a parameter":       one(`{file: parts/a.yaml, with: {text: a}}`, note("parameters: {text: string | required=true}\nlet: {text: \"1\"} # want: there is a parameter text already\nlog: {message: \"${text}\"}")),
		"declarations": one(`{file: parts/a.yaml}`, note(`parameters:
  a: strin # want: unknown type "strin"
  b: {c: string} # want: want a type
  c: string | immutable=true # want: immutable and validation are for fields
  d: integer | default=x # want: want an integer
  e: []
  # want+-1: want a type or a map of fields, found a list
log: {message: a}`)),
		"names of parameters":                 one(`{file: parts/a.yaml}`, note("parameters: {self: string, a-b: string} # want@14: is no name for a parameter: it is a variable # want@28: is no name for a parameter: want letters\nlog: {message: a}")),
		"a parameter of params":               one(`{file: parts/a.yaml, with: {text: a}}`, note("parameters: {text: string | required=true}\nlet: {shown: text}\nlog: {message: \"${params.text + shown}\"} # want@26: unknown parameter \"text\" of a Go function: that of the part is a variable (write text)")),
		"a text for a use":                    one("parts/a.yaml # want@14: want a map, as in {file: parts/web.yaml}, found the text", line),
		"what a handler has":                  one("{file: parts/a.yaml}", note("causes: [create] # want@1: unknown field (the handler that uses the part has it)\nlog: {message: a}")),
		"no parameters":                       one(`{file: parts/a.yaml}`, note("parameters: {} # want: must not be empty\nlog: {message: a}")),
		"parts that use each other":           of(user("{file: parts/a.yaml}"), note("use: {file: parts/b.yaml}"), note("use: {file: parts/a.yaml} # want@13: the parts use each other in a circle: parts/a.yaml → parts/b.yaml → parts/a.yaml")),
		"a part that uses itself":             one("{file: ./parts/a.yaml}", note("use: {file: parts/a.yaml} # want: in a circle: parts/a.yaml → parts/a.yaml")),
		"a fault in a part of a part":         of(user("{file: parts/a.yaml}"), note("use: {file: parts/b.yaml}"), note("log: {message: \"${x}\"} # want: unknown variable \"x\"")),
		"steps for a step":                    of("      - id: web\n        steps:\n          - use: {file: parts/a.yaml} # want@25: the part has steps\n", note("steps: [{log: {message: a}}]")),
		"children of one name":                of(user("{file: parts/a.yaml, with: {name: a}}")+"      - id: more\n        use: {file: parts/a.yaml, with: {name: b}}\n", strings.Replace(web, "  web:\n", "  web: # want+1@5: there is a child of this name already\n", 1)),
		"children of one name in one use":     of(user("{file: parts/a.yaml, as: a, with: {name: a}}")+"      - id: more\n        use: {file: parts/a.yaml, as: a, with: {name: b}}\n", strings.Replace(web, "  web:\n", "  web: # want+1@5: there is a child of this name already\n", 1)),
		"a name of children with a dash":      one(`{file: parts/a.yaml, as: a-b, with: {name: a}} # want@39: want letters, digits and _`, web),
		"a name for no children":              one(`{file: parts/a.yaml, as: a, with: {text: a}} # want@35: is for parts that make children`, line),
		"a child of a part in a circle":       one(`{file: parts/a.yaml, as: a}`, note("apply:\n  one: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${children.two.metadata.name}\"}} # want@8: the children need each other in a circle: a_one → a_two → a_one\n  two: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${children.one.metadata.name}\"}}")),
		"an unknown field of a child":         one(`{file: parts/a.yaml, as: a}`, note("apply:\n  one: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n  two: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${children.won.metadata.name}\"}} # want: unknown child \"won\" (want one of one, two)")),
		"children that are the same object":   of(user("{file: parts/a.yaml, with: {name: a}}")+"      - id: more\n        use: {file: parts/b.yaml, with: {name: a}}\n", web, strings.Replace(web, "  web:\n", "  other: # want+1@5: and would undo each other's work\n", 1)),
		"an id that is used twice":            of(user("{file: parts/a.yaml, with: {text: a}}")+"      - id: web # want: the id is used twice\n        use: {file: parts/a.yaml, with: {text: b}}\n", line),
		"an action that objects alone have":   {"operator.yaml": "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: a}\nstartup:\n  - {id: hello, use: {file: a.yaml}}\nresources: [{resource: configmaps.v1, handlers: [{id: a, log: {message: a}}]}]\n", "a.yaml": note("event: {reason: A, message: a} # want: is not for startup")},
		"steps for a startup":                 {"operator.yaml": "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: a}\nstartup:\n  - {id: hello, use: {file: a.yaml}} # want: the part has steps\nresources: [{resource: configmaps.v1, handlers: [{id: a, log: {message: a}}]}]\n", "a.yaml": note("steps: [{log: {message: a}}]")},
		"includeWhen of a part that does not": of("      - id: web\n        includeWhen: \"true\" # want: is for handlers that apply\n        use: {file: parts/a.yaml, with: {text: a}}\n", line),
	}
}
