"""What calls enter in a daemon that runs under callgrind: see walk.sh."""
import collections
import fcntl
import glob
import os
import re
import subprocess
import sys
import threading

pid, output, tree, mount = sys.argv[1:5]


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def entered(call):
    """The functions of dlockfs that the daemon has entered by the end of the call, by file."""
    run("callgrind_control", "-z", pid)
    call()
    os.stat(mount + "/.dlockfs")  # behind which the daemon has done what came before
    run("callgrind_control", "-d", pid)
    found = collections.defaultdict(set)
    for dump in glob.glob(output + ".*"):
        listing = run("callgrind_annotate", "--threshold=100", "--auto=no", dump)
        os.unlink(dump)
        for file, function in re.findall(r"\)  (\S*?\b(?:src|fs)/\S+\.[ch]):(\S+)", listing):
            found[re.search(r"\b(src|fs)/.*", file)[0]].add(function.partition("'")[0])
    return found


def count(name, call):
    found = entered(call)
    print(f"{name:<24} {sum(map(len, found.values())):>4} functions in {len(found):>3} files")
    if "list" in sys.argv:
        for file in sorted(found):
            print(f"    {file}: {' '.join(sorted(found[file]))}")


def open_lock():
    return os.open(mount + "/lock", os.O_RDONLY | os.O_CREAT)


held = []
entered(lambda: None)
count("a stat of .dlockfs", lambda: None)
count("open of a new name", lambda: held.append(open_lock()))
count("first flock", lambda: fcntl.flock(held[0], fcntl.LOCK_EX))
count("its release", lambda: fcntl.flock(held[0], fcntl.LOCK_UN))
fcntl.flock(held[0], fcntl.LOCK_EX)
held.append(open_lock())
waiter = threading.Thread(target=fcntl.flock, args=(held[1], fcntl.LOCK_EX))
count("a flock that waits", waiter.start)


def hand_over():
    fcntl.flock(held[0], fcntl.LOCK_UN)
    waiter.join()


count("release and hand-over", hand_over)
count("close of the holder", lambda: os.close(held.pop()))
