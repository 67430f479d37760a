// SPDX-License-Identifier: Apache-2.0

import java.io.File;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.EphemeralType;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;

/**
 * Numbers DATA_FOLDER PATH=NUMBER...: makes containers in the data of a server that does not run, with their parents, whose
 * next children get these numbers.
 */
class Numbers {
    private Numbers() {}

    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]);
        FileTxnSnapLog log = new FileTxnSnapLog(folder, folder);
        DataTree tree = new DataTree();
        ConcurrentHashMap<Long, Integer> sessions = new ConcurrentHashMap<>();
        long zxid = log.restore(tree, sessions, (header, transaction, digest) -> {});
        for (int i = 1; i < arguments.length; i++) {
            String path = arguments[i].substring(0, arguments[i].indexOf('='));
            int number = Integer.parseInt(arguments[i].substring(path.length() + 1));
            for (int end = path.indexOf('/', 1); end != -1; end = path.indexOf('/', end + 1)) {
                make(tree, path.substring(0, end), end == path.indexOf('/', 1), zxid);
            }
            make(tree, path, false, zxid);
            tree.setCversionPzxid(path, number, zxid);
        }
        log.save(tree, sessions, true);
        log.close();
    }

    private static void make(DataTree tree, String path, boolean root, long zxid) throws Exception {
        if (tree.getNode(path) == null) {
            tree.createNode(path, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE,
                    root ? 0 : EphemeralType.CONTAINER_EPHEMERAL_OWNER, -1, zxid, System.currentTimeMillis());
        }
    }
}
