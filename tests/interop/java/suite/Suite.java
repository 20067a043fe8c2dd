package suite;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * What ActiveMQ's own client may expect of a broker, case by case: one line for each, {@code ok NAME} or
 * {@code FAILED NAME: why}, and a status that is not zero when one failed.
 *
 * <p>Use: {@code java suite.Suite URL [--peer corriere|activemq] [--dead-letters individual|shared]
 * [--priorities on|off] [--durables on|off] [CASE...]}. The options say in what brokers differ by design; the cases assert it for each.
 */
public final class Suite {
    /** A case that takes longer hangs. */
    private static final long PATIENCE_SECONDS = 120;

    /** One thing that is expected of a broker. */
    interface Case {
        void run(Ground ground) throws Exception;
    }

    private final Map<String, Case> cases = new LinkedHashMap<>();

    private Suite() {
        Messages.addTo(this);
        Acknowledging.addTo(this);
        Modes.addTo(this);
        Transactions.addTo(this);
        Redelivery.addTo(this);
        Receiving.addTo(this);
        Temporary.addTo(this);
        Topics.addTo(this);
        Durables.addTo(this);
        Connections.addTo(this);
    }

    void add(String name, Case test) {
        if (cases.put(name, test) != null) {
            throw new IllegalArgumentException("two cases are named " + name);
        }
    }

    public static void main(String[] arguments) {
        List<String> names = new ArrayList<>();
        Peer peer;
        try {
            peer = Peer.read(arguments, names);
        } catch (IllegalArgumentException error) {
            System.err.println(error.getMessage());
            System.exit(2);
            return;
        }
        // Not the client's threads, of which a connection that hangs may leave some, decide when this ends.
        System.exit(new Suite().run(peer, names) ? 0 : 1);
    }

    private boolean run(Peer peer, List<String> names) {
        for (String name : names) {
            if (!cases.containsKey(name)) {
                System.err.println("there is no case " + name + "; there are " + cases.keySet());
                return false;
            }
        }
        boolean isWell = true;
        for (Map.Entry<String, Case> entry : cases.entrySet()) {
            if (names.isEmpty() || names.contains(entry.getKey())) {
                isWell &= run(entry.getKey(), entry.getValue(), peer);
            }
        }
        return isWell;
    }

    private static boolean run(String name, Case test, Peer peer) {
        FutureTask<Void> task = new FutureTask<>(() -> {
            try (Ground ground = new Ground(peer, name)) {
                test.run(ground);
            }
            return null;
        });
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        thread.start();
        try {
            task.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
            System.out.println("ok " + name);
            return true;
        } catch (ExecutionException error) {
            System.out.println("FAILED " + name + ": " + oneLine(error.getCause()));
            error.getCause().printStackTrace();
        } catch (TimeoutException error) {
            System.out.println("FAILED " + name + ": it still runs after " + PATIENCE_SECONDS + " s");
            for (StackTraceElement at : thread.getStackTrace()) {
                System.err.println("    at " + at);
            }
        } catch (InterruptedException error) {
            System.out.println("FAILED " + name + ": interrupted");
        }
        return false;
    }

    private static String oneLine(Throwable error) {
        String text = error instanceof Failure ? error.getMessage() : error.toString();
        return text.replace('\n', ' ');
    }
}
