#!/usr/bin/python3
"""The order of the source: what each file includes, and which files call each other.

    layers.py includes TREE         no include goes up, aside, in a circle, or to what is unknown; and nobody does what another file is
                                    there for
    layers.py modules TREE          no modules, each a file and its header, know each other's types or inline functions in a circle
    layers.py circles TREE BUILD    no files call each other in a circle; by the symbols of the object files
    layers.py names TREE BUILD      a function is named by its file, and declared in its header; by the same

One line for each fault, with file and line; exit status 1 if there is one.
"""
import collections
import json
import os
import re
import subprocess
import sys

# The layers, from the ground up. A file includes those of its own folder and of the lines above it; folders in one line do not
# know each other.
FLOORS = [
    ["src/base"],
    ["src/claim"],
    ["src/config"],
    ["src/journal", "src/peers"],
    ["src/stores"],
    ["src/stores/net"],
    ["src/stores/etcd/grpc", "src/stores/redis/wire", "src/stores/zookeeper/session"],
    ["src/stores/etcd", "src/stores/local", "src/stores/zookeeper"],
    ["src/stores/redis"],
    ["src/engine/books"],
    ["src/engine/records"],
    ["src/engine"],
    ["src/lockfile"],
    ["src/view"],
    ["fs/kernel"],
    ["fs/files"],
    ["fs/handles"],
    ["fs/status"],
    ["fs/ops"],
    ["fs/restart"],
    ["fs"],
]

# Layers that are a part of one folder above: no other includes what is in them.
INNER = {"src/stores/etcd/grpc": "src/stores/etcd", "src/stores/redis/wire": "src/stores/redis",
         "src/stores/zookeeper/session": "src/stores/zookeeper"}

# Folders that know no layer, and that no layer knows: of dlockctl, from the ground up, of the page, which has the first
# of them in common, and of dlockfs-keeper.
APART = ["src/dlockctl", "src/dlockctl/commands", "src/web", "src/keeper"]

# What others than the folders above include: what is installed for programs, what a terminal may be sent, %XX, the form of the runs of a
# job, the clock by which the end of a lease is told, where that stands in a journal, and what a C library may lack.
PUBLIC = {
    "src/base/clock.h": ["src/dlockctl", "src/keeper"],
    "src/base/escape.h": ["src/dlockctl"],
    "src/base/printable.h": ["src/dlockctl"],
    "src/base/platform.h": ["src/keeper"],
    "src/journal/deadline.h": ["src/keeper"],
    "src/claim/runs.h": ["src/dlockctl"],
    "fs/dlockfs.h": ["fs", "src/dlockctl"],
}

# Headers of others that only one folder, with those below it, may include.
OUTSIDE = {
    "zookeeper/": "src/stores/zookeeper",
    "nghttp2/": "src/stores/etcd/grpc",
    "protobuf-c/": "src/stores/etcd",
    "hiredis/": "src/stores/redis/wire",
    "ares.h": "src/stores/net",
    "fuse": "fs",
    "microhttpd.h": "src/web",
}

# What only one file of a folder, with those below it, does: (folder, pattern, file, what it is).
DOORS = [
    ("src/engine", r"ops->\w+\(", "src/engine/books/outbox.c", "a call of the store"),
    ("src/engine", r"events->on_(decided|tested|proved|lost|told|revoked)\(", "src/engine/books/decisions.c", "news for a caller"),
    ("src/lockfile", r"ops->\w+\(", "src/engine/books/outbox.c", "a call of the store"),
    ("src/lockfile", r"events->on_\w+\(", "src/lockfile/news.c", "news for a caller"),
    ("fs", r'"stores/\w+/|\bSTORE_SCHEME_', "fs/files/stores.c", "what is of one store"),
]

# Circles that there are: (reason, files). A file that is in no circle any more is to be taken from here.
CIRCLES = []

# Folders in which, or below, modules still include each other's headers in a circle: one that has none is to be taken from here.
KNOTTED = ["fs/kernel", "fs/restart", "fs/status", "src/config", "src/engine", "src/journal", "src/lockfile", "src/stores/etcd",
           "src/stores/local", "src/view"]

# Folders whose functions are named by their files: queue_judge() is of queue.c, as are queues_...() and, of src/view/queue.c,
# view_queue_...(), and is declared in queue.h. What a header of the folder that is named here declares may be of any file:
# {folder: {header: how its functions begin}}.
NAMED = {
    "src/engine": {"engine.h": "engine", "transfer.h": "engine"},
    "src/engine/books": {},
    "src/engine/records": {},
    "src/stores/etcd": {"state.h": "etcd", "store.h": "etcd", "table.h": "etcd"},
    "src/stores/etcd/grpc": {"grpc.h": "grpc", "grpc_inside.h": "grpc"},
    "src/stores/net": {},
    "src/stores/redis": {"service.h": "redis", "state.h": "redis"},
    "src/stores/redis/wire": {},
    "src/peers": {},
    "src/lockfile": {"lockfiles.h": "lockfiles"},
    "src/view": {"view.h": "view"},
    "fs/files": {},
    "fs/handles": {},
    "fs/kernel": {},
    "fs/ops": {"ops.h": "op", "lockfile_ops.h": "lockfile", "serving.h": "serving"},
    "fs/restart": {"takeover.h": "takeover"},
    "fs/status": {},
}

# Files whose functions have other names: (file, how they begin, why).
OTHER_NAMES = [
    ("fs/handles/handle_end.c", ["handle"], "which needs what handle.c does not know"),
    ("src/engine/books/save.c", ["engine", "lock", "owner", "claim", "wish"], "engine_mark() and the like are of what has changed"),
    ("src/view/view.c", ["viewer"], "who asks"),
    ("fs/kernel/nosymfollow.c", ["mount"], "stands in for that of the C library"),
    ("fs/restart/takeover_process.c", ["takeover_store"], "the stores of the process"),
]


def floor_of(folder):
    for number, folders in enumerate(FLOORS):
        if folder in folders:
            return number
    return None


def is_below(path, folder):
    return path.startswith(folder + "/")


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")


def source_files(tree):
    """Those of src/ and fs/, as paths in the tree."""
    for root in ("src", "fs"):
        for folder, _, names in os.walk(os.path.join(tree, root)):
            for name in names:
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), tree)


def generated_files(tree):
    """The headers that the build makes of src/**.proto, as paths in the tree."""
    for folder, _, names in os.walk(os.path.join(tree, "src")):
        for name in names:
            if name.endswith(".proto"):
                yield os.path.relpath(os.path.join(folder, name.removesuffix(".proto") + ".pb-c.h"), tree)


def fault_of_include(path, name, files):
    """What is wrong with `#include "name"` in the file; None: nothing."""
    here = os.path.dirname(path)
    found = [root + name for root in ("src/", "fs/") if root + name in files]
    if not found:
        return "is not in src/ or fs/ by this path"
    if len(found) > 1:
        return "is in src/ and in fs/"
    there = os.path.dirname(found[0])
    if there == here or any(is_below(path, folder) for folder in PUBLIC.get(found[0], [])):
        return None
    if {here, there} == {"src/web", "src/dlockctl/commands"}:
        return f"is of another program: {here} does not know {there}"
    if here in APART and there in APART:
        return None if APART.index(there) < APART.index(here) else f"is above: {here} does not know {there}"
    if here in APART:
        return f"is of {there}: {here} stands apart"
    if there in APART:
        return f"is of {there}, which stands apart"
    if there in INNER and here != INNER[there]:
        return f"is only for {INNER[there]}"
    mine, its = floor_of(here), floor_of(there)
    if its is None:
        return f"is in {there}, which is no layer"
    if its > mine:
        return f"is above: {here} does not know {there}"
    if its == mine:
        return f"is beside: {here} does not know {there}"
    return None


def check_includes(tree):
    faults = []
    sources = set(source_files(tree))
    files = sources | set(generated_files(tree))
    headers = {path: {} for path in sources}
    for path in sorted(sources):
        here = os.path.dirname(path)
        if floor_of(here) is None and here not in APART:
            faults.append(f"{path}:1: {here} is no layer")
            continue
        for number, line in enumerate(read_lines(os.path.join(tree, path)), 1):
            faults += [f"{path}:{number}: {what} is only for {door}" for folder, pattern, door, what in DOORS
                       if (here == folder or is_below(here, folder)) and path != door and re.search(pattern, line)]
            match = re.match(r'\s*#\s*include\s*(?:"([^"]*)"|<([^>]*)>|(.*))', line)
            if not match:
                continue
            own, other, neither = match.groups()
            if own is not None:
                fault = fault_of_include(path, own, files)
                headers[path].update({root + own: own for root in ("src/", "fs/") if root + own in sources})
            elif other is not None:
                fault = next((f"is only for {folder}" for start, folder in OUTSIDE.items()
                              if other.startswith(start) and not is_below(path, folder)), None)
            else:
                fault = "is neither a name in quotation marks nor in angle brackets"
            if fault:
                faults.append(f"{path}:{number}: {own or other or neither} {fault}")
    # One that goes up may close a circle.
    return faults or [describe_circle(tree, headers, group, min(group), "{0}") for group in circles(headers)]


def module_of(path):
    return os.path.splitext(path)[0]


def check_modules(tree):
    """By the includes of both files of a module: who includes another one's header may need the types that are declared there."""
    sources = set(source_files(tree))
    graph, places = {}, {}
    for path in sorted(sources):
        here = module_of(path)
        graph.setdefault(here, {})
        for number, line in enumerate(read_lines(os.path.join(tree, path)), 1):
            match = re.match(r'\s*#\s*include\s*"([^"]*)"', line)
            for other in [root + match[1] for root in ("src/", "fs/")] if match else []:
                if other in sources and module_of(other) != here:
                    graph[here].setdefault(module_of(other), match[1])
                    places.setdefault((here, module_of(other)), f"{path}:{number}")
    knotted, faults = set(), []
    for group in circles(graph):
        known_of = [{known for known in KNOTTED if is_below(module, known)} for module in group]
        knotted.update(*known_of)
        if not all(known_of):
            way = shortest_circle(graph, group, min(group))
            steps = ", ".join(f"{places[pair]} {graph[pair[0]][pair[1]]}" for pair in zip(way, way[1:] + way[:1]))
            faults.append(f"{places[way[0], (way + way)[1]]}: a circle of {len(group)} modules: {steps}")
    return faults + [f"{folder}: has no circle of modules any more: KNOTTED still has it" for folder in KNOTTED
                     if folder not in knotted]


def objects(tree, build):
    """The object file of each source file in src/ and fs/, as the programs have it."""
    result = {}
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for command in json.load(file):
            path = os.path.relpath(os.path.realpath(os.path.join(command["directory"], command["file"])),
                                   os.path.realpath(tree))
            if path.startswith(("src/", "fs/")) and not command["output"].startswith("tests/"):
                result[path] = os.path.join(command["directory"], command["output"])
    return result


def global_symbols(found):
    """The global symbols of the object files, by nm once for all: {path: [(kind, symbol)]}."""
    paths = {name: path for path, name in found.items()}
    result = {path: [] for path in found}
    lines = subprocess.run(["nm", "-g", "-A", *paths], check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
    for name, _, line in (line.partition(":") for line in lines):
        result[paths[name]].append(tuple(line.split()[-2:]))
    return result


def calls(found):
    """Which file refers to which other: {path: {other: symbol}}. What stands apart has symbols of its own."""
    defined, wanted = {}, {}
    for path, pairs in global_symbols(found).items():
        program = APART[0] if os.path.dirname(path) in APART else ""
        for kind, symbol in pairs:
            if kind in "Uw":
                wanted.setdefault(path, []).append((program, symbol))
            else:
                defined[program, symbol] = path
    graph = {path: {} for path in found}
    for path, symbols in wanted.items():
        for program, symbol in sorted(symbols):
            other = defined.get((program, symbol))
            if other and other != path:
                graph[path].setdefault(other, symbol)
    return graph


def circles(graph):
    """The groups of files each of which reaches all others of its group (Tarjan)."""
    index, low, stack, result = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = set()
            while node not in group:
                group.add(stack.pop())
            if len(group) > 1:
                result.append(group)

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return result


def shortest_circle(graph, group, start):
    """The files of the shortest way from `start` back to it, in the group."""
    before, queue = {}, collections.deque([start])
    while queue:
        node = queue.popleft()
        for other in sorted(graph[node]):
            if other == start:
                way = [node]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1]
            if other in group and other not in before:
                before[other] = node
                queue.append(other)
    raise AssertionError(start)


def place_of(tree, path, symbol):
    """Where the symbol is first in the file."""
    for number, line in enumerate(read_lines(os.path.join(tree, path)), 1):
        if re.search(rf"\b{re.escape(symbol)}\b", line):
            return f"{path}:{number}"
    return f"{path}:1"


def describe_circle(tree, graph, group, start, form):
    """The fault that the group of files is, by the shortest circle; `form` says what one file has of another."""
    way = shortest_circle(graph, group, start)
    text = ", ".join(f"{place_of(tree, path, graph[path][other])} {form.format(graph[path][other], other)}"
                     for path, other in zip(way, way[1:] + way[:1]))
    return f"{place_of(tree, way[0], graph[way[0]][(way + way)[1]])}: a circle of {len(group)} files: {text}"


def check_circles(tree, build):
    graph = calls(objects(tree, build))
    known = [(reason, set(files.split())) for reason, files in CIRCLES]
    there = set()
    faults = []
    for group in circles(graph):
        there |= group
        allowed = max((files for _, files in known), key=lambda files: len(files & group), default=set())
        new = group - allowed
        if new:
            faults.append(describe_circle(tree, graph, group, min(new), "{}() of {}"))
    for reason, files in known:
        for path in sorted(files - there):
            faults.append(f"{path}:1: is in no circle any more, or not there: CIRCLES still has it ({reason})")
    return faults


def check_names(tree, build):
    found = {path: name for path, name in objects(tree, build).items() if os.path.dirname(path) in NAMED}
    headers_of = {} # by function: those in which a line at the margin has it with its parenthesis
    for path in source_files(tree):
        if path.endswith(".h") and os.path.dirname(path) in NAMED:
            lines = [line for line in read_lines(os.path.join(tree, path)) if re.match("[A-Za-z_]", line)]
            for symbol in set(re.findall(r"\b(\w+)\(", "\n".join(lines))):
                headers_of.setdefault(symbol, []).append(path)
    faults = []
    for path, pairs in sorted(global_symbols(found).items()):
        folder, file = os.path.split(path)
        stem = file.removesuffix(".c")
        starts = [start for other, others, _ in OTHER_NAMES if other == path for start in others]
        for kind, symbol in pairs:
            there = headers_of.get(symbol, [])
            shared = [NAMED[folder][os.path.basename(header)] for header in there if os.path.basename(header) in NAMED[folder]]
            nouns = [stem, stem + "s", stem + "es", stem.removesuffix("s")]
            mine = nouns + [f"{os.path.basename(folder)}_{noun}" for noun in nouns] + starts + shared
            if kind != "T" or symbol in starts:
                continue
            if not any(symbol == start or symbol.startswith(start + "_") for start in mine):
                faults.append(f"{place_of(tree, path, symbol)}: {symbol}() is not named by its file")
            elif not shared and there != [f"{folder}/{stem}.h"]:
                faults.append(f"{place_of(tree, path, symbol)}: {symbol}() is declared in {', '.join(there) or 'no header'}")
    return faults


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "includes":
        faults = check_includes(sys.argv[2])
    elif len(sys.argv) == 3 and sys.argv[1] == "modules":
        faults = check_modules(sys.argv[2])
    elif len(sys.argv) == 4 and sys.argv[1] == "circles":
        faults = check_circles(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 4 and sys.argv[1] == "names":
        faults = check_names(sys.argv[2], sys.argv[3])
    else:
        sys.exit(__doc__)
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
