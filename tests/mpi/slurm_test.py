#!/usr/bin/env python3
"""Ranks under Slurm: srun, and mpirun inside of sbatch, give the rows of one process. Slurm's daemons are started here, with
a configuration, ports and a directory of their own, and end with the test; a Slurm that this machine belongs to is not
asked for anything.

    tests/mpi/slurm_test.py BUILD_DIR [TEST...]

Closes with the line "N passed, N failed". Where Debian's slurm-wlm and munge are not installed, or cannot be started, a
line says so instead.
"""

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time

from rank_jobs import ENVIRONMENT, LONG, QUERIES, TESSERA, WORK, check, check_one_error, database, has_mpi, processes, run, run_tests

LIMIT = 120  # seconds for all
FOLDER = os.path.join(WORK, "slurm")
CONFIGURATION = os.path.join(FOLDER, "slurm.conf")
HOST = socket.gethostname().split(".")[0]
daemons = []


class CannotStart(Exception):
    """Why there is no Slurm."""


def use_our_slurm():
    """For all that is started from now on: our configuration, and nothing of a job that this test runs in."""
    for name in [n for n in ENVIRONMENT if n.startswith(("SLURM_", "SBATCH_", "PMIX_", "PMI_", "OMPI_COMM_"))]:
        del ENVIRONMENT[name]
    ENVIRONMENT["SLURM_CONF"] = CONFIGURATION


def free_ports(number):
    sockets = [socket.socket() for _ in range(number)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def write_configuration():
    os.makedirs(os.path.join(FOLDER, "state"))
    os.makedirs(os.path.join(FOLDER, "spool"))
    with open(os.path.join(FOLDER, "key"), "wb") as out:
        os.chmod(out.name, 0o600)
        out.write(os.urandom(1024))
    user = pwd.getpwuid(os.getuid()).pw_name
    controller_port, node_port = free_ports(2)
    open(os.path.join(FOLDER, "plugstack.conf"), "w").close()
    with open(CONFIGURATION, "w") as out:
        out.write(f"""ClusterName=tessera_test
SlurmctldHost={HOST}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={FOLDER}/munge
KillWait=3
MailProg=/bin/true
PlugStackConfig={FOLDER}/plugstack.conf
ProctrackType=proctrack/linuxproc
PropagateResourceLimits=NONE
ReturnToService=2
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmctldLogFile={FOLDER}/slurmctld.log
SlurmctldPidFile={FOLDER}/slurmctld.pid
SlurmdLogFile={FOLDER}/slurmd.log
SlurmdParameters=config_overrides
SlurmdPidFile={FOLDER}/slurmd.pid
SlurmdSpoolDir={FOLDER}/spool
StateSaveLocation={FOLDER}/state
TaskPlugin=task/none
NodeName={HOST} NodeAddr=127.0.0.1 CPUs=2 RealMemory=500 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")


def ends_with_us():
    """A daemon does not outlive the test, however that ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def start(*command):
    log = open(os.path.join(FOLDER, command[0] + ".out"), "w+")
    daemon = subprocess.Popen(command, env=ENVIRONMENT, cwd=FOLDER, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                              start_new_session=True, preexec_fn=ends_with_us)
    daemon.log = log
    daemons.append(daemon)


def wait_for(condition, what):
    deadline = time.time() + 10
    while not condition():
        for daemon in daemons:
            if daemon.poll() is not None:
                daemon.log.seek(0)
                raise CannotStart(f"{daemon.args[0]} ends: " + " ".join(daemon.log.read().split("\n"))[-300:])
        if time.time() > deadline:
            raise CannotStart(what)
        time.sleep(0.05)


def start_slurm():
    ENVIRONMENT["PATH"] += ":/usr/local/sbin:/usr/sbin"
    for program in ("munged", "slurmctld", "slurmd", "srun", "sbatch"):
        if shutil.which(program, path=ENVIRONMENT["PATH"]) is None:
            raise CannotStart(f"{program} is not installed (slurm-wlm, munge)")
    os.makedirs(FOLDER)
    write_configuration()
    use_our_slurm()
    munge = os.path.join(FOLDER, "munge")
    start("munged", "--foreground", "--force", f"--socket={munge}", *(f"--{n}-file={FOLDER}/{n}" for n in ("key", "pid", "log", "seed")))
    wait_for(lambda: os.path.exists(munge), "munged makes no socket")
    start("slurmctld", "-D", "-c")
    start("slurmd", "-D", "-c")
    idle = ["sinfo", "--noheader", "--states=idle", "--format=%n"]
    wait_for(lambda: run(idle).stdout.split() == [HOST], "the node does not come up")
    if "pmix" not in run(["srun", "--mpi=list"]).stdout + run(["srun", "--mpi=list"]).stderr:
        raise CannotStart("srun has no PMIx")


def end_all():
    """The daemons first; what their jobs have left has our configuration in its environment."""
    for daemon in reversed(daemons):
        daemon.terminate()
    for daemon in daemons:
        try:
            daemon.wait(timeout=3)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if f"SLURM_CONF={CONFIGURATION}\0" in open(f"/proc/{name}/environ").read():
                os.kill(int(name), signal.SIGKILL)
        except OSError:
            pass


# ---- ------------------------------------------------------------------------------------------------------------------

def srun(*arguments):
    return ["srun", "--mpi=pmix", "-n", "2", *arguments]


def check_two_ranks(done, alone):
    check(done.returncode == 0, done.returncode, done.stderr)
    check(done.stdout == alone.stdout, done.stdout, "instead of", alone.stdout)


def test_srun():
    directory = database("srun")
    alone = run([TESSERA, "-csv", directory, "-c", QUERIES])
    check(alone.returncode == 0, alone.stderr)
    check_two_ranks(run(srun(TESSERA, directory, "-c", QUERIES)), alone)
    check_two_ranks(run(srun(TESSERA, directory, "--scatter"), QUERIES), alone)
    done = run(srun(TESSERA, "--stats", "json", directory, "-c", "SET replicate_below = 0; SELECT sum(a) FROM t"))
    check([f'"rank":{r},' in done.stderr for r in range(3)] == [True, True, False], done.stderr)


def test_mpirun_inside_of_sbatch():
    directory = database("sbatch")
    alone = run([TESSERA, "-csv", directory, "-c", QUERIES])
    script, out, queries, status = (os.path.join(WORK, "job" + suffix) for suffix in (".sh", ".out", ".sql", ".status"))
    open(queries, "w").write(QUERIES)
    # mpirun learns from Slurm how many ranks there are.
    open(script, "w").write(f"#!/bin/sh\nmpirun --bind-to none {TESSERA} --stats-file {out}.stats {directory} -f {queries}\n"
                            f"echo $? >{status}\n")
    done = run(["sbatch", "-n", "2", "-o", out, "-e", out + ".err", script])
    check(done.returncode == 0, done.stderr)
    while not os.path.exists(status) or not open(status).read():  # (sbatch --wait takes ten seconds)
        time.sleep(0.1)
    check(open(status).read() == "0\n", open(status).read(), open(out + ".err").read())
    check(open(out).read() == alone.stdout, open(out).read(), "instead of", alone.stdout)
    lines = [line.split(",") for line in open(out + ".stats").read().splitlines()]
    ranks = {line[lines[0].index("rank")] for line in lines[1:]}
    check(ranks == {"0", "1"}, ranks)


def test_from_clone_to_plot():
    """The jobs of bench/scaling/slurm, with a build that is there."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    build, fake = os.path.join(WORK, "build"), os.path.join(WORK, "fake")
    os.mkdir(build)
    os.mkdir(fake)
    for name in ("tessera", "tessera_mpi.so", "join_gen"):
        shutil.copy(os.path.join(os.path.dirname(TESSERA), name), build)
    with open(os.path.join(fake, "make"), "w") as out:
        out.write("#!/bin/sh\n")
    os.chmod(out.name, 0o755)
    settings = {"BUILD": build, "SUITES": "select", "ROWS": "20000", "RUNS": "1", "ROUNDS": "1", "MODES": "strong",
                "PATH": fake + ":" + ENVIRONMENT["PATH"]}
    done = subprocess.run([os.path.join(root, "bench", "scaling", "slurm", "submit.sh"), "1", "2"], env=ENVIRONMENT | settings,
                          text=True, capture_output=True, timeout=LIMIT)
    check(done.returncode == 0, done.stdout, done.stderr)
    plot = os.path.join(build, "bench", "scaling-strong", "select-prediction.svg")
    while not os.path.exists(plot):  # (the alarm ends it)
        check("DependencyNeverSatisfied" not in run(["squeue", "--noheader", "--format=%R"]).stdout, "a job has failed",
              *(open(os.path.join(build, "bench", "slurm", name)).read() for name in os.listdir(os.path.join(build, "bench", "slurm"))))
        time.sleep(0.2)


def test_without_pmix():
    directory = database("alone")
    done = run(["srun", "-n", "2", TESSERA, directory, "-c", "INSERT INTO t VALUES (1, 'x', 2)"])
    check(done.returncode == 2 and len(done.own) == 2, done.returncode, done.stderr)
    check("srun started 2 tasks without PMIx" in done.stderr and "srun --mpi=pmix" in done.stderr, done.stderr)
    done = run(["srun", "-n", "1", TESSERA, directory, "-c", "SELECT count(*) FROM t"])
    check(done.stdout == "count(*)\n100\n", done.stdout, done.stderr)


def test_an_error_on_a_rank():
    directory = database("error")
    # Row 8 is in the second tablet.
    done = run(srun(TESSERA, directory, "-c",
                    "SET replicate_below = 0; SELECT 2147483647 + (CASE WHEN a = 8 THEN 1 ELSE 0 END) FROM t"))
    check_one_error(done, "rank 1: integer out of range")


def test_a_rank_is_killed():
    """Slurm tells the others to end. Rank 0 waits for the dead one, so that Slurm kills it, too, after KillWait seconds."""
    directory = database("killed", rows=3000)
    job = subprocess.Popen(srun("--kill-on-bad-exit=1", TESSERA, directory, "-c", LONG), env=ENVIRONMENT,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.time() + 10
    while len(processes(directory)) < 2 and time.time() < deadline:
        time.sleep(0.1)
    ranks = processes(directory)
    check(sorted(ranks) == [0, 1], ranks)
    time.sleep(1)  # until they have met
    os.kill(ranks[1], signal.SIGKILL)
    message = job.communicate(timeout=15)[1]
    check(job.returncode != 0 and "task 1: Killed" in message, job.returncode, message)
    check(not processes(directory), "processes are left")


def stop(number, frame):
    raise CannotStart(f"it takes longer than {LIMIT} s" if number == signal.SIGALRM else "ended by a signal")


def skip(why):
    print(f"[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] slurm_test: {why}")
    return 0


def main():
    if not has_mpi():
        return skip("no MPI in this build")
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    signal.alarm(LIMIT)
    runs = False
    try:
        start_slurm()
        runs = True
        return run_tests([f for name, f in globals().items() if name.startswith("test_")])
    except CannotStart as why:
        if not runs:
            return skip(why)
        print(f"FAILED slurm_test: {why}\n0 passed, 1 failed")
        return 1
    finally:
        signal.alarm(0)
        end_all()
        shutil.rmtree(WORK, ignore_errors=True)


sys.exit(main())
