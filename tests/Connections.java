// SPDX-License-Identifier: Apache-2.0

import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

/** What the programs in Java that lock as others do have in common. */
class Connections {
    private static final int CONNECT_SECONDS = 30;

    private Connections() {}

    static CuratorFramework connect(String address, int timeoutMs) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(address, timeoutMs, timeoutMs, new RetryOneTime(100));
        client.start();
        if (!client.blockUntilConnected(CONNECT_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("cannot connect to " + address);
        }
        return client;
    }

    /** ZooKeeper's own recipe, which knows its claim by the session. `acquired` is released each time that it gets the lock. */
    static WriteLock recipe(CuratorFramework client, String path, Semaphore acquired) throws Exception {
        WriteLock lock = new WriteLock(client.getZookeeperClient().getZooKeeper(), path, ZooDefs.Ids.OPEN_ACL_UNSAFE);
        lock.setLockListener(new LockListener() {
            @Override
            public void lockAcquired() {
                acquired.release();
            }

            @Override
            public void lockReleased() {}
        });
        return lock;
    }
}
