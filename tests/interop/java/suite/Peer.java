package suite;

import java.util.Iterator;
import java.util.List;

/** The broker that is tried, and in what it differs from others by design. */
final class Peer {
    final String url;
    /** ActiveMQ itself, which shows that the cases are right. */
    final boolean isActiveMq;
    /** One queue for the dead letters of all, instead of one for each. */
    final boolean sharesDeadLetters;
    /** Whether more urgent messages go ahead of others. */
    final boolean honoursPriorities;
    /** Whether there are durable subscriptions. */
    final boolean keepsDurables;

    private Peer(String url, boolean isActiveMq, boolean sharesDeadLetters, boolean honoursPriorities,
            boolean keepsDurables) {
        this.url = url;
        this.isActiveMq = isActiveMq;
        this.sharesDeadLetters = sharesDeadLetters;
        this.honoursPriorities = honoursPriorities;
        this.keepsDurables = keepsDurables;
    }

    /** Reads the command line; the cases that it names go to {@code names}. */
    static Peer read(String[] arguments, List<String> names) {
        String url = null;
        boolean isActiveMq = false;
        String deadLetters = null;
        String priorities = null;
        boolean keepsDurables = true;
        Iterator<String> rest = List.of(arguments).iterator();
        while (rest.hasNext()) {
            String argument = rest.next();
            if (argument.equals("--peer")) {
                isActiveMq = one(argument, rest, "corriere", "activemq").equals("activemq");
            } else if (argument.equals("--dead-letters")) {
                deadLetters = one(argument, rest, "individual", "shared");
            } else if (argument.equals("--priorities")) {
                priorities = one(argument, rest, "on", "off");
            } else if (argument.equals("--durables")) {
                keepsDurables = one(argument, rest, "on", "off").equals("on");
            } else if (argument.startsWith("--")) {
                throw new IllegalArgumentException(
                        "there is no option " + argument + "; there are --peer, --dead-letters, --priorities and --durables");
            } else if (url == null) {
                url = argument;
            } else {
                names.add(argument);
            }
        }
        if (url == null) {
            throw new IllegalArgumentException("give the URL of a broker, such as tcp://127.0.0.1:61616");
        }
        boolean shares = deadLetters == null ? isActiveMq : deadLetters.equals("shared");
        boolean honours = priorities == null ? !isActiveMq : priorities.equals("on");
        return new Peer(url, isActiveMq, shares, honours, keepsDurables);
    }

    private static String one(String option, Iterator<String> rest, String first, String second) {
        String value = rest.hasNext() ? rest.next() : "nothing";
        if (!value.equals(first) && !value.equals(second)) {
            throw new IllegalArgumentException(
                    option + " is followed by " + value + "; expected " + first + " or " + second);
        }
        return value;
    }

    /** Where the dead letters of a queue go. */
    String deadLettersOf(String queue) {
        return sharesDeadLetters ? "ActiveMQ.DLQ" : "DLQ." + queue;
    }
}
