"""Puts libtessera.so, made by `make`, and what it needs that a machine may not have, into the package."""

import os
import re
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70
    from wheel.bdist_wheel import bdist_wheel

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
# What setuptools writes beside: not into the tree.
WORK = os.path.join(ROOT, "build", "python")
os.makedirs(WORK, exist_ok=True)
# Libraries that every Linux has, as PEP 599 lists them.
SYSTEM = re.compile(r"^(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so|linux-vdso|/lib64/ld-linux)")


def version():
    with open(os.path.join(ROOT, "base", "version.h"), encoding="utf-8") as file:
        return re.search(r'kVersion = "([^"]+)"', file.read()).group(1)


def library():
    """Where libtessera.so is: named by TESSERA_LIBRARY, or made here."""
    named = os.environ.get("TESSERA_LIBRARY")
    if named:
        return named
    subprocess.run(["make", "-C", ROOT, "build/libtessera.so"], check=True)
    return os.path.join(ROOT, "build", "libtessera.so")


def needed(path):
    """The libraries that it needs and that not every Linux has."""
    listed = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout
    for line in listed.splitlines():
        name, _, where = line.strip().partition(" => ")
        if where and not SYSTEM.match(name):
            yield name, where.split(" (")[0]


class BuildPackage(build_py):
    def run(self):
        super().run()
        target = os.path.join(self.build_lib, "tessera")
        made = library()
        shutil.copy(made, os.path.join(target, "libtessera.so"))
        for name, where in needed(made):
            shutil.copy(where, os.path.join(target, name))


class BuildWheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        # By ctypes: for any version of Python.
        return ("py3", "none", super().get_tag()[2])


if __name__ == "__main__":
    setup(version=version(), cmdclass={"build_py": BuildPackage, "bdist_wheel": BuildWheel},
          options={"build": {"build_base": WORK}, "egg_info": {"egg_base": os.path.relpath(WORK)}},
          script_args=sys.argv[1:])
