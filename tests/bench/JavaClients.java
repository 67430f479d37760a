// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.zookeeper.recipes.lock.WriteLock;

/**
 * JavaClients HOST:PORT mutex|rw|recipe: a driver (driver.py) for Curator's InterProcessMutex and
 * InterProcessReadWriteLock, and for the lock recipe that comes with ZooKeeper. Each client is a thread. With locks
 * of their own, and in a queue, they share one connection, as threads of one program do; else each has one of its own,
 * as programs do.
 */
public class JavaClients {
    private static final int TIMEOUT_MS = 30000;

    interface Lock {
        boolean acquire(boolean shared, long waitMs) throws Exception;

        void release() throws Exception;

        /** How many claims stand for the lock. */
        int claims() throws Exception;
    }

    record Record(int client, char kind, long asked, long granted, long releasing, long released) {}

    interface Work {
        void run(Order order, int client, Lock lock, List<Record> records) throws Exception;
    }

    static class Order {
        final String verb;
        private final Map<String, Long> numbers = new HashMap<>();

        Order(String line) {
            String[] words = line.split(" ");
            verb = words[0];
            for (int i = 1; i < words.length; i++) {
                String[] pair = words[i].split("=");
                numbers.put(pair[0], Long.parseLong(pair[1]));
            }
        }

        long number(String key, long otherwise) {
            return numbers.getOrDefault(key, otherwise);
        }
    }

    static class CuratorLock implements Lock {
        private final InterProcessLock exclusive;
        private final InterProcessLock shared;
        private final CuratorFramework client;
        private final String path;
        private InterProcessLock held;

        CuratorLock(CuratorFramework client, String kind, String path) {
            this.client = client;
            this.path = path;
            if (kind.equals("mutex")) {
                exclusive = shared = new InterProcessMutex(client, path);
            } else {
                InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
                exclusive = both.writeLock();
                shared = both.readLock();
            }
        }

        @Override
        public boolean acquire(boolean isShared, long waitMs) throws Exception {
            held = isShared ? shared : exclusive;
            if (waitMs > 0) {
                return held.acquire(waitMs, TimeUnit.MILLISECONDS);
            }
            held.acquire();
            return true;
        }

        @Override
        public void release() throws Exception {
            held.release();
        }

        @Override
        public int claims() throws Exception {
            return client.getChildren().forPath(path).size();
        }
    }

    /** It knows a claim by its session, so it needs a session for each client. */
    static class RecipeLock implements Lock {
        private final WriteLock lock;
        private final Semaphore acquired = new Semaphore(0);

        RecipeLock(CuratorFramework client, String path) throws Exception {
            client.createContainers(path);
            lock = Connections.recipe(client, path, acquired);
        }

        @Override
        public boolean acquire(boolean shared, long waitMs) throws Exception {
            lock.lock();
            acquired.acquire();
            return true;
        }

        @Override
        public void release() {
            lock.unlock();
        }

        @Override
        public int claims() {
            throw new UnsupportedOperationException();
        }
    }

    private final String address;
    private final String kind;
    private final List<CuratorFramework> connections = new ArrayList<>();

    JavaClients(String address, String kind) {
        this.address = address;
        this.kind = kind;
    }

    static long nowUs() {
        return System.nanoTime() / 1000; // CLOCK_MONOTONIC
    }

    CuratorFramework connection(int number) throws Exception {
        while (connections.size() <= number) {
            connections.add(Connections.connect(address, TIMEOUT_MS));
        }
        return connections.get(number);
    }

    Lock lock(int connection, String name) throws Exception {
        String path = "/java-" + kind + "/" + name;
        return kind.equals("recipe")
                ? new RecipeLock(connection(connection), path)
                : new CuratorLock(connection(connection), kind, path);
    }

    static void cycle(Order order, int client, Lock lock, Random random, List<Record> records) throws Exception {
        boolean shared = random.nextInt(100) < order.number("shared", 0);
        long asked = nowUs();
        if (!lock.acquire(shared, order.number("wait_ms", 0))) {
            long now = nowUs();
            records.add(new Record(client, 't', asked, now, now, now));
            return;
        }
        long granted = nowUs();
        if (order.verb.equals("run")) {
            TimeUnit.MICROSECONDS.sleep(order.number("hold_us", 0));
        }
        long releasing = nowUs();
        lock.release();
        records.add(new Record(client, shared ? 's' : 'x', asked, granted, releasing, nowUs()));
    }

    static void runClient(Order order, int client, Lock lock, List<Record> records) throws Exception {
        Random random = new Random(client);
        long end = nowUs() + order.number("seconds_ms", 1000) * 1000;
        long cycles = order.number("cycles", 1000);
        while (records.size() < cycles && nowUs() < end) {
            cycle(order, client, lock, random, records);
        }
    }

    static void queueClient(Order order, int client, Lock lock, List<Record> records) throws Exception {
        cycle(order, client, lock, new Random(client), records);
    }

    /** The clients of an order, which begin when `go` is counted down. */
    class Job {
        final CountDownLatch go = new CountDownLatch(1);
        private final List<List<Record>> records = new ArrayList<>();
        private final List<Thread> threads = new ArrayList<>();

        Job(Order order, boolean share, Work work) throws Exception {
            for (int i = 0; i < order.number("clients", 1); i++) {
                int number = i;
                List<Record> own = new ArrayList<>();
                Lock lock = lock(share ? 0 : i, order.number("own", 0) != 0 ? "own" + i : "job");
                records.add(own);
                threads.add(new Thread(() -> {
                    try {
                        go.await();
                        work.run(order, number, lock, own);
                    } catch (Exception e) {
                        fail(e);
                    }
                }));
            }
            threads.forEach(Thread::start);
        }

        void finish() throws InterruptedException {
            StringBuilder text = new StringBuilder();
            for (Thread thread : threads) {
                thread.join();
            }
            for (List<Record> own : records) {
                for (Record r : own) {
                    text.append(String.format("%d %c %d %d %d %d\n", r.client, r.kind, r.asked, r.granted, r.releasing,
                            r.released));
                }
            }
            System.out.println(text);
        }
    }

    void carryOut(Order order) throws Exception {
        if (order.verb.equals("run")) {
            Job job = new Job(order, order.number("own", 0) != 0 && !kind.equals("recipe"), JavaClients::runClient);
            job.go.countDown();
            job.finish();
            return;
        }
        Lock first = lock(0, "job");
        long clients = order.number("clients", 1);
        first.acquire(false, 0);
        Job job = new Job(order, true, JavaClients::queueClient);
        job.go.countDown();
        while (first.claims() < clients + 1) {
            Thread.sleep(10);
        }
        TimeUnit.MICROSECONDS.sleep(order.number("hold_us", 0));
        first.release();
        job.finish();
    }

    static void fail(Exception e) {
        System.err.println("JavaClients: " + e);
        System.exit(1);
    }

    public static void main(String[] arguments) throws Exception {
        JavaClients clients = new JavaClients(arguments[0], arguments[1]);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            clients.carryOut(new Order(line));
        }
        System.exit(0);
    }
}
