package suite;

import static suite.Ground.check;
import static suite.Ground.checkDelivery;
import static suite.Ground.same;
import static suite.Ground.take;
import static suite.Ground.text;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQSession;

/**
 * Each mode of acknowledgement, with each way to receive, from each kind of destination: of seven messages five are settled, by
 * whoever settles, and the connection is closed.
 */
final class Modes {
    private static final String[] TEXTS = {"m1", "m2", "m3", "m4", "m5", "m6", "m7"};
    private static final int SETTLED = 5;
    /** A window that is smaller than what is not settled, so that the client has to say what it has handed out. */
    private static final String WINDOW = "jms.prefetchPolicy.all=4";

    /** Who settles, and when. */
    enum Mode {
        AUTO(Session.AUTO_ACKNOWLEDGE),
        CLIENT(Session.CLIENT_ACKNOWLEDGE),
        DUPS_OK(Session.DUPS_OK_ACKNOWLEDGE),
        INDIVIDUAL(ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE),
        TRANSACTED(Session.SESSION_TRANSACTED);

        private final int number;

        Mode(int number) {
            this.number = number;
        }

        Session open(Connection connection) throws JMSException {
            return connection.createSession(this == TRANSACTED, number);
        }

        boolean settlesByItself() {
            return this == AUTO || this == DUPS_OK;
        }

        /** Settles all up to the last of the messages that are to be settled. */
        void settle(Session session, Message message, int count) throws JMSException {
            if (this == INDIVIDUAL && count <= SETTLED || this == CLIENT && count == SETTLED) {
                message.acknowledge();
            } else if (this == TRANSACTED && count == SETTLED) {
                session.commit();
            }
        }
    }

    /** From where. */
    enum Kind {
        QUEUE, TOPIC, DURABLE
    }

    private Modes() {}

    static void addTo(Suite suite) {
        for (Mode mode : Mode.values()) {
            for (Kind kind : Kind.values()) {
                String where = "_from_a_" + kind.name().toLowerCase(Locale.ROOT);
                String how = mode.name().toLowerCase(Locale.ROOT);
                suite.add(how + "_receive" + where, ground -> settles(ground, mode, kind, false));
                suite.add(how + "_listener" + where, ground -> settles(ground, mode, kind, true));
            }
        }
    }

    private static Connection connect(Ground ground, Kind kind) throws JMSException {
        return kind == Kind.DURABLE ? ground.connectAs(ground.name("client"), WINDOW) : ground.connect(WINDOW);
    }

    private static MessageConsumer consumer(Ground ground, Session session, Kind kind) throws JMSException {
        switch (kind) {
            case QUEUE:
                return session.createConsumer(session.createQueue(ground.name()));
            case TOPIC:
                return session.createConsumer(session.createTopic(ground.name()));
            default:
                return session.createDurableSubscriber(session.createTopic(ground.name()), "name");
        }
    }

    private static void settles(Ground ground, Mode mode, Kind kind, boolean listens) throws Exception {
        if (kind == Kind.DURABLE && ground.refusesDurables()) {
            return;
        }
        Connection connection = connect(ground, kind);
        Session session = mode.open(connection);
        MessageConsumer consumer = consumer(ground, session, kind);
        Session sending = ground.session();
        MessageProducer producer = sending.createProducer(
                kind == Kind.QUEUE ? sending.createQueue(ground.name()) : sending.createTopic(ground.name()));
        for (String text : TEXTS) {
            producer.send(sending.createTextMessage(text));
        }
        List<String> taken = listens ? listen(mode, session, consumer) : receive(mode, session, consumer);
        same(List.of(TEXTS), taken, "what came");
        connection.close();
        if (kind == Kind.TOPIC) {
            return;
        }
        int left = mode.settlesByItself() ? 0 : TEXTS.length - SETTLED;
        connection = connect(ground, kind);
        session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        consumer = consumer(ground, session, kind);
        // What comes behind all that was left shows that nothing else was.
        producer.send(sending.createTextMessage("last"));
        for (int number = TEXTS.length - left; number < TEXTS.length; number++) {
            Message message = take(consumer);
            same(TEXTS[number], text(message), "what was left");
            checkDelivery(message, 2);
        }
        Message last = take(consumer);
        same("last", text(last), "what is behind what was left");
        checkDelivery(last, 1);
        last.acknowledge();
        consumer.close();
        if (kind == Kind.DURABLE) {
            session.unsubscribe("name");
        }
        connection.close();
    }

    private static List<String> receive(Mode mode, Session session, MessageConsumer consumer) throws Exception {
        List<String> taken = new ArrayList<>();
        for (int count = 1; count <= TEXTS.length; count++) {
            Message message = take(consumer);
            taken.add(text(message));
            mode.settle(session, message, count);
        }
        return taken;
    }

    private static List<String> listen(Mode mode, Session session, MessageConsumer consumer) throws Exception {
        List<String> taken = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch all = new CountDownLatch(TEXTS.length);
        consumer.setMessageListener(message -> {
            try {
                taken.add(text(message));
                mode.settle(session, message, taken.size());
            } catch (Exception error) {
                error.printStackTrace();
            }
            all.countDown();
        });
        check(all.await(Ground.PATIENCE, TimeUnit.MILLISECONDS), "only these came: " + taken);
        return new ArrayList<>(taken);
    }
}
