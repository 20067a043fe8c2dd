package suite;

import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.Objects;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnectionFactory;

/** What a case stands on: connections to the broker, closed behind it, and names that no other case has. */
final class Ground implements AutoCloseable {
    /** How long something may take that must come. */
    static final long PATIENCE = 30_000;

    final Peer peer;
    private final String name;
    private final List<Connection> connections = new ArrayList<>();

    Ground(Peer peer, String name) {
        this.peer = peer;
        this.name = "suite." + name;
    }

    /** The name of this case's queue or topic. */
    String name() {
        return name;
    }

    String name(String more) {
        return name + "." + more;
    }

    /** A factory whose URL has these options, {@code "jms.useAsyncSend=true"}. */
    ActiveMQConnectionFactory factory(String options) {
        String url = peer.url;
        if (!options.isEmpty()) {
            url += (url.contains("?") ? "&" : "?") + options;
        }
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(url);
        factory.setTrustAllPackages(true);
        return factory;
    }

    /** A connection that is started. */
    Connection connect() throws JMSException {
        return connect("");
    }

    Connection connect(String options) throws JMSException {
        Connection connection = keep(factory(options).createConnection());
        connection.start();
        return connection;
    }

    /** A connection of this client that is started. */
    Connection connectAs(String clientId, String options) throws JMSException {
        Connection connection = keep(factory(options).createConnection());
        connection.setClientID(clientId);
        connection.start();
        return connection;
    }

    /** Where the broker keeps no durable subscriptions: that it says so, and that the connection goes on. */
    boolean refusesDurables() throws JMSException {
        if (peer.keepsDurables) {
            return false;
        }
        Session session = connectAs(name("client"), "").createSession(false, Session.AUTO_ACKNOWLEDGE);
        JMSException refused = fails(JMSException.class, "a durable subscription",
                () -> session.createDurableSubscriber(session.createTopic(name), "name"));
        check(refused.getMessage().contains("durable"), "it does not say why: " + refused.getMessage());
        fails(JMSException.class, "the end of a durable subscription", () -> session.unsubscribe("name"));
        send(name, "a");
        takeTexts(session.createConsumer(session.createQueue(name)), "a");
        return true;
    }

    /** The dead letter of this text in a queue of them, which may be shared with other cases' letters. */
    Message deadLetter(String queue, String text) throws JMSException {
        Session session = session();
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        Message letter = take(consumer);
        while (peer.sharesDeadLetters && !text.equals(text(letter))) {
            letter = take(consumer);
        }
        same(text, text(letter), "the dead letter");
        consumer.close();
        return letter;
    }

    /** Has a connection closed when the case ends. */
    <C extends Connection> C keep(C connection) {
        synchronized (connections) {
            connections.add(connection);
        }
        return connection;
    }

    Session session() throws JMSException {
        return connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    @Override
    public void close() {
        for (Connection connection : connections) {
            try {
                connection.close();
            } catch (JMSException error) {
                // Of one that is broken already, which the case has seen if it matters.
            }
        }
    }

    /** Sends texts to a queue, in their order, and returns when the broker has them. */
    void send(String queue, String... texts) throws JMSException {
        Connection connection = factory("").createConnection();
        try {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageProducer producer = session.createProducer(session.createQueue(queue));
            for (String text : texts) {
                producer.send(session.createTextMessage(text));
            }
        } finally {
            connection.close();
        }
    }

    /**
     * Takes all that a queue has; each message is pulled, so the answer that there is none more is sure. But for ActiveMQ, which
     * may answer so while it still brings messages into its memory: it is given time.
     */
    List<Message> drain(String queue) throws JMSException {
        Connection connection = factory("").createConnection();
        try {
            connection.start();
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageConsumer consumer = session.createConsumer(pulled(session, queue));
            List<Message> messages = new ArrayList<>();
            Message next;
            do {
                next = peer.isActiveMq ? consumer.receive(1_000) : consumer.receiveNoWait();
                if (next != null) {
                    messages.add(next);
                }
            } while (next != null);
            return messages;
        } finally {
            connection.close();
        }
    }

    /** How many messages a queue has, with consumers too. */
    int browse(String queue) throws JMSException {
        Session session = session();
        int count = 0;
        QueueBrowser browser = session.createBrowser(session.createQueue(queue));
        Enumeration<?> messages = browser.getEnumeration();
        while (messages.hasMoreElements()) {
            messages.nextElement();
            count++;
        }
        browser.close();
        session.close();
        return count;
    }

    /** Something that may be so. */
    interface Condition {
        boolean holds() throws Exception;
    }

    /** Waits for something that must come. */
    static void waitUntil(String what, Condition condition) throws Exception {
        long deadline = System.nanoTime() + PATIENCE * 1_000_000;
        while (!condition.holds()) {
            check(System.nanoTime() < deadline, what + " did not come within " + PATIENCE + " ms");
            Thread.sleep(10);
        }
    }

    /** Checks that nothing is left in a queue that a consumer could get. */
    void checkEmpty(String queue) throws JMSException {
        List<Message> left = drain(queue);
        same(0, left.size(), "messages left in " + queue + ", such as " + left.stream().findFirst());
    }

    /** A queue that consumers hoard nothing of. */
    static Queue pulled(Session session, String queue) throws JMSException {
        return session.createQueue(queue + "?consumer.prefetchSize=0");
    }

    /** The next message, which must come. */
    static Message take(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receive(PATIENCE);
        check(message != null, "no message came within " + PATIENCE + " ms");
        return message;
    }

    static String text(Message message) throws JMSException {
        check(message instanceof TextMessage, "expected a text, not " + message);
        return ((TextMessage) message).getText();
    }

    static String takeText(MessageConsumer consumer) throws JMSException {
        return text(take(consumer));
    }

    /** Takes texts and checks that they are these, in this order. */
    static void takeTexts(MessageConsumer consumer, String... texts) throws JMSException {
        for (String text : texts) {
            same(text, takeText(consumer), "the next text");
        }
    }

    /** Checks how often a message was delivered, this time included, and whether it says so. */
    static void checkDelivery(Message message, int number) throws JMSException {
        same(number, message.getIntProperty("JMSXDeliveryCount"), "JMSXDeliveryCount of " + text(message));
        same(number > 1, message.getJMSRedelivered(), "JMSRedelivered of " + text(message));
    }

    static void check(boolean condition, String otherwise) {
        if (!condition) {
            throw new Failure(otherwise);
        }
    }

    static void same(Object expected, Object found, String what) {
        if (!Objects.deepEquals(expected, found)) {
            throw new Failure(what + " is " + found + "; expected " + expected);
        }
    }

    /** A call of the client. */
    interface Call {
        void make() throws Exception;
    }

    /** Checks that a call fails with this exception, and returns it. */
    static <E extends Exception> E fails(Class<E> expected, String what, Call call) {
        try {
            call.make();
        } catch (Exception error) {
            if (expected.isInstance(error)) {
                return expected.cast(error);
            }
            throw new Failure(what + " failed with " + error + "; expected " + expected.getName(), error);
        }
        throw new Failure(what + " did not fail; expected " + expected.getName());
    }
}
