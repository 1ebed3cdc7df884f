"""A server as a process: what it says when it listens, and its end. For the tests of this folder and bench/server.py.

Start at: wait_until_it_says, end_process.
"""

import re
import signal
import subprocess
import time


def wait_until_it_says(pattern, log, process, seconds):
    """The match of `pattern` in the file `log`, once it is there; None if the process ends before, or that many seconds go by."""
    deadline = time.time() + seconds
    while time.time() < deadline:
        ended = process.poll() is not None  # (What it said before that counts.)
        with open(log, encoding="utf-8") as file:
            said = re.search(pattern, file.read())
        if said is not None or ended:
            return said
        time.sleep(0.02)
    return None


def end_process(process):
    """Ends it as Ctrl-C does. False: it had to be killed, as it did not end."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True
