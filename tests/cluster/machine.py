"""One machine of a test cluster: a process in namespaces of its own, and what was started in them.

A machine has its own network, host name, processes, shared memory, /tmp and /run; all other files
are the host's. Nothing of it is seen in the host's namespaces but its processes.
"""

import os
import pathlib
import signal
import subprocess
import time

SCRIPT = pathlib.Path(__file__).with_name("machine.sh")
NAMESPACES = ("--net", "--mount", "--uts", "--ipc", "--pid")


class ClusterError(Exception):
    pass


def until(condition, seconds, what):
    """What `condition` returns, once it is true."""
    end = time.monotonic() + seconds
    while True:
        begin = time.monotonic()
        if found := condition():
            return found
        now = time.monotonic()
        if now > end:
            raise ClusterError(f"not within {seconds} s: {what}")
        # What asks Slurm would keep a core busy with asking.
        time.sleep(min(0.5, max(0.02, 2 * (now - begin))))


class Machine:
    def __init__(self, state, name):
        self.name = name
        self.state = pathlib.Path(state)
        self.folder = self.state / name

    def start(self, visible):
        """Begins the machine; `visible`: folders to be seen even if they lie in the host's /tmp."""
        for name in ("run", "tmp", "spool"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "tmp").chmod(0o1777)
        for name in ("process", "ready", "slurmd.pid"):
            (self.folder / name).unlink(missing_ok=True)
        with open(self.folder / "machine.log", "wb") as log:
            subprocess.run(["setsid", "--fork", "unshare", *NAMESPACES, "--fork", "--kill-child",
                            "bash", SCRIPT, self.state, self.name, *visible],
                           stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True)

    def wait_until_ready(self):
        def ready():
            if complaint := (self.folder / "machine.log").read_text():
                raise ClusterError(f"no machine {self.name}: {complaint}")
            return (self.folder / "ready").exists()
        until(ready, 20, f"machine {self.name} is ready")

    def process(self):
        """The number of its first process; None when the machine is off."""
        try:
            number, start = (self.folder / "process").read_text().split()
            stat = pathlib.Path(f"/proc/{number}/stat").read_text()
        except (OSError, ValueError):
            return None
        fields = stat.rpartition(")")[2].split()  # from the third on; the 22nd is the start time
        return int(number) if fields[0] not in "ZX" and fields[19] == start else None

    def kill(self):
        """Power off: all its processes are gone on return."""
        number = self.process()
        if number is None:
            return
        os.kill(number, signal.SIGKILL)
        until(lambda: self.process() is None, 20, f"machine {self.name} is off")

    def command(self, *arguments, cwd="/"):
        number = self.process()
        if number is None:
            raise ClusterError(f"machine {self.name} is off")
        return ["nsenter", "-t", str(number), "-n", "-m", "-u", "-i", "-p",
                "env", f"--chdir={cwd}", *map(str, arguments)]

    def popen(self, *arguments, cwd="/", environment=None, **options):
        """Its own process group: os.killpg reaches the command, a signal to the process does not."""
        return subprocess.Popen(self.command(*arguments, cwd=cwd), start_new_session=True,
                                env=dict(os.environ, **(environment or {})), **options)

    def run(self, *arguments, check=True, timeout=60, text=None, **options):
        process = self.popen(*arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, **options)
        try:
            output, errors = process.communicate(text, timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            raise ClusterError(f"{arguments} on {self.name} took more than {timeout} s:\n"
                               f"{output}{errors}") from None
        if check and process.returncode != 0:
            raise ClusterError(f"{arguments} on {self.name} ended with {process.returncode}:\n"
                               f"{output}{errors}")
        return subprocess.CompletedProcess(arguments, process.returncode, output, errors)

    def start_daemon(self, *arguments):
        """A program that goes to the background by itself; its streams must not be ours."""
        with open(self.folder / "daemons.log", "ab") as log:
            code = self.popen(*arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log).wait()
        if code != 0:
            raise ClusterError(f"{arguments} on {self.name} ended with {code}:\n"
                               + (self.folder / "daemons.log").read_text())
