"""A PostgreSQL of its own, if Debian's package is installed: for tests/differential/history_engines.py and bench/server.py.

Start at: PostgresServer.
"""

import glob
import os
import shutil
import subprocess
import tempfile


class PostgresServer:
    """Listens on a Unix socket in `folder`, for the user postgres without a password. `settings` are like "fsync=off". Raises OSError,
    LookupError and CalledProcessError."""

    def __init__(self, *settings):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda path: int(path.split("/")[4]))
        found = programs[-1] if programs else shutil.which("initdb")
        if found is None:
            raise LookupError("no initdb is here")
        self.programs = os.path.dirname(os.path.realpath(found))
        self.folder = tempfile.mkdtemp(prefix="tessera_postgres_")
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
        os.chmod(self.folder, 0o755)
        self.data = os.path.join(self.folder, "data")
        self.call("initdb", "-D", self.data, "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C")
        options = " ".join(f"-c {setting}" for setting in ("listen_addresses=''", *settings))
        self.call("pg_ctl", "-D", self.data, "-w", "-l", os.path.join(self.folder, "log"), "-o", f"-k {self.folder} {options}", "start")

    def call(self, program, *arguments):
        prefix = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        subprocess.run([*prefix, os.path.join(self.programs, program), *arguments], check=True, cwd="/",
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self):
        self.call("pg_ctl", "-D", self.data, "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)
