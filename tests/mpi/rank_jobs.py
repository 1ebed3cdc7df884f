"""What the tests of ranks share: a directory that is gone at the end, databases, jobs under a launcher, checks of what
they said, and the loop over the tests with its totals. The first argument of a test is the build directory, the others
are names of tests.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(sys.argv[1])
TESSERA = os.path.join(BUILD, "tessera")
WORK = tempfile.mkdtemp(prefix="tessera_ranks_test.")
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", TMPDIR=WORK,
                   OMPI_MCA_orte_tmpdir_base="/tmp",
                   # A library is loaded before a sanitizer's here: see another_disk().
                   ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")
LIMIT = 120  # seconds; what takes so long hangs
# About a minute on one rank, and nothing that a LIMIT or an index could shorten.
LONG = "SELECT count(*) FROM t a, t b, t c, t d WHERE a.a + b.a < c.a * d.a"
# With the same rows in any number of processes, in the same order.
QUERIES = """SET replicate_below = 0;
SELECT count(*), sum(a), min(b), max(c) FROM t;
SELECT b, count(*), sum(c) FROM t GROUP BY b ORDER BY b;
SELECT a, b FROM t WHERE a % 10 = 3;
SELECT a FROM t LIMIT 5 OFFSET 3;
SELECT a FROM t ORDER BY c DESC LIMIT 4;
SELECT a FROM t ORDER BY b, c DESC OFFSET 90;
SELECT x.a, y.b FROM t x, t y WHERE x.a = y.a AND x.a < 4;
SELECT count(*) FROM t x, t y WHERE x.b = y.b AND x.a < y.a;
SELECT b, count(DISTINCT a) FROM t GROUP BY b HAVING count(*) > 1 ORDER BY b;
SELECT DISTINCT b FROM t ORDER BY b;
SELECT count(*) FROM t WHERE a < 0;
SELECT a FROM t WHERE a < 0 LIMIT 0;
"""


def mpirun(ranks, *arguments, wrap=()):
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), *wrap, TESSERA, *arguments]


def run(command, text=None, directory=None):
    done = subprocess.run(command, env=ENVIRONMENT, cwd=directory, input=text, capture_output=True, text=True, timeout=LIMIT,
                          stdin=subprocess.DEVNULL if text is None else None)
    done.own = [line for line in done.stderr.splitlines() if "ERROR" in line or line.startswith("tessera:")]
    return done


def database(name, rows=100, tablet_rows=7):
    """A table t(a INTEGER, b TEXT, c DOUBLE PRECISION), and as many rows of it."""
    data = os.path.join(WORK, name + ".csv")
    with open(data, "w") as out:
        out.writelines(f"{i},v{i % 5},{i * 0.5}\n" for i in range(rows))
    return made(name, f"CREATE TABLE t (a INTEGER, b TEXT, c DOUBLE PRECISION) WITH (tablet_rows = {tablet_rows});"
                f"COPY t FROM '{data}'")


def made(name, statements):
    """A database that the statements make."""
    directory = os.path.join(WORK, name)
    done = run([TESSERA, directory, "-c", statements])
    check(done.returncode == 0, "the database cannot be made", done.stderr)
    return directory


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


def check_one_error(done, *parts):
    """One message with all of the parts, and a status that is not 0."""
    check(done.returncode != 0, "status 0", done.stdout, done.stderr)
    check(len(done.own) == 1, "not one message:", done.stderr)
    for part in parts:
        check(part in done.stderr, repr(part), "is not in", done.stderr)


def processes(directory):
    """Numbers of the tessera processes that have the directory on their command line, by rank."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            command = open(f"/proc/{name}/cmdline").read().split("\0")
            environment = open(f"/proc/{name}/environ").read().split("\0")
        except OSError:
            continue
        if command[0] == TESSERA and directory in command:
            rank = [v for v in environment if v.startswith(("OMPI_COMM_WORLD_RANK=", "PMIX_RANK="))]
            if rank:
                found[int(rank[0].split("=")[1])] = int(name)
    return found


class Job:
    """A job whose statements come through a pipe that stays open."""

    def __init__(self, ranks, directory, statements, *arguments, launch=mpirun):
        self.directory = directory
        self.messages = tempfile.TemporaryFile("w+", dir=WORK)  # a pipe that is not read would hold the job up
        self.process = subprocess.Popen(launch(ranks, directory, *arguments), env=ENVIRONMENT, stdin=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, stderr=self.messages, text=True)
        self.process.stdin.write(statements)
        self.process.stdin.flush()
        deadline = time.time() + 30
        while len(processes(directory)) < ranks and time.time() < deadline:
            time.sleep(0.05)
        time.sleep(1.5)  # until they have met and are at work, or wait for it
        self.ranks = processes(directory)
        check(len(self.ranks) == ranks, "the ranks do not start")

    def check_ends(self, seconds, left=()):
        """It ends in time, and no ranks are left but those named."""
        start = time.time()
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            for process in self.ranks.values():
                os.kill(process, signal.SIGKILL)
            self.process.kill()
            raise AssertionError(f"the job is still there after {seconds} s")
        took = time.time() - start
        deadline = time.time() + 1
        while list(processes(self.directory)) != list(left) and time.time() < deadline:
            time.sleep(0.05)
        check(list(processes(self.directory)) == list(left), "processes are left:", processes(self.directory))
        check(self.process.returncode != 0, "status 0")
        self.messages.seek(0)
        return took, self.messages.read()


def another_disk(folder, place, host=""):
    """A library for processes of a node on which `folder` is another than here: what is in it is looked for in `place`,
    which need not be there. `host`: the name of the node, or that of this machine."""
    name = os.path.join(WORK, "disk" + str(len(os.listdir(WORK))))
    with open(name + ".c", "w") as out:
        out.write(f"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
static const char folder[] = "{os.path.realpath(folder)}/", place[] = "{place}/", host[] = "{host}";
""" + r"""
static const char* on_disk(const char* path, char* room) {
  if (strncmp(path, folder, sizeof folder - 1) != 0) return path;
  snprintf(room, 4096, "%s%s", place, path + sizeof folder - 1);
  return room;
}
int access(const char* path, int mode) {
  char room[4096];
  return ((int (*)(const char*, int))dlsym(RTLD_NEXT, "access"))(on_disk(path, room), mode);
}
int open(const char* path, int flags, ...) {
  char room[4096];
  return ((int (*)(const char*, int, int))dlsym(RTLD_NEXT, "open"))(on_disk(path, room), flags, 0600);
}
int chdir(const char* path) {
  char room[4096];
  return ((int (*)(const char*))dlsym(RTLD_NEXT, "chdir"))(on_disk(path, room));
}
int uname(struct utsname* name) {
  const int status = ((int (*)(struct utsname*))dlsym(RTLD_NEXT, "uname"))(name);
  if (status == 0 && host[0] != 0) strcpy(name->nodename, host);
  return status;
}
int gethostname(char* name, size_t size) {
  struct utsname all;
  if (uname(&all) != 0) return -1;
  snprintf(name, size, "%s", all.nodename);
  return 0;
}
""")
    subprocess.run(["gcc", "-shared", "-fPIC", name + ".c", "-o", name + ".so", "-ldl"], check=True)
    return name + ".so"


def has_mpi():
    return shutil.which("mpirun") is not None and os.path.exists(os.path.join(BUILD, "tessera_mpi.so"))


def run_tests(tests):
    """Runs those that are named, or all, says how each went and how many did; returns the exit status."""
    only = sys.argv[2:]
    passed = failed = 0
    for test in tests:
        if only and test.__name__ not in only:
            continue
        start = time.time()
        try:
            test()
            passed += 1
            print(f"ok      {test.__name__} {time.time() - start:.1f} s", flush=True)
        except (AssertionError, subprocess.SubprocessError, OSError, ValueError, LookupError) as error:
            failed += 1
            print(f"FAILED {test.__name__}: {type(error).__name__}: {error}", flush=True)
    shutil.rmtree(WORK, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
