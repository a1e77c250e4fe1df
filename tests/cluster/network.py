"""The network of a test cluster: a machine that is the switch, and cables from it to the others."""

import subprocess

from machine import ClusterError, Machine

HEAD = 254  # last number of its address


def address(number):
    return f"10.0.0.{number}"


class Network:
    def __init__(self, state):
        self.switch = Machine(state, "switch")

    def start(self):
        self._in_switch("link add cluster type bridge", "link set cluster up")

    def attach(self, machine, number):
        process = machine.process()
        # The cable of a machine that was killed goes away some time after it.
        self.switch.run("ip", "link", "delete", machine.name, check=False)
        self._in_switch(f"link add {machine.name} type veth peer name eth0 netns {process}",
                        f"link set {machine.name} master cluster up")
        self._ip(machine, "link set lo up", f"address add {address(number)}/24 dev eth0",
                 "link set eth0 up")

    def attach_also(self, machine, number, interface, prefix):
        """A second cable, to a switch of its own; `prefix` of its address such as "10.9.0."."""
        bridge, end = interface, f"{interface[:8]}-{machine.name}"
        if self.switch.run("ip", "link", "show", bridge, check=False).returncode != 0:
            self._in_switch(f"link add {bridge} type bridge", f"link set {bridge} up")
        self._in_switch(f"link add {end} type veth peer name {interface} netns {machine.process()}",
                        f"link set {end} master {bridge}", f"link set {end} up")
        self._ip(machine, f"address add {prefix}{number}/24 dev {interface}", f"link set {interface} up")

    def cut(self, machine):
        self._in_switch(f"link set {machine.name} down")

    def slow(self, machine, megabits):
        """Both ways, at most so many megabits a second."""
        for place, device in ((self.switch, machine.name), (machine, "eth0")):
            place.run("tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate",
                      f"{megabits}mbit", "burst", "64kb", "latency", "100ms")

    def mend(self, machine):
        self._in_switch(f"link set {machine.name} up")
        for place, device in ((self.switch, machine.name), (machine, "eth0")):
            place.run("tc", "qdisc", "delete", "dev", device, "root", check=False)

    def _in_switch(self, *lines):
        self._ip(self.switch, *lines)

    @staticmethod
    def _ip(machine, *lines):
        # In its network only: `netns` takes the host's numbers of processes.
        done = subprocess.run(["nsenter", "-t", str(machine.process()), "-n", "ip", "-batch", "-"],
                              input="\n".join(lines) + "\n", capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise ClusterError(f"ip on {machine.name}: {done.stderr}of:\n" + "\n".join(lines))
