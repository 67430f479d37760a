// SPDX-License-Identifier: Apache-2.0

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;

/**
 * JavaLeases HOST:PORT LEASES CLIENTS SECONDS: clients of Curator's InterProcessSemaphoreV2, threads of one connection,
 * which take a lease again and again. Prints "ready", waits for a line, and prints how often they had one.
 */
public class JavaLeases {
    private static final int TIMEOUT_MS = 30000;

    private JavaLeases() {}

    public static void main(String[] arguments) throws Exception {
        int leases = Integer.parseInt(arguments[1]);
        int clients = Integer.parseInt(arguments[2]);
        long seconds = Long.parseLong(arguments[3]);
        CuratorFramework connection = Connections.connect(arguments[0], TIMEOUT_MS);
        CountDownLatch go = new CountDownLatch(1);
        AtomicLong times = new AtomicLong();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < clients; i++) {
            InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(connection, "/java-leases", leases);
            threads.add(new Thread(() -> {
                try {
                    go.await();
                    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
                    while (System.nanoTime() < end) {
                        semaphore.returnLease(semaphore.acquire());
                        if (System.nanoTime() < end) {
                            times.incrementAndGet();
                        }
                    }
                } catch (Exception e) {
                    System.err.println("JavaLeases: " + e);
                    System.exit(1);
                }
            }));
        }
        threads.forEach(Thread::start);
        System.out.println("ready");
        System.in.read();
        go.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(times);
        System.exit(0);
    }
}
