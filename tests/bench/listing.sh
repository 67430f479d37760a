#!/bin/bash
# How long it takes to see what there is: many locks that are held, one with a long queue, and one with as many record
# locks, each of two bytes that nobody else has; all claims of another host. Prints the median of some runs, and what
# the server itself takes to list and read the same, one request after the other and all at once.
#
#     tests/bench/listing.sh [LOCKS [WAITERS [RUNS]]]      (5000, 1000, 7)

# shellcheck source=../functions.sh
. "$(dirname "$0")/../functions.sh"
numbers "$@"

locks=${1:-5000}
waiters=${2:-1000}
runs=${3:-7}

ninja -C "$build" src/dlockctl/dlockctl >"$dir/build.log" 2>&1 || fail "$(tail "$dir/build.log")"
start_zookeeper
start_dlockfs A
"$python" - "$(zookeeper_address)" "$dir/A" "$dlockctl" "$locks" "$waiters" "$runs" <<'END'
import statistics, subprocess, sys, time, uuid

from kazoo.client import KazooClient

address, mount, dlockctl, locks, waiters, runs = *sys.argv[1:4], *map(int, sys.argv[4:])
DATA = b"format=1\nhost=elsewhere\npid=4711\nuid=0\ncommand=backup\nkind=flock\nmode=exclusive\nsince=1795305254\n"
RECORD = DATA.replace(b"flock", b"record")
FAR = 1 << 40

client = KazooClient(address, timeout=60)
client.start(30)


def place(lock, name=None, data=DATA):
    path = f"/dlockfs/{lock}/_c_{name or uuid.uuid4()}-__WRIT__"
    return client.create_async(path, data, ephemeral=True, sequence=True)


# As src/claim/name.h and src/claim/data.h say: the first and the last byte of many ranges.
def place_record(owner):
    name = uuid.UUID(int=0x8000 << 64 | 0b101 << 61 | owner << 32 | owner)
    data = RECORD + b"ranges=w%d-%d,w%d-%d\n" % (owner, owner, FAR + owner, FAR + owner)
    return place("records", f"{name}-s{owner}-{FAR + owner}", data)


def all_of(answers):
    for answer in answers:
        answer.get(120)


names = [f"job{number}" for number in range(locks)]
client.ensure_path("/dlockfs/queue")
all_of([client.create_async(f"/dlockfs/{name}") for name in names])
all_of([place(name) for name in names])
all_of([place("queue") for _ in range(waiters)])
client.ensure_path("/dlockfs/records")
all_of([place_record(number + 1) for number in range(waiters)])


def measure(what, run, expected):
    times = []
    for _ in range(runs):
        begin = time.monotonic()
        found = run()
        times.append((time.monotonic() - begin) * 1000)
        assert found == expected, (what, found, expected)
    print(f"{what:56} {statistics.median(times):8.0f} ms")


def lines(*command):
    return lambda: subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.count(b"\n")


def one_after_the_other():
    return sum(1 for name in names for claim in client.get_children(f"/dlockfs/{name}")
               if client.get(f"/dlockfs/{name}/{claim}"))


def at_once():
    lists = [(name, client.get_children_async(f"/dlockfs/{name}")) for name in names]
    reads = [client.get_async(f"/dlockfs/{name}/{claim}") for name, answer in lists for claim in answer.get(60)]
    all_of(reads)
    return len(reads)


measure(f"kazoo: {locks} locks, one request after the other", one_after_the_other, locks)
measure(f"kazoo: {locks} locks, all requests at once", at_once, locks)
measure(f"cat .dlockfs/queues: {locks} locks and two queues of {waiters}", lines("cat", f"{mount}/.dlockfs/queues"),
        2 * (locks + 1 + waiters))
measure(f"dlockctl ls: the same", lines(dlockctl, "--mount", mount, "ls"), locks + 3)
measure(f"cat .dlockfs/locks/queue: a queue of {waiters}", lines("cat", f"{mount}/.dlockfs/locks/queue"), 1 + waiters)
measure(f"grep state=held .dlockfs/locks/records: {waiters} of them",
        lines("grep", "state=held", f"{mount}/.dlockfs/locks/records"), waiters)
measure(f"dlockctl show queue", lines(dlockctl, "--mount", mount, "show", "queue"), waiters + 1)
client.stop()
END
