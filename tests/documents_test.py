#!/usr/bin/env python3
"""The documents agree with the tree: every file that a document names is there, every link leads to a file and a heading,
and every name of a type or function that it writes as code is in a source. Documents that sources name are there, too.

    tests/documents_test.py [BUILD_DIR]

Ends with "N passed, N failed", one for each document and one for the comments of the sources.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = (".h", ".cc", ".cu", ".cuh", ".def", ".py", ".sh", ".mk")
# Files of a database or of a build, and programs that are not ours.
OTHERS = {"catalog.sqlite", "catalog.sqlite-journal", "writer.lock", "readers.lock", "tessera_mpi.so", "libtessera.a",
          "prices.csv", "queries.sql", "my.db", "mpi.h"}
# Names in CamelCase that other libraries have.
OTHER_NAMES = {"GoogleTest"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def files():
    """The files of the repository; outside of one, those in its folders."""
    try:
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                                capture_output=True, text=True)
        found = listed.stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):
        found = [os.path.relpath(os.path.join(folder, name), ROOT)
                 for folder, _, names in os.walk(ROOT) for name in names]
    return {f for f in found if f and not f.startswith("build/") and os.path.exists(os.path.join(ROOT, f))}


def anchor(heading):
    """GitHub's anchor of a heading."""
    text = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return text.strip().replace(" ", "-")


def anchors(path):
    text = re.sub(r"```.*?```", "", read(path), flags=re.S)
    return {anchor(h) for h in re.findall(r"^#+ +(.*)$", text, flags=re.M)}


def is_there(name, folder, tree, folders):
    """Whether a name in a document of `folder` is a file or folder: from the root or from there, in full or as a pattern."""
    name = name.rstrip("/")
    for base in ("", folder + "/" if folder else ""):
        path = os.path.normpath(base + name)
        if path in tree or path in folders:
            return True
        if "*" in path and any(re.fullmatch(re.escape(path).replace(r"\*", "[^/]*"), f) for f in tree):
            return True
    return False


def check_document(path, tree, folders, words):
    text = read(path)
    folder = os.path.dirname(path)
    wrong = []

    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+://", target):
            continue
        file, _, heading = target.partition("#")
        file = os.path.normpath(os.path.join(folder, file)) if file else path
        if file not in tree:
            wrong.append(f"link to {target}: there is no such file")
        elif heading and file.endswith(".md") and heading not in anchors(file):
            wrong.append(f"link to {target}: there is no such heading")

    plain = re.sub(r"\]\([^)\s]+\)", "]", re.sub(r"\[[\w./]+\]\([^)\s]+\)", "", text))
    code = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", plain, flags=re.S))
    code += re.findall(r"(?<![\w/.-])((?:[a-z_]+/)+[\w.]+\.(?:md|cc|cu|cuh|h|def|py|sh|test|sql))\b", plain)
    for span in code:
        for name in re.findall(r"[\w./*-]+", span):
            name = name.rstrip(".")
            if name in OTHERS or name.startswith(("build/", "/", "-", "$")):
                continue
            is_file = re.search(r"\.(md|cc|cu|cuh|h|def|py|sh|mk|test)$", name) and not name.startswith(".")
            is_folder = re.fullmatch(r"(?:[a-z_]+/)+", name)
            if (is_file or is_folder) and not is_there(name, folder, tree, folders):
                wrong.append(f"{name}: there is no such {'file' if is_file else 'folder'}")
        # Names in CamelCase of at least two parts are ours: types, functions, constants.
        for name in re.findall(r"\bk?[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+\b", span):
            if name not in words and name not in OTHER_NAMES:
                wrong.append(f"{name}: no source has this name")
    for target in re.findall(r"\bmake ([a-z][a-z-]+)\b(?!/)", text):
        if target in words.targets or f"`make {target}" not in text and f"    make {target}" not in text:
            continue
        wrong.append(f"make {target}: there is no such target")
    return wrong


class Words(set):
    """Every word of the sources; `targets` are those of the make files."""

    def __init__(self, tree):
        super().__init__()
        for path in tree:
            if path.endswith(SOURCES) or path == "Makefile":
                self.update(re.findall(r"\w+", read(path)))
        self.targets = set(re.findall(r"^([a-z-]+):", read("Makefile") + read("bench/bench.mk"), flags=re.M))


def check_sources(tree):
    wrong = []
    documents = {f for f in tree if f.endswith(".md")}
    for path in sorted(tree):
        if not path.endswith(SOURCES) and path not in ("Makefile", "tests/run", "tests/setup"):
            continue
        for name in re.findall(r"(?<![\w./])((?:[a-z_]+/)*[A-Z_]+\.md)\b", read(path)):
            # A bare name is a document of this folder or of one above it.
            folder = os.path.dirname(path)
            candidates = [name]
            while folder:
                candidates.append(f"{folder}/{name}")
                folder = os.path.dirname(folder)
            if not any(c in documents for c in candidates):
                wrong.append(f"{path}: names {name}, which is not there")
    return wrong


def main():
    tree = files()
    folders = {os.path.dirname(f) for f in tree}
    folders |= {os.path.dirname(f) for f in folders} - {""}
    words = Words(tree)
    failures = {path: check_document(path, tree, folders, words) for path in sorted(tree) if path.endswith(".md")}
    failures["comments of the sources"] = check_sources(tree)
    for name, wrong in failures.items():
        for what in dict.fromkeys(wrong):
            print(f"FAILED: {name}: {what}")
    failed = sum(1 for wrong in failures.values() if wrong)
    print(f"{len(failures) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
