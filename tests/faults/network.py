# SPDX-License-Identifier: Apache-2.0
"""Machines on one machine: network namespaces, each behind a link of its own to this one, which forwards and can drop packets from
any of them to any other. To be used in a network namespace of one's own."""

import os
import subprocess

SLEEP = ["unshare", "--net", "sleep", "infinity"]


def run(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


class Machine:
    def __init__(self, number, name):
        self.name = name
        self.number = number
        self.address = f"10.77.{number}.2"
        self.holder = subprocess.Popen(SLEEP)
        self.namespace = f"/proc/{self.holder.pid}/ns/net"
        while os.readlink(self.namespace) == os.readlink("/proc/self/ns/net"):
            pass
        near, far = f"near{number}", f"far{number}"
        run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", str(self.holder.pid))
        run("ip", "address", "add", f"10.77.{number}.1/24", "dev", near)
        run("ip", "link", "set", near, "up")
        for command in (
            f"link set lo up; address add {self.address}/24 dev {far}; link set {far} up; route add default via 10.77.{number}.1"
        ).split("; "):
            run(*self.inside("ip", *command.split()))

    def inside(self, *command):
        return ["nsenter", f"--net={self.namespace}", *command]


class Network:
    def __init__(self):
        self.machines = []
        self.count = 0  # of all that there were
        self.dropped = []
        run("ip", "link", "set", "lo", "up")
        with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as file:
            file.write("1")
        # One program for all rules, as a busy machine takes a while to start one.
        self.batch = subprocess.Popen(["ip", "-force", "-batch", "-"], stdin=subprocess.PIPE, text=True)

    def machine(self, name):
        self.count += 1
        machine = Machine(self.count, name)
        self.machines.append(machine)
        return machine

    def _tell(self, *lines):
        self.batch.stdin.write("".join(f"{line}\n" for line in lines))
        self.batch.stdin.flush()

    def drop(self, senders, receivers):
        """Nothing passes from the ones to the others, from now on; nobody is told."""
        rules = [f"pref 1 from {sender.address} to {receiver.address} blackhole" for sender in senders for receiver in receivers]
        self.dropped += rules
        self._tell(*(f"rule add {rule}" for rule in rules))

    def heal(self):
        """All passes again."""
        self._tell(*(f"rule del {rule}" for rule in self.dropped))
        self.dropped = []

    def lose(self, machine, share):
        """So much of what comes from the machine and goes to it is lost, until mend."""
        for way in ("--source", "--destination"):
            rule = [way, machine.address, "-m", "statistic", "--mode", "random", "--probability", str(share)]
            run("iptables", "--wait", "--append", "FORWARD", *rule, "--jump", "DROP")

    def slow(self, machine, bytes_per_s, longest_s):
        """So much passes to the machine and from it, and what would have to wait for longer is lost, until mend."""
        limit = ["rate", f"{8 * bytes_per_s}bit", "burst", "3000", "limit", str(int(bytes_per_s * longest_s))]
        run("tc", "qdisc", "replace", "dev", f"near{machine.number}", "root", "tbf", *limit)
        run(*machine.inside("tc", "qdisc", "replace", "dev", f"far{machine.number}", "root", "tbf", *limit))

    def mend(self, machine):
        """The link is as fast as ever, and loses nothing."""
        run("iptables", "--wait", "--flush", "FORWARD")
        for command in (["tc"], machine.inside("tc")):
            name = f"near{machine.number}" if command == ["tc"] else f"far{machine.number}"
            subprocess.run([*command, "qdisc", "del", "dev", name, "root"], check=False, capture_output=True)

    def clear(self):
        """All machines are gone."""
        self.heal()
        for machine in self.machines:
            machine.holder.kill()
            machine.holder.wait()
        self.machines = []

    def close(self):
        self.clear()
        self.batch.stdin.close()
        self.batch.wait()
