# SPDX-License-Identifier: BSD-2-Clause
"""Draws mutants at random, by operators, over all lines of model and fw, or of chosen files of these
and of guest-lib. So neither the author of the code nor of its tests chooses what is broken.
scripts/mutate --random tries them.

Each line is equally likely, however many things it has to break. Some mutants cannot be told from
the unbroken tree by any test (equivalent mutants); therefore a score of 100 % is out of reach.
Assertions, tables, macros and code outside functions are left alone. A mutant that does not compile
is dropped.
"""
import json
import pathlib
import random
import re
import shlex
import subprocess

import weave

FOLDERS = ("model", "fw")
MORE_FOLDERS = ("guest-lib",)  # only files that --only names
RELATIONAL = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "+", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "&&": "||", "||": "&&", "+=": "-=",
              "-=": "+=", "|=": "&=", "++": "--", "--": "++"}
NO_CODE = re.compile(r"^\s*(/\*|\*|//|#|g_assert|case\b.*:$|default:|\}|\{)|g_assert|ck_assert|TRACE|log_")
DECLARATION = re.compile(r"^\s*(static |const |struct |enum |uint\d+_t |u?int |unsigned |bool |size_t |void |char )")


def swaps(line, table):
    """Yields the line with one of its operators exchanged. Operators stand between blanks or are ++
    and --."""
    for found in re.finditer(r"(?<= )(<=|>=|==|!=|<<|>>|&&|\|\||\+=|-=|\|=|[<>+*&|-])(?= )|\+\+|--", line):
        if found[0] in table:
            yield line[:found.start()] + table[found[0]] + line[found.end():]


def constants(line):
    for found in re.finditer(r"(?<![\w.\"'])(\d+|true|false)(?![\w.\"'])", line):
        for new in {"true": ["false"], "false": ["true"], "0": ["1"]}.get(found[0], ["0", f"{found[0]} + 1"]):
            yield line[:found.start()] + new + line[found.end():]


def removed_statement(line):
    """If the line is a whole call or assignment, yields an empty statement in its place."""
    found = re.match(r"^(\s+)[^=;]*(\([^;]*\)|[^=!<>]=[^=][^;]*|\+\+|--);$", line)
    words = re.match(r"\s*(return|break|continue|goto|if|for|while|do|else|switch)\b", line)
    if found and not words and not DECLARATION.match(line) and line.count("(") == line.count(")"):
        yield f"{found[1]};"


def removed_condition(line):
    found = re.match(r"^(\s*(?:\} else )?if )\((.*)\) \{$", line)
    if found and line.count("(") == line.count(")"):
        yield f"{found[1]}(true) {{"
        yield f"{found[1]}(false) {{"


OPERATORS = {
    "relational": lambda line: swaps(line, RELATIONAL),
    "arithmetic": lambda line: swaps(line, ARITHMETIC),
    "constant": constants,
    "removed statement": removed_statement,
    "removed condition": removed_condition,
}


def lines_of(text):
    """Returns the numbers of lines that are inside a function and are code."""
    lines = text.split("\n")
    inside = set()
    for function in weave.functions(text):
        first, last = text.count("\n", 0, function.body) + 1, text.count("\n", 0, function.end) - 1
        inside.update(range(first, last))
    return lines, [number for number in sorted(inside) if lines[number].strip() and not NO_CODE.search(lines[number])]


def block(name, lines, number, new):
    """Returns a mutant in the format of mutants.txt, with as many lines before it as make its place
    unique."""
    text = "\n".join(lines) + "\n"
    for above in range(6):
        before = lines[number - above:number]
        old = "".join(f"{line}\n" for line in [*before, lines[number]])
        if text.count(old) == 1:
            return "\n".join([name, *(f" {line}" for line in before), f"-{lines[number]}", f"+{new}"])
    return None


def compiler(root, build):
    """Returns a dictionary from file to the command that compiles it, without an output."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    found = {}
    for one in commands:
        name = str((build / one["file"]).resolve().relative_to(root.resolve()))
        words = shlex.split(one["command"])
        if "-o" in words:
            del words[words.index("-o"):words.index("-o") + 2]
        found.setdefault(name, [word for word in words if word not in ("-c", "-MD", "-Werror")])
    return found


def compiles(text, name, command, root, build):
    """Returns whether the file with this text compiles with its command of the build."""
    source = next(i for i, word in enumerate(command) if word.endswith(pathlib.Path(name).name))
    words = [*command[:source], "-x", "c", "-", *command[source + 1:], "-fsyntax-only", "-w", f"-I{(root / name).parent}"]
    drop = [i for i, word in enumerate(words) if word in ("-MQ", "-MF")]
    words = [word for i, word in enumerate(words) if not any(at <= i <= at + 1 for at in drop)]
    done = subprocess.run(words, cwd=build, input=text, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False)
    return done.returncode == 0


def files_of(root, only):
    """Returns the names of the files from which mutants are drawn: those with one of the texts of
    `only` in their name, or all if it is empty."""
    found = [str(path.relative_to(root)) for folder in FOLDERS + (MORE_FOLDERS if only else ())
             for path in sorted((root / folder).rglob("*.c"))]
    return [name for name in found if any(text in name for text in only or [""])]


def draw(root, build, number, seed, only=None):
    """Draws so many mutants, as blocks of a list. The same seed, files and tree give the same
    mutants."""
    chance = random.Random(seed)
    files = {name: (root / name).read_text(encoding="utf-8") for name in files_of(root, only)}
    places = []
    for name, text in files.items():
        lines, code = lines_of(text)
        places += [(name, lines, at) for at in code if any(any(True for _ in make(lines[at]))
                                                           for make in OPERATORS.values())]
    chance.shuffle(places)
    commands = compiler(root, build)
    drawn = []
    for name, lines, at in places:
        if len(drawn) == number:
            break
        made = {kind: list(make(lines[at])) for kind, make in OPERATORS.items()}
        kind = chance.choice(sorted(kind for kind, news in made.items() if news))
        new = chance.choice(made[kind])
        one = block(name, lines, at, new)
        broken = "\n".join([*lines[:at], new, *lines[at + 1:]])
        if one and name in commands and compiles(broken, name, commands[name], root, build):
            drawn.append((kind, one))
    return drawn
