"""A real Slurm of several nodes on this machine, for tests and for trying things out (root only).

    cluster = Cluster("/var/tmp/cluster")
    cluster.up()
    cluster.run("srun", "-N4", "hostname")     # on head, the login node
    cluster.kill_node("node2")
    cluster.down()

It is N + 2 machines (machine.py): head with slurmctld and munged, nodes with slurmd, and a switch. They
share the host's files but /tmp, /dev/shm and /run, and nothing else: the host's network, mounts and
services stay untouched, and clusters cannot meet. All state lies in the folder, so that another
process can go on with a cluster, or clean up after one that died.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess

from config import CONF, gres_conf, hosts, slurm_conf
from machine import NAMESPACES, ClusterError, Machine, until
from network import HEAD, Network

PROGRAMS = ("slurmctld", "slurmd", "srun", "munged", "ip", "tc", "nsenter", "unshare")
PACKAGES = "slurmctld slurmd slurm-client munge iproute2 util-linux"
ENDED = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED")
# Without ring, fences of Slurm's PMIx plugin do not wait for other nodes (22.05), and one start of
# Open MPI in twenty crashes.
ENVIRONMENT = {"SLURM_CONF": CONF, "SLURM_PMIX_FENCE": "ring"}


def why_not():
    """Why no cluster can be started here; empty when one can."""
    if os.geteuid() != 0:
        return "a test cluster needs root (namespaces, network devices)"
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: apt-get install {PACKAGES})"
    tried = subprocess.run(["unshare", *NAMESPACES, "--fork", "mount", "-t", "proc", "proc", "/proc"],
                           capture_output=True, text=True, check=False)
    return f"no namespaces here: {tried.stderr.strip()}" if tried.returncode != 0 else ""


class Cluster:
    def __init__(self, folder, visible=()):
        """`visible`: folders that nodes must see, in case they lie in the host's /tmp."""
        self.folder = pathlib.Path(folder).resolve()
        self.visible = [self.folder, *(pathlib.Path(path).resolve() for path in visible)]
        self.network = Network(self.folder)
        self.head = Machine(self.folder, "head")

    @property
    def nodes(self):
        """Names of the nodes, whether they are on or off."""
        found = [path.name for path in self.folder.glob("node*") if path.is_dir()]
        return sorted(found, key=lambda name: int(name[len("node"):]))

    def up(self, num_nodes=4, cores=4, node_timeout=10, gpus=0, binds=False):
        """`node_timeout`: after this many seconds of silence, at the least, a node is down. `gpus`:
        what nodes claim to have. `binds`: tasks are bound to cores, which must then be real ones. What is
        left of a cluster in this folder is ended first."""
        if reason := why_not():
            raise ClusterError(reason)
        with self._locked():
            self._clean()
            try:
                self._start(num_nodes, slurm_conf(num_nodes, cores, node_timeout, gpus, binds), gres_conf(gpus))
            except BaseException:
                self._clean()
                raise

    def down(self):
        with self._locked():
            self._clean()

    def run(self, *arguments, on="head", environment=None, **options):
        """A command to its end; unless check=False, an error when that is not 0."""
        return Machine(self.folder, on).run(
            *arguments, environment=dict(ENVIRONMENT, **(environment or {})), **options)

    def popen(self, *arguments, on="head", environment=None, **options):
        return Machine(self.folder, on).popen(
            *arguments, environment=dict(ENVIRONMENT, **(environment or {})), **options)

    def is_on(self, name):
        return self.process(name) is not None

    def process(self, name):
        """The first process of a node, as the host numbers it; None: it is off."""
        return self._node(name).process()

    def host_processes(self, name, word):
        """Numbers, on the host, of processes of a machine whose second word on the command line is this."""
        return [number for number, _, words in self._processes_of(name) if words[1:2] == [word]]

    def host_process(self, name, number):
        """The number on the host of what is this process on a machine."""
        return next(host for host, own, _ in self._processes_of(name) if own == number)

    def _processes_of(self, name):
        machine = os.readlink(f"/proc/{self.process(name)}/ns/pid")
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, StopIteration):
                if os.readlink(entry / "ns/pid") != machine:
                    continue
                status = (entry / "status").read_text().splitlines()
                own = next(line.split()[-1] for line in status if line.startswith("NSpid:"))
                yield int(entry.name), int(own), (entry / "cmdline").read_bytes().split(b"\0")

    def add_network(self, name, interface, prefix):
        """One more between all machines for which this is called, by an interface of this name."""
        node = self._node(name)
        self.network.attach_also(node, self._number_of(node), interface, prefix)

    def bytes_on(self, name, interface):
        """That an interface of a machine has taken and given so far."""
        counters = self.run("cat", "/proc/net/dev", on=name).stdout
        fields = counters.partition(f"{interface}:")[2].split()
        return int(fields[0]) + int(fields[8])

    # Faults, and their end.

    def kill_node(self, name):
        """Power loss: everything on the node is gone, also its memory; its /tmp is not."""
        self.network.cut(self._node(name))  # first, so that no dying process can close a connection
        self._node(name).kill()

    def kill_slurmd(self, name):
        """The daemon alone: jobs go on."""
        pid = self._node(name).folder / "slurmd.pid"
        self._node(name).run("kill", "-9", pid.read_text().strip())
        pid.unlink()

    def cut(self, name):
        """Pulls the node's network cable."""
        self.network.cut(self._node(name))

    def slow(self, name, megabits):
        self.network.slow(self._node(name), megabits)

    def restore(self, name):
        """Mends all of these: power, cable, speed, slurmd."""
        node = self._node(name)
        if node.process() is None:
            node.start(self.visible)
            node.wait_until_ready()
            self._attach(node)
        self.network.mend(node)
        if not self._has_slurmd(node):
            node.start_daemon("slurmd", "-N", name, "-f", CONF)

    # Slurm, by its commands.

    def states(self):
        """Node -> state in sinfo's words ("idle", "mixed", "down*" ...)."""
        listed = self.run("sinfo", "-h", "-N", "-o", "%N %T", timeout=15, check=False).stdout
        return dict(line.split() for line in listed.splitlines())

    def wait_for_nodes(self, state="idle", names=None, seconds=90):
        names = set(names or self.nodes)
        until(lambda: names <= {name for name, now in self.states().items() if now == state}, seconds,
              f"{' '.join(names)} {state}; see {self.folder}/head/slurmctld.log")

    def submit(self, script, *options, cwd="/"):
        """sbatch; the number of the job."""
        if not script.startswith("#!"):
            script = "#!/bin/bash\n" + script
        return int(self.run("sbatch", "--parsable", *options, text=script, cwd=cwd).stdout)

    def job(self, number):
        """What scontrol knows of a job: {"JobState": "RUNNING", "ExitCode": "0:0", ...}."""
        shown = self.run("scontrol", "-o", "show", "job", number).stdout
        return dict(word.split("=", 1) for word in shown.split() if "=" in word)

    def wait(self, number, *states, seconds=60):
        """The job, once it is in one of the states; without any: once it has ended."""
        def reached():
            job = self.job(number)
            return job if job["JobState"] in (states or ENDED) else None
        return until(reached, seconds, f"job {number} is {' or '.join(states or ENDED)}")

    # Parts of up and down.

    @contextlib.contextmanager
    def _locked(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        marker = self.folder / "lock"
        if not marker.exists() and any(self.folder.iterdir()):
            raise ClusterError(f"{self.folder} holds other files; a test cluster needs its own folder")
        with open(marker, "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _clean(self):
        """Ends all machines of this folder, whoever started them, and removes their files."""
        for process in self.folder.glob("*/process"):
            Machine(self.folder, process.parent.name).kill()
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()

    def _start(self, num_nodes, conf, gres):
        self.folder.chmod(0o755)
        (self.folder / "hosts").write_text(hosts(num_nodes), encoding="utf-8")
        (self.folder / "slurm.conf").write_text(conf, encoding="utf-8")
        (self.folder / "gres.conf").write_text(gres, encoding="utf-8")
        for name in ("ctld", "munge"):
            (self.folder / name).mkdir(mode=0o755)
        key = os.open(self.folder / "munge/key", os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(key, os.urandom(1024))
        os.close(key)
        nodes = [self._node(f"node{i}") for i in range(1, num_nodes + 1)]
        machines = [self.network.switch, self.head, *nodes]
        for machine in machines:
            machine.start(self.visible)
        for machine in machines:
            machine.wait_until_ready()
        self.network.start()
        for machine in machines[1:]:
            self._attach(machine)
        self._start_daemons(nodes)

    def _start_daemons(self, nodes):
        munge = "/run/cluster/munge"
        self.head.start_daemon("munged", *(f"--{part}-file={munge}/{part}"
                                           for part in ("key", "pid", "log", "seed")),
                               f"--socket={munge}/socket")
        self.head.start_daemon("slurmctld", "-f", CONF)
        for node in nodes:
            node.start_daemon("slurmd", "-N", node.name, "-f", CONF)
        self.wait_for_nodes()

    def _attach(self, machine):
        self.network.attach(machine, self._number_of(machine))

    @staticmethod
    def _number_of(machine):
        return HEAD if machine.name == "head" else int(machine.name[len("node"):])

    def _node(self, name):
        return Machine(self.folder, name)

    @staticmethod
    def _has_slurmd(node):
        pid = node.folder / "slurmd.pid"
        return pid.exists() and node.run("kill", "-0", pid.read_text().strip(),
                                         check=False).returncode == 0
