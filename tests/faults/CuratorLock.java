// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;

/**
 * CuratorLock HOST:PORT,... TIMEOUT_MS: takes locks for locks.py, by Curator's InterProcessMutex. Reads lines `acquire NAME` and
 * `release`, answers each with `ok` or what went wrong, and says `ok` when it is connected; `told STATE` comes when the connection is suspended or lost while a lock is held.
 */
public class CuratorLock {
    private final CuratorFramework client;
    private InterProcessMutex mutex;
    private boolean held;
    private String state = "";

    CuratorLock(CuratorFramework client) {
        this.client = client;
        client.getConnectionStateListenable().addListener((changed, now) -> onState(now));
    }

    private synchronized void onState(ConnectionState now) {
        state = now == ConnectionState.SUSPENDED || now == ConnectionState.LOST ? now.toString() : "";
        if (held && !state.isEmpty()) {
            held = false;
            System.out.println("told " + state);
        }
    }

    private synchronized void granted() {
        System.out.println("ok");
        held = true;
        if (!state.isEmpty()) {
            held = false;
            System.out.println("told " + state);
        }
    }

    private synchronized void notHeld() {
        held = false;
    }

    void carryOut(String[] words) throws Exception {
        if (words[0].equals("acquire")) {
            mutex = new InterProcessMutex(client, "/curator/" + words[1]);
            mutex.acquire();
            granted();
        } else {
            notHeld();
            mutex.release();
            System.out.println("ok");
        }
    }

    public static void main(String[] arguments) throws Exception {
        CuratorLock lock = new CuratorLock(Connections.connect(arguments[0], Integer.parseInt(arguments[1])));
        System.out.println("ok");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            try {
                lock.carryOut(line.split(" "));
            } catch (Exception e) {
                System.out.println("failed " + e);
            }
        }
        System.exit(0);
    }
}
