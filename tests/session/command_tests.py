"""What tests of the command share: calls of it, checks of what it said, and the loop over the tests with its totals. The first
argument of a test is the build directory, the others are names of tests, with or without test_.
"""

import os
import subprocess
import sys
import tempfile
import traceback

TESSERA = os.path.join(os.path.abspath(sys.argv[1]), "tessera")


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def equal(actual, expected):
    check(actual == expected, "got", repr(actual), "instead of", repr(expected))


def holds(text, *parts):
    for part in parts:
        check(part in text, repr(part), "is not in", repr(text))


def run(*arguments, status=0, **options):
    done = subprocess.run([TESSERA, *arguments], capture_output=True, text=True, timeout=120, check=False, **options)
    check(done.returncode == status, arguments, "ends with", done.returncode, done.stdout, done.stderr)
    return done


def ask(sql, database="d", **options):
    return run(database, "-noheader", "-c", sql, **options).stdout


def main(module):
    """Runs the functions test_... of the module, given as its globals(), each in an empty directory."""
    tests = {name[5:]: test for name, test in module.items() if name.startswith("test_")}
    passed = failed = 0
    before = os.getcwd()
    for name in [name.removeprefix("test_") for name in sys.argv[2:]] or tests:
        with tempfile.TemporaryDirectory(prefix="tessera-test-", ignore_cleanup_errors=True) as directory:
            os.chdir(directory)
            try:
                tests[name]()
                passed += 1
            except Exception:  # whatever it is, the other tests run
                failed += 1
                print(f"FAILED: {name}", flush=True)
                traceback.print_exc(file=sys.stdout)
            finally:
                os.chdir(before)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
