// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.zookeeper.recipes.lock.WriteLock;

/**
 * OtherClients HOST:PORT TIMEOUT_MS: holds locks of Curator (mutex, write, read, semaphore; one of two leases: lease) and
 * of ZooKeeper's own recipe (recipe), as it is told line by line:
 *
 * <pre>
 * take ID KIND PATH               "ID held" when it is
 * try ID KIND PATH                "ID held" or "ID refused"
 * read ID                         takes the read lock of the write lock that it holds: "ID reads"
 * release ID                      "ID released"; what was taken by read stays
 * count ID KIND PATH FILE TIMES   increments the number in a file so often, each time under the lock: "ID counted"
 * crowd ID lease PATH FOLDER TIMES   is in the folder so often, with no more than one other: "ID crowded"
 * look ID KIND PATH FILE TIMES    reads it so often, twice each time under the lock, and it is the same: "ID looked"
 * </pre>
 *
 * Each id is a thread of its own. An error is "ID failed: WHY".
 */
public class OtherClients {
    /** How long a try waits, as Curator cannot but wait. */
    private static final int TRY_MS = 20;

    private static final int LEASES = 2;

    /** ZooKeeper's recipe in the form of Curator's. It knows its claim by the session, so each has its own. */
    static class RecipeLock implements InterProcessLock {
        private final CuratorFramework session;
        private final WriteLock lock;
        private final Semaphore acquired = new Semaphore(0);

        RecipeLock(String address, int timeoutMs, String path) throws Exception {
            session = Connections.connect(address, timeoutMs);
            lock = Connections.recipe(session, path, acquired);
        }

        /** It waits in vain for a claim that goes between its list and its watch: so it is asked again. */
        @Override
        public void acquire() throws Exception {
            do {
                lock.lock();
            } while (!acquired.tryAcquire(200, TimeUnit.MILLISECONDS));
        }

        @Override
        public boolean acquire(long time, TimeUnit unit) throws Exception {
            lock.lock();
            if (acquired.tryAcquire(time, unit)) {
                return true;
            }
            release();
            return false;
        }

        /** Its watches would make it ask again. */
        @Override
        public void release() throws Exception {
            lock.unlock();
            lock.close();
            session.close();
        }

        @Override
        public boolean isAcquiredInThisProcess() {
            return lock.isOwner();
        }
    }

    /** A lease of InterProcessSemaphoreV2 in the form of a lock. */
    static class LeaseLock implements InterProcessLock {
        private final InterProcessSemaphoreV2 semaphore;
        private Lease lease;

        LeaseLock(CuratorFramework client, String path) {
            semaphore = new InterProcessSemaphoreV2(client, path, LEASES);
        }

        @Override
        public void acquire() throws Exception {
            lease = semaphore.acquire();
        }

        @Override
        public boolean acquire(long time, TimeUnit unit) throws Exception {
            lease = semaphore.acquire(time, unit);
            return lease != null;
        }

        @Override
        public void release() throws Exception {
            semaphore.returnLease(lease);
            lease = null;
        }

        @Override
        public boolean isAcquiredInThisProcess() {
            return lease != null;
        }
    }

    private final String address;
    private final int timeoutMs;
    private final CuratorFramework client;
    private final Map<String, ExecutorService> threads = new HashMap<>();
    private final Map<String, InterProcessLock> held = new HashMap<>();
    private final Map<String, InterProcessReadWriteLock> pairs = new HashMap<>();

    OtherClients(String address, int timeoutMs) throws Exception {
        this.address = address;
        this.timeoutMs = timeoutMs;
        client = Connections.connect(address, timeoutMs);
    }

    InterProcessLock lock(String id, String kind, String path) throws Exception {
        switch (kind) {
            case "mutex":
                return new InterProcessMutex(client, path);
            case "semaphore":
                return new InterProcessSemaphoreMutex(client, path);
            case "lease":
                return new LeaseLock(client, path);
            case "recipe":
                return new RecipeLock(address, timeoutMs, path);
            case "write":
            case "read":
                InterProcessReadWriteLock pair = new InterProcessReadWriteLock(client, path);
                synchronized (this) {
                    pairs.put(id, pair);
                }
                return kind.equals("write") ? pair.writeLock() : pair.readLock();
            default:
                throw new IllegalArgumentException("no such kind: " + kind);
        }
    }

    synchronized InterProcessLock swapHeld(String id, InterProcessLock lock) {
        return lock != null ? held.put(id, lock) : held.remove(id);
    }

    synchronized InterProcessReadWriteLock pair(String id) {
        return pairs.get(id);
    }

    static void increment(Path file) throws Exception {
        int number = Integer.parseInt(Files.readString(file).strip());
        Files.writeString(file, number + 1 + "\n");
    }

    static void look(Path file) throws Exception {
        int number = Integer.parseInt(Files.readString(file).strip());
        Thread.sleep(1);
        if (Integer.parseInt(Files.readString(file).strip()) != number) {
            throw new IllegalStateException("changed beside a reader");
        }
    }

    static void crowd(Path folder, String name) throws Exception {
        Path own = Files.createFile(folder.resolve(name));
        try (Stream<Path> all = Files.list(folder)) {
            if (all.count() > LEASES) {
                throw new IllegalStateException("too many");
            }
        }
        Thread.sleep(1);
        Files.delete(own);
    }

    String carryOut(String[] words) throws Exception {
        String id = words[1];
        switch (words[0]) {
            case "take": {
                InterProcessLock lock = lock(id, words[2], words[3]);
                lock.acquire();
                swapHeld(id, lock);
                return "held";
            }
            case "try": {
                InterProcessLock lock = lock(id, words[2], words[3]);
                if (!lock.acquire(TRY_MS, TimeUnit.MILLISECONDS)) {
                    return "refused";
                }
                swapHeld(id, lock);
                return "held";
            }
            case "read":
                pair(id).readLock().acquire();
                return "reads";
            case "release":
                swapHeld(id, null).release();
                return "released";
            case "count":
            case "crowd":
            case "look":
                for (int i = 0; i < Integer.parseInt(words[5]); i++) {
                    InterProcessLock lock = lock(id, words[2], words[3]);
                    lock.acquire();
                    if (words[0].equals("count")) {
                        increment(Path.of(words[4]));
                    } else if (words[0].equals("crowd")) {
                        crowd(Path.of(words[4]), id);
                    } else {
                        look(Path.of(words[4]));
                    }
                    lock.release();
                }
                return words[0] + "ed";
            default:
                throw new IllegalArgumentException("no such verb");
        }
    }

    void hear(String line) {
        String[] words = line.split(" ");
        threads.computeIfAbsent(words[1], id -> Executors.newSingleThreadExecutor()).execute(() -> {
            String answer;
            try {
                answer = carryOut(words);
            } catch (Exception e) {
                answer = "failed: " + e;
            }
            System.out.println(words[1] + " " + answer);
        });
    }

    public static void main(String[] arguments) throws Exception {
        OtherClients clients = new OtherClients(arguments[0], Integer.parseInt(arguments[1]));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            clients.hear(line);
        }
        System.exit(0);
    }
}
