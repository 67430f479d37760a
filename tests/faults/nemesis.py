# SPDX-License-Identifier: Apache-2.0
"""What goes wrong: nemesis.py plan FAULT SEED ROUNDS prints it, as `fault seconds` a line. A seed is a plan; whom a fault meets is
a part in the play, such as the holder or the leader, and depends on who has that at the time."""

import random
import signal
import sys
import time

from servers import signal_all
from session import T

# What happens, by the name of the column. What a contender's servers can suffer is in servers.py.
FAULTS = {
    "calm": "nothing",
    "cut": "nothing passes between the holder's host and the servers",
    "cut-out": "what the holder's host sends to the servers is dropped",
    "cut-in": "what the servers send to the holder's host is dropped",
    "cut-leader": "nothing passes between the holder's host and the leader; the other servers are reached",
    "flap": "the link of the holder's host goes and comes, each for 0.05 to 0.4 T",
    "link-lossy": "a third of the packets of the holder's host are lost, both ways",
    "link-slow": "the link of the holder's host lets 4,000 bytes a second pass, both ways, and drops what would wait for longer than T",
    "holder-stop": "the process that holds is stopped, and goes on",
    "holder-kill": "the process that holds is killed",
    "agent-stop": "what locks on its behalf, a daemon or etcdctl, is stopped, and goes on",
    "agent-kill": "the same is killed",
    "guard-stop": "what tells of a loss when the daemon cannot is stopped, and goes on",
    "guard-kill": "the same is killed",
    "host-stop": "all processes of the holder's host are stopped, and go on",
    "leader-cut": "nothing passes between the leader and the other servers; clients reach all",
    "leader-kill": "the leader, or the only server, is killed, and started again with its data",
    "leader-stop": "the same is stopped, and goes on",
    "leader-move": "the service makes another server the leader, by its own command",
    "leader-disk": "what the leader, or the only server, writes to its disk is there 0.2 to 0.7 T later",
    "follower-kill": "one that does not lead is killed, and started again with its data",
    "follower-stop": "the same is stopped, and goes on",
    "disk": "what any server writes to its disk is there 0.05 to 0.3 T later",
    "compact": "the service drops what it keeps of the past, by its own command, again and again",
    "all-kill": "all servers are killed, and started again with their data",
    "all-wipe": "all servers are killed, and started again without their data",
    "backup": "all servers are killed, and started again with the data of a backup from before",
    "clock": "the wall clocks of all servers are an hour ahead, and right again later",
    "drift": "as cut, where the clocks of the hosts run slow by 1 %, right, and fast by 1 %, in the whole history",
}
HOST_FAULTS = ("cut", "cut-out", "cut-in", "flap", "link-lossy", "link-slow", "holder-stop", "holder-kill", "host-stop")
AGENT_FAULTS = ("agent-stop", "agent-kill")
GUARD_FAULTS = ("guard-stop", "guard-kill")
WHOLE = ("drift",)  # not one of many in a history
SHORT = ("leader-move", "agent-kill", "guard-kill", "holder-kill")  # nothing has to be undone


def plan(fault, seed, rounds, possible):
    """The faults of a cell, and for how long each. `mix` draws from those that are possible."""
    choice = random.Random(f"{fault} {seed}")
    possible = [each for each in possible if each not in WHOLE]
    deck = []
    for number in range(rounds):
        deck = deck or choice.sample(sorted(possible), len(possible))
        each = deck.pop() if fault == "mix" else fault
        # The first is longer than any session.
        parts = 2 if number == 0 else choice.uniform(0.3, 2.2)
        yield each, round(T * (1 if each in SHORT else parts), 2)


class Nemesis:
    """Carries faults out on a cell (run.py), one after the other."""

    def __init__(self, cell):
        self.cell = cell
        self.service = cell.service
        self.network = cell.network

    def inflict(self, fault, seconds, holder):
        """The worker `holder` holds. Returns when the fault is over."""
        method, *words = fault.split("-")
        getattr(self, method)(seconds, holder, *words)

    def calm(self, seconds, holder):
        time.sleep(seconds)

    def cut(self, seconds, holder, way="both"):
        host = [holder.host.machine]
        servers = [self.service.leader().machine] if way == "leader" else self.service.machines
        if way != "in":
            self.network.drop(host, servers)
        if way != "out":
            self.network.drop(servers, host)
        time.sleep(seconds)
        self.network.heal()

    def drift(self, seconds, holder):
        self.cut(seconds, holder)

    def link(self, seconds, holder, what):
        if what == "lossy":
            self.network.lose(holder.host.machine, 0.33)
        else:
            self.network.slow(holder.host.machine, 4000, T)
        time.sleep(seconds)
        self.network.mend(holder.host.machine)

    def flap(self, seconds, holder):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.cut(self.cell.random.uniform(0.05, 0.4) * T, holder)
            time.sleep(self.cell.random.uniform(0.05, 0.4) * T)

    def stopped(self, pids, seconds):
        pids(signal.SIGSTOP)
        time.sleep(seconds)
        pids(signal.SIGCONT)

    def holder(self, seconds, holder, what):
        if what == "kill":
            self.cell.note_killed(holder.name, holder.kill())
            time.sleep(seconds)
            holder.start()
        else:
            self.stopped(self.signals(holder.pids()), seconds)

    @staticmethod
    def signals(pids):
        return lambda number: signal_all(pids, number)

    def agent(self, seconds, holder, what):
        daemon = holder.host.daemon
        if what == "stop":
            self.stopped(self.signals([daemon.process.pid] if daemon else holder.agents()), seconds)
        elif not daemon:
            self.signals(holder.agents())(signal.SIGKILL)
            time.sleep(seconds)
        else:
            daemon.kill()
            time.sleep(seconds)

    def guard(self, seconds, holder, what):
        guards = holder.host.daemon.guards()
        if what == "stop":
            self.stopped(self.signals(guards), seconds)
        else:
            signal_all(guards, signal.SIGKILL)
            time.sleep(seconds)

    def host(self, seconds, holder, _):
        self.stopped(holder.host.signal, seconds)

    def leader(self, seconds, _, what):
        leader = self.service.leader()
        if what == "cut":
            others = [server.machine for server in self.service.followers()]
            self.network.drop([leader.machine], others)
            self.network.drop(others, [leader.machine])
            time.sleep(seconds)
            self.network.heal()
        elif what == "stop":
            self.stopped(leader.signal, seconds)
        elif what == "move":
            self.service.move_leader()
            time.sleep(seconds)
        elif what == "disk":
            self.disks([leader], seconds, self.cell.random.uniform(0.2, 0.7) * T)
        else:
            self.restart(leader, seconds)

    def restart(self, server, seconds):
        server.kill()
        time.sleep(seconds / 3)
        self.service.launch(server)

    def follower(self, seconds, _, what):
        server = self.service.followers()[0]
        if what == "stop":
            self.stopped(server.signal, seconds)
        else:
            self.restart(server, seconds)

    def disk(self, seconds, _):
        self.disks(self.service.servers, seconds, self.cell.random.uniform(0.05, 0.3) * T)

    @staticmethod
    def disks(servers, seconds, late):
        tracers = [server.slow_disk(late) for server in servers]
        time.sleep(seconds)
        for tracer in tracers:
            tracer.terminate()
        for tracer in tracers:
            tracer.wait()

    def compact(self, seconds, _):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.service.compact()
            time.sleep(0.2)

    def all(self, seconds, _, what):
        for server in self.service.servers:
            server.kill()
        if what == "wipe":
            for server in self.service.servers:
                self.service.wipe(server)
        time.sleep(0.1 * seconds)
        self.service.start()

    def backup(self, seconds, _):
        for server in self.service.servers:
            server.kill()
        self.service.restore()
        time.sleep(0.1 * seconds)
        self.service.start()

    def clock(self, seconds, _):
        for ahead in (3600, 0):
            for server in self.service.servers:
                self.service.step(server, ahead)
            time.sleep(seconds / 2)


def main():
    if len(sys.argv) != 5 or sys.argv[1] != "plan":
        sys.exit(__doc__)
    for fault, seconds in plan(sys.argv[2], sys.argv[3], int(sys.argv[4]), [fault for fault in FAULTS if fault != "calm"]):
        print(fault, seconds)


if __name__ == "__main__":
    main()
