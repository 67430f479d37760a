# SPDX-License-Identifier: Apache-2.0
"""What goes wrong: nemesis.py plan FAULT SEED ROUNDS prints it, as `fault seconds` a line. A seed is a plan; whom a fault meets is
a part in the play, such as the holder or the leader, and depends on who has that at the time."""

import random
import signal
import sys
import time

from servers import signal_all

T = 3.0

# What happens, by the name of the column. What a contender's servers can suffer is in servers.py.
FAULTS = {
    "calm": "nothing",
    "cut": "nothing passes between the holder's host and the servers",
    "cut-out": "what the holder's host sends to the servers is dropped",
    "cut-in": "what the servers send to the holder's host is dropped",
    "flap": "the link of the holder's host goes and comes, each for 0.05 to 0.4 T",
    "holder-stop": "the process that holds is stopped, and goes on",
    "holder-kill": "the process that holds is killed",
    "agent-stop": "what locks on its behalf, a daemon or etcdctl, is stopped, and goes on",
    "agent-kill": "the same is killed",
    "host-stop": "all processes of the holder's host are stopped, and go on",
    "leader-cut": "nothing passes between the leader and the other servers; clients reach all",
    "leader-kill": "the leader, or the only server, is killed, and started again with its data",
    "leader-stop": "the same is stopped, and goes on",
    "leader-move": "the service makes another server the leader, by its own command",
    "all-kill": "all servers are killed, and started again with their data",
    "all-wipe": "all servers are killed, and started again without their data",
    "backup": "all servers are killed, and started again with the data of a backup from before",
    "clock": "the wall clocks of all servers are an hour ahead, and right again later",
}
HOST_FAULTS = ("cut", "cut-out", "cut-in", "flap", "holder-stop", "holder-kill", "host-stop")
AGENT_FAULTS = ("agent-stop", "agent-kill")
SHORT = ("leader-move", "agent-kill", "holder-kill")  # nothing has to be undone


def plan(fault, seed, rounds, possible):
    """The faults of a cell, and for how long each. `mix` draws from those that are possible."""
    choice = random.Random(f"{fault} {seed}")
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
        host, servers = [holder.host.machine], self.service.machines
        if way != "in":
            self.network.drop(host, servers)
        if way != "out":
            self.network.drop(servers, host)
        time.sleep(seconds)
        self.network.heal()

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
        else:
            leader.kill()
            time.sleep(seconds / 3)
            self.service.launch(leader)

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
