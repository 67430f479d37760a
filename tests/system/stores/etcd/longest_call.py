"""longest_call.py DIRECTORY NUMBER STOP-FILE: takes and releases as many locks, each in a thread of its own, until the file is there.
Prints how many times, and how long the longest of these calls took in milliseconds."""
import fcntl, os, sys, threading, time

directory, number, stop = sys.argv[1], int(sys.argv[2]), sys.argv[3]
longest, times = [0.0] * number, [0] * number


def work(i):
    with open(f"{directory}/lock-{i}", "a") as lock:
        while not os.path.exists(stop):
            for call in fcntl.LOCK_EX, fcntl.LOCK_UN:
                began = time.monotonic()
                fcntl.flock(lock, call)
                longest[i] = max(longest[i], time.monotonic() - began)
            times[i] += 1
            time.sleep(0.01)


threads = [threading.Thread(target=work, args=(i,)) for i in range(number)]
for thread in threads:
    thread.start()
print("started", flush=True)
for thread in threads:
    thread.join()
print(sum(times), round(max(longest) * 1000), flush=True)
