#!/usr/bin/env python3
"""Ranks on two nodes, which are this machine twice: a hostfile of two addresses, and a remote shell of our own for the
second. Like ssh, it starts Open MPI's daemon in another directory and with the environment of a fresh login. What runs
there loads a library by which the machine has another name, and where a test says so another disk.

    tests/mpi/two_nodes_test.py BUILD_DIR [TEST...]

Closes with the line "N passed, N failed".
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from rank_jobs import (BUILD, ENVIRONMENT, LONG, QUERIES, TESSERA, WORK, Job, another_disk, check, check_one_error, database,
                       has_mpi, processes, run, run_tests)

SUM = "SET replicate_below = 0; SELECT sum(a), max(b) FROM t"
HOSTS = os.path.join(WORK, "hosts")
LOGINS = os.path.join(WORK, "logins")  # the names of the machines
# What the login of a user sets. A sanitizer's options are the only ones of ours.
LOGIN = {"HOME": os.path.join(WORK, "home"), "SHELL": "/bin/sh", "LANG": "C",
         "PATH": os.path.dirname(shutil.which("mpirun") or "/usr/bin/mpirun") + ":/usr/local/bin:/usr/bin:/bin",
         **{name: value for name, value in ENVIRONMENT.items() if name in ("LD_LIBRARY_PATH", "LSAN_OPTIONS", "TSAN_OPTIONS",
                                                                           "ASAN_OPTIONS")}}


def script(text):
    name = os.path.join(WORK, "script" + str(len(os.listdir(WORK))))
    with open(name, "w") as out:
        out.write("#!/bin/sh\n" + text + "\n")
    os.chmod(name, 0o755)
    return name


def remote_shell(folder="/nowhere", place="/nowhere"):
    """A program that is called like ssh, with the name of a machine and a command. On that machine `folder` is `place`."""
    login = " ".join(f"'{key}={value}'" for key, value in LOGIN.items())
    login += f" 'LD_PRELOAD={another_disk(folder, place, 'second')}'"
    return script(f"echo \"$1\" >>{LOGINS}\nshift\ncd {LOGIN['HOME']} || exit 255\n"
                  f"exec env -i {login} /bin/sh -c \"$*\"")


def on_two_nodes(per_node, shell):
    """The options of mpirun, less the number of ranks."""
    return ["--hostfile", HOSTS, "--map-by", f"ppr:{per_node}:node", "--bind-to", "none", "--mca", "plm_rsh_agent", shell,
            "--mca", "oob_tcp_if_include", "lo", "--mca", "btl_tcp_if_include", "lo"]  # whatever networks there are


def mpirun(per_node, *arguments, shell):
    return ["mpirun", "-np", str(2 * per_node), *on_two_nodes(per_node, shell), TESSERA, *arguments]


# ---- Right answers ----------------------------------------------------------------------------------------------------

def test_the_rows_of_one_process():
    directory = database("same")
    alone = run([TESSERA, "-csv", directory, "-c", QUERIES])
    check(alone.returncode == 0, alone.stderr)
    shell = remote_shell()
    for per_node in (1, 2):
        first, second = {1: ("0", "1"), 2: ("0-1", "2-3")}[per_node]
        done = run(mpirun(per_node, "--stats", "json", directory, "-c", SUM + "; EXPLAIN (PROGRAM) SELECT sum(a) FROM t", shell=shell))
        hosts = {(s["rank"], s["host"]) for s in map(json.loads, done.stderr.splitlines())}
        here = os.uname().nodename
        check(hosts == {(r, here if r < per_node else "second") for r in range(2 * per_node)}, hosts)
        nodes = f"\n{2 * per_node} ranks on 2 nodes: {first} on {here}, {second} on second\n"
        check(nodes in done.stdout, nodes, "is not in", done.stdout)
        os.remove(LOGINS)
        for options in ((), ("--scatter",)):
            done = run(mpirun(per_node, directory, *options, "-c", QUERIES, shell=shell))
            check(done.returncode == 0, per_node, options, done.stderr)
            check(done.stdout == alone.stdout, per_node, options, done.stdout, "instead of", alone.stdout)
            check(open(LOGINS).read() == "127.0.0.2\n", "not one login:", open(LOGINS).read())
            os.remove(LOGINS)


def test_the_option_hostfile():
    """Ranks fill the slots of one node after the other. What mpirun is not told it takes from the environment."""
    settings = {"plm_rsh_agent": remote_shell(), "oob_tcp_if_include": "lo", "btl_tcp_if_include": "lo"}
    command = ["env", *(f"OMPI_MCA_{name}={value}" for name, value in settings.items()), TESSERA, "--ranks", "4", "--hostfile", HOSTS,
               database("hostfile"), "-c"]
    done = run([*command, "EXPLAIN (PROGRAM) SELECT sum(a) FROM t"])
    check(f"4 ranks on 2 nodes: 0-2 on {os.uname().nodename}, 3 on second\n" in done.stdout, done.stdout, done.stderr)
    done = run([*command, SUM])
    check(done.stdout == "sum(a),max(b)\n4950,v4\n", done.stdout, done.stderr)


def test_gpus_by_local_rank():
    emulated = os.path.join(BUILD, "emulated", "tessera")
    if not os.path.exists(emulated):
        return print("not tested without an emulated GPU:", end=" ")
    directory = database("gpus")
    command = ["mpirun", "-np", "6", *on_two_nodes(3, remote_shell()), "--tag-output", "-x", "TESSERA_EMULATED_GPUS=2", emulated,
               "--device", "gpu", directory, "-c", "SET replicate_below = 0; SELECT sum(a) FROM t"]
    done = run(command)
    check("4950" in done.stdout, done.stdout, done.stderr)
    taken = {int(rank): int(gpu) for rank, gpu in re.findall(r"\[1,(\d)\]<stderr>:emulated GPU (\d)", done.stderr)}
    check(taken == {0: 0, 1: 1, 2: 0, 3: 0, 4: 1, 5: 0}, taken, done.stderr)


# ---- Directories ------------------------------------------------------------------------------------------------------

def test_each_node_has_its_own_disk():
    folder = os.path.join(WORK, "local")
    os.makedirs(folder)
    directory = database("local/db")
    # The second node has no such directory: its ranks say so, or get their tablets from the first.
    nothing = remote_shell(folder, "/nowhere")
    done = run(mpirun(2, directory, "-c", SUM, shell=nothing))
    check_one_error(done, "rank 2: ", "cannot be read here", "--scatter")
    check(done.returncode == 3, done.returncode)
    # It has a copy.
    copies = os.path.join(WORK, "copies")
    shutil.copytree(folder, copies)
    # It has a database of that name with other tables.
    os.makedirs(os.path.join(WORK, "others"))
    database("others/db", rows=50)
    copied, other = remote_shell(folder, copies), remote_shell(folder, os.path.join(WORK, "others"))
    check_one_error(run(mpirun(1, directory, "-c", SUM, shell=other)), "rank 1: ", "tablet")
    for shell, options in ((copied, ()), (nothing, ("--scatter",)), (other, ("--scatter",))):
        done = run(mpirun(2, directory, *options, "-c", SUM, shell=shell))
        check(done.stdout == "sum(a),max(b)\n4950,v4\n", options, done.stdout, done.stderr)


def test_a_relative_directory():
    """It is where rank 0 runs; what the others have there, or whether they have it, does not matter."""
    folder = os.path.join(WORK, "here")
    os.makedirs(folder)
    directory = database("here/db")
    os.makedirs(os.path.join(LOGIN["HOME"], "db"))
    for shell, options in ((remote_shell(), ()), (remote_shell(folder, "/nowhere"), ("--scatter",))):
        done = run(mpirun(1, "db", *options, "-c", SUM, shell=shell), directory=folder)
        check(done.stdout == "sum(a),max(b)\n4950,v4\n", options, done.stdout, done.stderr)


def test_a_database_without_a_directory():
    done = run(mpirun(2, "-c", "CREATE TABLE n AS SELECT i FROM generate_series(1, 1000) g(i);"
                      "SET replicate_below = 0; SELECT sum(i) FROM n", shell=remote_shell(WORK, "/nowhere")))
    check(done.stdout.endswith("500500\n"), done.stdout, done.stderr)


# ---- Failures -----------------------------------------------------------------------------------------------------------

def timed(command):
    start = time.time()
    return run(command), time.time() - start


def test_no_mpi_on_the_second_node():
    other = os.path.join(WORK, "other_build")
    os.makedirs(other)
    shutil.copy(TESSERA, other)
    each = (["-np", "1", "--host", host, os.path.join(build, "tessera"), "-c", "SELECT 1"]
            for host, build in (("127.0.0.1", BUILD), ("127.0.0.2", other)))
    done, took = timed(["mpirun", *on_two_nodes(1, remote_shell()), *next(each), ":", *next(each)])
    check_one_error(done, "rank 1 on second: ", "without MPI", os.path.join(other, "tessera_mpi.so"))
    check((done.returncode, done.stdout) == (2, ""), done.returncode, done.stdout)
    check(took < 15, "took", took)


def test_another_build_on_the_second_node():
    other = os.path.join(WORK, "newer_build")
    os.makedirs(other)
    for name in ("tessera", "tessera_mpi.so"):
        shutil.copy(os.path.join(BUILD, name), other)
    with open(os.path.join(other, "tessera"), "ab") as file:
        file.write(b"x")
    each = (["-np", "1", "--host", host, os.path.join(build, "tessera"), "-c", "SELECT 1"]
            for host, build in (("127.0.0.1", BUILD), ("127.0.0.2", other)))
    done, took = timed(["mpirun", *on_two_nodes(1, remote_shell()), *next(each), ":", *next(each)])
    check_one_error(done, "rank 1 runs another build of Tessera than rank 0", "on all nodes")
    check((done.returncode, done.stdout) == (2, ""), done.returncode, done.stdout)
    check(took < 15, "took", took)


def test_a_node_that_cannot_be_reached():
    shell = script("echo ssh: connect to host $1 port 22: No route to host >&2; exit 255")
    done, took = timed(mpirun(1, "-c", "SELECT 1", shell=shell))
    check(done.returncode != 0 and done.stdout == "", done.returncode, done.stdout)
    check("No route to host" in done.stderr and "unable to reliably start one or more daemons" in done.stderr, done.stderr)
    check(took < 15, "took", took)


class TwoNodeJob(Job):
    """A rank on each of two nodes, with a timeout of two seconds, at work."""

    def __init__(self, directory, statements):
        shell = remote_shell()
        super().__init__(2, directory, "SET rank_timeout = 2000; SELECT max(a) FROM t;\n" + statements,
                         launch=lambda _, *arguments: mpirun(1, *arguments, shell=shell))
        status = open(f"/proc/{self.ranks[1]}/stat").read()
        self.daemon = int(status.rsplit(")", 1)[1].split()[1])
        check(open(f"/proc/{self.daemon}/comm").read() == "orted\n", "the parent of rank 1 is not its node's daemon")

    def signal_second_node(self, number):
        for process in (self.daemon, self.ranks[1]):  # else the daemon may say that the rank has ended
            try:
                os.kill(process, number)
            except ProcessLookupError:
                pass


def test_a_node_that_dies():
    job = TwoNodeJob(database("dies", rows=3000), LONG + ";\n")
    job.signal_second_node(signal.SIGKILL)
    took, message = job.check_ends(10)
    check("lost communication with a remote daemon" in message and "127.0.0.2" in message, message)


def test_a_node_that_is_silent():
    """Open MPI waits for its daemon there, even when the other node's ranks have ended, until mpirun is told to end."""
    job = TwoNodeJob(database("silent", rows=3000), LONG + ";\n")
    job.signal_second_node(signal.SIGSTOP)
    deadline = time.time() + 15
    while 0 in processes(job.directory) and time.time() < deadline:
        time.sleep(0.1)
    left = processes(job.directory)
    job.process.send_signal(signal.SIGINT)
    try:
        took, message = job.check_ends(10, left=[1])
    finally:
        job.signal_second_node(signal.SIGKILL)
    check(list(left) == [1], "ranks are there:", left)
    check("rank 0: rank 1 has given no sign of life for 2 s" in message, message)


def main():
    if not has_mpi():
        print("[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] two_nodes_test: no MPI in this build")
        return 0
    os.makedirs(LOGIN["HOME"])
    with open(HOSTS, "w") as out:
        out.write("127.0.0.1 slots=3\n127.0.0.2 slots=3\n")
    return run_tests([f for name, f in globals().items() if name.startswith("test_")])


sys.exit(main())
