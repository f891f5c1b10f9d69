# SPDX-License-Identifier: BSD-2-Clause
"""Puts all mutants of a C file into it at once; the environment chooses one of them when a program
begins. So one build contains all mutants. A function is followed by a copy of itself for each
mutant in it, and begins with a jump to the chosen copy.

A mutant outside a function (in a table or a macro) cannot be woven in this way.
"""
import re

CHOICE = "HCASIM_MUTANT"  # the number of the mutant, from 1 on; unset or 0: none

# It declares the C library's functions by their names alone, because a file may have to define
# things before it includes any header. The warnings are off because a copy need not use everything
# that its original uses.
CHOOSER = f"""\
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wunused-const-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wempty-body"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wredundant-decls"
#pragma GCC diagnostic ignored "-Wtautological-compare"
char *getenv(const char *);
int atoi(const char *);

#ifndef MUTANT_CHOSEN
#define MUTANT_CHOSEN /* a file and its headers may have mutants */
static int mutant_chosen(void)
{{
    static int chosen = -1;

    if (chosen < 0) {{
        const char *number = getenv("{CHOICE}");

        chosen = number ? atoi(number) : 0;
    }}
    return chosen;
}}
#endif

"""


class Function:
    """A function of a file in QEMU's style: its braces are at the beginning of a line."""

    def __init__(self, text, brace):
        self.body = brace
        self.end = text.index("\n}\n", brace) + len("\n}\n")
        self.start = text.rfind("\n", 0, text.rfind("\n", 0, brace)) + 1
        # a line of parameters, or the name alone: the return type is on the line before it
        while re.compile(r"\s|\w+\(").match(text, self.start):
            self.start = text.rfind("\n", 0, self.start - 1) + 1
        self.signature = text[self.start:brace].rstrip("\n")
        self.name = re.search(r"(\w+)\((?!\()", self.signature).group(1)  # no __attribute__((it))

    def called(self, name):
        """Returns its signature under another name; the copy is static."""
        signature = re.sub(rf"\b{self.name}\(", f"{name}(", self.signature, count=1)
        return signature if "static " in signature else f"static {signature}"

    def jump(self, name):
        """Returns a statement that calls it under another name, with the same arguments."""
        inner = self.signature[self.signature.index(f"{self.name}(") + len(self.name) + 1:-1]
        arguments = [] if inner == "void" else [
            re.search(r"(\w+)(\[.*\])?$", one.strip()).group(1) for one in inner.split(",")]
        call = f"{name}({', '.join(arguments)});"
        is_void = re.search(rf"\bvoid {self.name}\(", self.signature)
        return f"{call} return;" if is_void else f"return {call}"


def functions(text):
    return [Function(text, found.start() + 1) for found in re.finditer(r"\n\{\n", text)]


def weave(text, mutants):
    """Weaves mutants into a file. mutants: (number, old, new); the text contains old once. Returns
    the new text, and the numbers of the mutants that are in no function."""
    pieces, at = [CHOOSER], 0
    places = [(text.index(old), number, old, new) for number, old, new in mutants]
    inside = set()
    for function in functions(text):
        mine = [place for place in places
                if function.start <= place[0] and place[0] + len(place[2]) <= function.end]
        if not mine:
            continue
        body = text[function.body:function.end]
        copies, jumps = [], []
        for _, number, old, new in mine:
            name = f"{function.name}_mutant_{number}"
            whole = text[function.start:function.end].replace(old, new)
            copies.append("\n" + function.called(name) + "\n" + whole[len(function.signature) + 1:])
            jumps.append(f"    case {number}:\n        {function.jump(name)}\n")
            inside.add(number)
        pieces += [text[at:function.start]]
        pieces += [function.called(f"{function.name}_mutant_{number}") + ";\n" for _, number, _, _ in mine]
        pieces += [function.signature, "\n{\n    switch (mutant_chosen()) {\n", *jumps,
                   "    default:\n        break;\n    }\n", body[len("{\n"):], *copies]
        at = function.end
    pieces.append(text[at:])
    rest = [number for number, _, _ in mutants if number not in inside]
    return "".join(pieces) if inside else text, rest
