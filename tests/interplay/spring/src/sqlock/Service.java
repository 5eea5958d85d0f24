package sqlock;

import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.ConcurrentModificationException;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.integration.util.UUIDConverter;

/**
 * A Spring service that is told on its standard input what to do:
 *
 *     THREAD VERB ARGUMENT...
 *
 * and answers "THREAD ANSWER", one line each.  Requests to one thread are
 * done in order, as Spring's locks belong to threads; threads run side by side.
 * PEER names a registry that `open` has made.
 *
 *     open PEER PREFIX REGION TTL_MS   its client id
 *     close PEER
 *     try PEER NAME WAIT_MS            true or false
 *     unlock PEER NAME                 ok, or lost
 *     renew PEER NAME                  ok, or lost
 *     expire PEER                      the repository's deleteExpired()
 *     forget PEER AGE_MS               the registry's expireUnusedOlderThan()
 *     turns PEER NAMES COUNT WHO FILE  takes turns at each of the locks, with
 *                                      commas between them, written down in
 *                                      the file; how many
 *     pace PEER IDLE_MS THINK_MS       from now on it sleeps so long between
 *                                      attempts, and after each of the turns
 *     stop PEER                        ends them sooner
 *     keys IN OUT                      of names in hexadecimal, one a line
 *     clock                            in ms
 */
public final class Service {
    private static final Map<String, ExecutorService> THREADS =
            new ConcurrentHashMap<>();
    private static final Map<String, Peer> PEERS = new ConcurrentHashMap<>();
    private static final PrintStream OUT =
            new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private Service() {
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        say("ready", JdbcLockRegistry.class.getPackage()
                .getImplementationVersion());
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            THREADS.computeIfAbsent(words[0],
                    name -> Executors.newSingleThreadExecutor())
                    .execute(() -> say(words[0], answer(words)));
        }
        System.exit(0);
    }

    private static synchronized void say(String thread, String text) {
        OUT.println(thread + " " + text);
    }

    private static String answer(String[] words) {
        try {
            return carryOut(words);
        } catch (Throwable e) {
            StringBuilder text = new StringBuilder("error");
            for (Throwable one = e; one != null; one = one.getCause()) {
                text.append(" ").append(one);
            }
            return text.toString().replaceAll("\\s+", " ");
        }
    }

    private static String carryOut(String[] words) throws Exception {
        switch (words[1]) {
        case "open":
            Peer made = new Peer(words[3], words[4],
                    Integer.parseInt(words[5]));
            PEERS.put(words[2], made);
            return made.client;
        case "keys":
            return writeKeys(Path.of(words[2]), Path.of(words[3]));
        case "clock":
            return Long.toString(System.currentTimeMillis());
        default:
            return carryOut(PEERS.get(words[2]), words);
        }
    }

    private static String carryOut(Peer peer, String[] words)
            throws Exception {
        switch (words[1]) {
        case "close":
            peer.close();
            return "ok";
        case "try":
            return Boolean.toString(peer.lock(words[3]).tryLock(
                    Long.parseLong(words[4]), TimeUnit.MILLISECONDS));
        case "unlock":
            return unlock(peer.lock(words[3]));
        case "renew":
            return renew(peer, words[3]);
        case "expire":
            peer.repository.deleteExpired();
            return "ok";
        case "forget":
            peer.registry.expireUnusedOlderThan(Long.parseLong(words[3]));
            return "ok";
        case "turns":
            return takeTurns(peer, words[3], Integer.parseInt(words[4]),
                    words[5], words[6]);
        case "pace":
            peer.registry.setIdleBetweenTries(
                    Duration.ofMillis(Long.parseLong(words[3])));
            peer.thinkMs = Long.parseLong(words[4]);
            return "ok";
        case "stop":
            peer.stopped = true;
            return "ok";
        default:
            throw new IllegalArgumentException("no such verb: " + words[1]);
        }
    }

    /** Spring says since 6.4 that somebody else has had the lock. */
    private static String unlock(Lock lock) {
        try {
            lock.unlock();
            return "ok";
        } catch (ConcurrentModificationException e) {
            return "lost";
        }
    }

    /** A lock that cannot be renewed is told as an IllegalStateException. */
    private static String renew(Peer peer, String name) {
        try {
            peer.registry.renewLock(name);
            return "ok";
        } catch (IllegalStateException e) {
            return "lost";
        }
    }

    /** One write() a line: the file has the lines in the order of events. */
    private static void note(OutputStream file, String line)
            throws IOException {
        file.write((line + "\n").getBytes(StandardCharsets.US_ASCII));
    }

    private static String takeTurns(Peer peer, String names, int count,
            String who, String path) throws Exception {
        String[] each = names.split(",");
        int taken = 0;

        peer.stopped = false;
        try (OutputStream file = new FileOutputStream(path, true)) {
            for (; taken < count && !peer.stopped; taken++) {
                int key = taken % each.length;
                Lock lock = peer.lock(each[key]);

                lock.lock();
                note(file, "enter " + who + " " + key + " 0 "
                        + System.nanoTime());
                Thread.sleep(2);
                note(file, "leave " + who + " " + key);
                lock.unlock();
                Thread.sleep(peer.thinkMs);
            }
        }
        return Integer.toString(taken);
    }

    private static String writeKeys(Path in, Path out) throws IOException {
        List<String> keys = new ArrayList<>();

        for (String line : Files.readAllLines(in)) {
            String name = new String(HexFormat.of().parseHex(line),
                    StandardCharsets.UTF_8);
            keys.add(UUIDConverter.getUUID(name).toString());
        }
        Files.write(out, keys);
        return Integer.toString(keys.size());
    }
}
