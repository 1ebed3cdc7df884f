#!/usr/bin/env python3
"""The house rules that a compiler does not check: what may include what, cycles, lengths, widths, defaults over enums, headers
that name what is there, declarations that are used.

Exceptions are in tests/house_exceptions.txt, in groups with the reason. The list only shrinks: one that is not needed any more
is a failure, too.
"""

import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOST_LINES = 900
MOST_LINES_OF_FUNCTION = 80
MOST_FIELDS = 25

# What may include what: a folder includes those before it.
FOLDERS = ["base", "tablet", "columnar", "vm", "compiler", "kernels", "mpi", "session", "server", "shell", "capi"]
# Within a folder, from the lowest room to the highest; "" is the folder itself. A folder that is not here has no order.
ROOMS = {
    "tablet": ["values", "schemes", "chunk", "files", "catalog", "load", "csv", "columnar", "json", "sqlite", ""],
    "vm": ["program", "meaning", "rows", "encode", "sinks", "after", "machine", "shares", "run", "ranks", ""],
    "kernels": ["launch", "device", "cuda", "unpack", "text", "memory", "plan", "rows", "join", "window", "groups", "ranks", "run",
                ""],
    "compiler": ["parse", "query", "bind", "rewrite", "plan", "generate", "ranks", ""],
}
SOURCES = re.compile(r"^(%s|data_gen|tools|bench)/.*\.(h|cc|cu|cuh|def)$" % "|".join(FOLDERS))
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def tracked():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True)
    if listed.returncode == 0:
        names = listed.stdout.split("\n")
    else:  # not a clone
        names = [os.path.relpath(os.path.join(folder, name), ROOT) for folder, _, files in os.walk(ROOT) for name in files]
    return sorted(name for name in names if SOURCES.match(name) and os.path.isfile(os.path.join(ROOT, name)))


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


FILES = {name: read(name) for name in tracked()}


def room_of(name):
    """(folder, room): compiler/bind/binder.h is in ("compiler", "bind")."""
    parts = name.split("/")
    rooms = ROOMS.get(parts[0])
    return parts[0], parts[1] if rooms and len(parts) > 2 and parts[1] in rooms else ""


def upward_includes():
    """Includes of a folder or room above."""
    for name, text in FILES.items():
        folder, room = room_of(name)
        if folder not in FOLDERS:
            continue
        for included in INCLUDE.findall(text):
            to_folder, to_room = room_of(included)
            if to_folder not in FOLDERS or included not in FILES:
                continue
            if to_folder != folder:
                allowed = FOLDERS.index(to_folder) < FOLDERS.index(folder)
                if to_folder == "kernels":
                    allowed = included == "kernels/kernels.h"
            else:
                order = ROOMS.get(folder)
                # (What the other folders see of kernels/ is what its rooms fulfil.)
                allowed = order is None or order.index(to_room) <= order.index(room) or included == "kernels/kernels.h"
            if not allowed:
                yield f"{name} includes {included}"


def module(name):
    return re.sub(r"\.(h|cc|cu|cuh|def)$", "", name)


def cycles():
    """Modules (a header and its source) that include each other."""
    graph = collections.defaultdict(set)
    for name, text in FILES.items():
        for included in INCLUDE.findall(text):
            if included in FILES and module(included) != module(name):
                graph[module(name)].add(module(included))
    # Tarjan's algorithm, without recursion.
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for start in sorted(graph):
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, rest = work[-1]
            for to in rest:
                if to not in index:
                    index[to] = low[to] = len(index)
                    stack.append(to)
                    on_stack.add(to)
                    work.append((to, iter(sorted(graph.get(to, ())))))
                    break
                if to in on_stack:
                    low[node] = min(low[node], index[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    members = []
                    while True:
                        members.append(stack.pop())
                        on_stack.discard(members[-1])
                        if members[-1] == node:
                            break
                    if len(members) > 1:
                        found.append(sorted(members))
    for members in sorted(found):
        yield "cycle: " + " ".join(members)


def long_files():
    for name, text in FILES.items():
        lines = text.count("\n")
        if lines > MOST_LINES:
            yield f"{name} is longer than {MOST_LINES} lines: {lines}"


FUNCTION_START = re.compile(r"^(  )?(?!(?:namespace|struct|class|enum|union|extern|template|#|//|}|\s|if|for|while|switch|else|do|"
                            r"case|return|public|private|protected|using|typedef|static_assert)\b)[^\n]*\)[^;{}\n]*\{$")


def functions(name):
    """(name, lines) of each function: from the line that opens its body to the brace at the same indent."""
    lines = FILES[name].split("\n")
    at = 0
    while at < len(lines):
        start = FUNCTION_START.match(lines[at])
        # The last line of a declaration of several lines is indented more.
        if not start and lines[at].endswith(") {") is False and not re.match(r"^\s{4,}.*\)( const| override| noexcept)*\s\{$",
                                                                             lines[at]):
            at += 1
            continue
        first = at
        while first > 0 and re.match(r"^\s{4,}", lines[first]):
            first -= 1
        head = lines[first]
        indent = len(head) - len(head.lstrip())
        if indent > 2 or re.match(r"^\s*(if|for|while|switch|else|do|case|return|namespace|struct|class|enum|}|//|#)\b", head) \
                or "(" not in "".join(lines[first:at + 1]):
            at += 1
            continue
        end = at + 1
        closing = " " * indent + "}"
        while end < len(lines) and lines[end] not in (closing, closing + ";"):
            end += 1
        named = re.search(r"([A-Za-z_~][\w:~]*(?:<[^()]*>)?|operator[^ (]+)\(", "".join(lines[first:at + 1]))
        yield (named.group(1) if named else head.strip()), end - first + 1
        at = end + 1


def long_functions():
    for name in FILES:
        if name.endswith(".def"):
            continue
        for function, lines in functions(name):
            if lines > MOST_LINES_OF_FUNCTION:
                yield f"{name}: {function} is longer than {MOST_LINES_OF_FUNCTION} lines: {lines}"


def without(pattern, text):
    """Removes what matches, from the inside out."""
    while True:
        shorter = re.sub(pattern, "", text)
        if shorter == text:
            return text
        text = shorter


def field_count(declaration):
    """How many fields a declaration in a struct has: `int a, b = f(1, 2)` has two, a function has none."""
    text = re.sub(r"\b(public|private|protected)\s*:", "", declaration).strip()
    if re.match(r"(using|typedef|friend|static|enum|struct|class|template|union|explicit|virtual|constexpr)\b", text):
        return 0
    head = without(r"<[^<>]*>", text.split("=")[0])
    if "(" in head or not re.search(r"\w[\s&*]+\w+", head):
        return 0
    return 1 + without(r"<[^<>]*>|\([^()]*\)", text).count(",")


def wide_structs():
    """Structs and classes with more fields than a reader keeps in mind: they become parts with names."""
    start = re.compile(r"\b(enum\s+)?(?:struct|class)\s+(\w+)[^;{}()]*\{")
    for name, text in FILES.items():
        text = re.sub(r"//[^\n]*|^[ ]*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.M)
        text = re.sub(r'"(?:\\.|[^"\\\n])*"|(?<!\d)\'(?:\\.|[^\'\\\n])+\'', "0", text)
        for found in start.finditer(text):
            if found.group(1):
                continue
            depth, at, declaration, fields = 1, found.end(), "", 0
            while depth > 0 and at < len(text):
                c = text[at]
                at += 1
                depth += (c == "{") - (c == "}")
                if depth != 1:
                    continue
                if c == ";":
                    fields += field_count(declaration)
                    declaration = ""
                elif c != "}":
                    declaration += c
                elif re.search(r"\)\s*(const|noexcept|override|final|\s)*(:\s.*)?$", declaration, re.S) \
                        and "=" not in declaration.split("(")[0]:
                    declaration = ""  # a function's body
            if fields > MOST_FIELDS:
                yield f"{name}: {found.group(2)} has more than {MOST_FIELDS} fields: {fields}"


def silent_defaults():
    """`default:` in a switch whose cases are enumerators: a new one falls through in silence."""
    for name, text in FILES.items():
        lines = text.split("\n")
        count = 0
        for at, line in enumerate(lines):
            if not re.match(r"^\s*default:", line):
                continue
            indent = len(line) - len(line.lstrip())
            first = at
            while first > 0 and not (lines[first].lstrip().startswith("switch ") and
                                     len(lines[first]) - len(lines[first].lstrip()) < indent):
                first -= 1
            count += any(re.match(r"^\s{%d}case .*\bk(?:[A-Z]\w*|##\w+):" % indent, c) for c in lines[first:at])
        if count:
            yield f"{name}: defaults over enumerators: {count}"


def dead_declarations():
    """Functions of a header that nothing but their definition names. (What capi/ declares is for programs of others.)"""
    ours = "\n".join(re.sub(r"//.*", "", text) for text in FILES.values())
    defined = collections.Counter(re.findall(r"^(?:[\w:<>,&*]+\s+[&*]*)+(?:\w+::)*(\w+)\([^;{}]*\)[^;{}]*\{", ours, re.M))
    everything = ours
    for folder in ("tests",):
        for path, _, files in os.walk(os.path.join(ROOT, folder)):
            for file in files:
                if file.endswith((".cc", ".h", ".cu", ".py")):
                    with open(os.path.join(path, file), encoding="utf-8") as opened:
                        everything += "\n" + opened.read()
    words = collections.Counter(re.findall(r"[A-Za-z_]\w+", re.sub(r"//.*", "", everything)))
    for name, text in FILES.items():
        if not name.endswith(".h") or name.startswith("capi/"):
            continue
        code = re.sub(r"//.*", "", text)
        for declared, end in re.findall(r"^[ ]*(?!return )(?:[\w:<>,&*\[\]]+\s+[&*]*)+(\w+)\([^;{]*\)(?: const)?(?: override)?(;| \{)", code, re.M):
            # (An interpreter's loops are named by the table of shapes.)
            if words[declared] <= 1 + (defined[declared] if end == ";" else 0) and not re.match(r"^(LLVM|operator|__|Do[A-Z])", declared):
                yield f"{name}: {declared} is not used"


def lost_starts():
    """"Start at: A, B::C." of a header names what is in it or in what it names."""
    everything = " ".join(FILES.values())
    identifiers = set(re.findall(r"[A-Za-z_]\w+", re.sub(r"//.*", "", everything)))
    for name, text in FILES.items():
        said = re.search(r"Start at: (.*?)\.(?:\s|$)", text.replace("\n// ", " "))
        if not said:
            continue
        for word in re.findall(r"\b[A-Z]\w+(?:::[A-Z]\w+)*", said.group(1)):
            if not all(part in identifiers for part in word.split("::")):
                yield f"{name}: Start at: {word}"


# What a reader stumbles over, and what they would say: "after" for behind, a number or "that many" for so many.
STUMBLES = re.compile(r"\b(?:nobody|whoever|in turn|so many(?! \w+ that\b)|"
                      r"(?<!ahead or )(?<!`)behind(?!`))\b", re.I)


def stumbles():
    """Such words in comments and documents. The history of measurements stays as it was written."""
    documents = [os.path.join(path, file) for path, folders, files in os.walk(ROOT) for file in files
                 if file.endswith(".md") and not re.search(r"/(build|\.git|venv|node_modules)(/|$)", path) and "HISTORY" not in file]
    texts = [(os.path.relpath(path, ROOT), read(os.path.relpath(path, ROOT))) for path in sorted(documents)]
    texts += [(name, "\n".join(re.findall(r"//.*", text))) for name, text in FILES.items()]
    for name, text in texts:
        for line in text.split("\n"):
            found = STUMBLES.search(line)
            if found and not (found.group(0) == "behind" and re.search(r"\b(leaves?|left)\b", line)):
                yield f"{name}: \"{found.group(0)}\" in: {line.strip()[:80]}"


NUMBER = re.compile(r" (\d+)$")

RULES = [upward_includes, cycles, long_files, long_functions, wide_structs, silent_defaults, dead_declarations, lost_starts, stumbles]


def main():
    with open(os.path.join(ROOT, "tests", "house_exceptions.txt"), encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
    allowed = dict.fromkeys(lines)
    without_number = {NUMBER.sub("", name): name for name in allowed}
    failed = 0
    found_all = set()
    for rule in RULES:
        found = list(rule())
        bad = []
        for one in found:
            key = NUMBER.sub("", one)
            known = without_number.get(key)
            found_all.add(key)
            if known is None:
                bad.append(one)
                continue
            # What is long may get shorter, not longer.
            limit, now = NUMBER.search(known), NUMBER.search(one)
            if limit and now and int(now.group(1)) > int(limit.group(1)):
                bad.append(f"{one}; {limit.group(1)} are allowed")
        for one in bad:
            print(f"FAILED: {rule.__name__}: {one}")
        failed += len(bad)
    for key, name in without_number.items():
        if key not in found_all:
            print(f"FAILED: tests/house_exceptions.txt allows what is not there any more: {name}")
            failed += 1
    print(f"{len(RULES)} passed, {failed} failed" if failed == 0 else f"{len(RULES) - 1} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
