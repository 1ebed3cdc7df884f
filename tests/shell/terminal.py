"""A program on a pseudo terminal, for tests: keys are typed, and what comes on the screen is waited for."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

PROMPT = r"tessera> $"


class Terminal:
    """`command` on a pseudo terminal. `screen` is all that came since the last expect(). What does not come in time is an
    AssertionError."""

    def __init__(self, command, environment, columns=100):
        self.screen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, environment)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))

    def type(self, keys):
        os.write(self.fd, keys if isinstance(keys, bytes) else keys.encode())

    def expect(self, pattern, timeout=30):
        """Waits until the pattern is on the screen; returns what was there up to its end."""
        end = time.monotonic() + timeout
        while True:
            match = re.search(pattern, self.screen)
            if match:
                seen, self.screen = self.screen[: match.end()], self.screen[match.end() :]
                return seen
            if not self._read(end - time.monotonic()):
                raise AssertionError(f"{pattern!r} did not come; the screen: {self.screen!r}")

    def expect_prompt(self):
        """The prompt, and the editor after it: libedit prints the prompt first and takes the terminal over then. A key
        that means something to the editor, as Ctrl-D does, is lost in between. Returns what came before."""
        seen = self.expect(PROMPT)
        end = time.monotonic() + 30
        while termios.tcgetattr(self.fd)[3] & termios.ICANON:
            if time.monotonic() > end:
                raise AssertionError("the editor does not take the terminal over")
            time.sleep(0.001)
        return seen

    def _read(self, timeout):
        if timeout <= 0 or not select.select([self.fd], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.screen += data.decode(errors="replace")
        return bool(data)

    def leave(self, timeout=30):
        """Waits for the end; returns the exit status."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            self._read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"it does not end; the screen: {self.screen!r}")

    def hang_up(self):
        """As if the window was closed."""
        os.close(self.fd)
        self.fd = -1

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.fd >= 0:
            os.close(self.fd)
