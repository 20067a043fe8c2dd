package suite;

import static suite.Ground.checkDelivery;
import static suite.Ground.same;
import static suite.Ground.take;
import static suite.Ground.takeText;
import static suite.Ground.takeTexts;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.Connection;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.transport.TransportFilter;

/** When a message counts as consumed, and what becomes of one that does not. */
final class Acknowledging {
    private Acknowledging() {}

    static void addTo(Suite suite) {
        suite.add("auto_acknowledges_as_it_returns", Acknowledging::auto);
        suite.add("auto_acknowledges_behind_a_listener", Acknowledging::listener);
        suite.add("client_acknowledges_all_before", Acknowledging::client);
        suite.add("client_acknowledges_what_its_listener_takes", Acknowledging::clientListener);
        suite.add("recover_delivers_again", Acknowledging::recovers);
        suite.add("dups_ok_acknowledges_in_the_end", Acknowledging::dupsOk);
        suite.add("optimized_acknowledgement", Acknowledging::optimized);
        suite.add("optimized_acknowledgement_by_a_listener", Acknowledging::optimizedListener);
        suite.add("optimized_acknowledgement_of_a_topic", Acknowledging::optimizedTopic);
        suite.add("optimized_acknowledgement_by_its_timer", Acknowledging::optimizedTimer);
        suite.add("a_lazy_topic_whose_listener_fails_goes_on", Acknowledging::lazyTopic);
        suite.add("auto_acknowledges_by_priority", Acknowledging::byPriority);
        suite.add("individual_acknowledges_one", Acknowledging::individual);
        suite.add("many_unacknowledged_do_not_stop_a_consumer", Acknowledging::manyUnacknowledged);
        suite.add("close_gives_back_what_is_unacknowledged", Acknowledging::closes);
        suite.add("a_closed_consumer_gives_back_what_it_hoarded", Acknowledging::closesConsumer);
        suite.add("a_client_that_vanishes_loses_nothing", Acknowledging::vanishes);
    }

    private static MessageConsumer consumer(Session session, Ground ground) throws Exception {
        return session.createConsumer(session.createQueue(ground.name()));
    }

    private static void auto(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b", "c");
        Connection connection = ground.connect();
        MessageConsumer consumer =
                consumer(connection.createSession(false, Session.AUTO_ACKNOWLEDGE), ground);
        takeTexts(consumer, "a", "b");
        connection.close();
        List<Message> left = ground.drain(ground.name());
        same(1, left.size(), "what is left");
        same("c", Ground.text(left.get(0)), "what is left");
        checkDelivery(left.get(0), 1);
    }

    private static void listener(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b", "c");
        Connection connection = ground.connect();
        CountDownLatch seen = new CountDownLatch(3);
        consumer(connection.createSession(false, Session.AUTO_ACKNOWLEDGE), ground)
                .setMessageListener(message -> seen.countDown());
        Ground.check(seen.await(Ground.PATIENCE, TimeUnit.MILLISECONDS), "the listener was not called");
        connection.close();
        ground.checkEmpty(ground.name());
    }

    private static void client(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b", "c", "d");
        Connection connection = ground.connect();
        MessageConsumer consumer =
                consumer(connection.createSession(false, Session.CLIENT_ACKNOWLEDGE), ground);
        takeTexts(consumer, "a", "b");
        Message third = take(consumer);
        third.acknowledge();
        takeTexts(consumer, "d");
        connection.close();
        List<Message> left = ground.drain(ground.name());
        same(1, left.size(), "what is left");
        same("d", Ground.text(left.get(0)), "what is left");
        checkDelivery(left.get(0), 2);
    }

    private static void clientListener(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b", "c");
        Connection connection = ground.connect();
        CountDownLatch seen = new CountDownLatch(3);
        consumer(connection.createSession(false, Session.CLIENT_ACKNOWLEDGE), ground)
                .setMessageListener(message -> {
                    try {
                        message.acknowledge();
                        seen.countDown();
                    } catch (Exception error) {
                        error.printStackTrace();
                    }
                });
        Ground.check(seen.await(Ground.PATIENCE, TimeUnit.MILLISECONDS), "the listener was not called");
        connection.close();
        ground.checkEmpty(ground.name());
    }

    private static void recovers(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b", "c");
        String policy = "jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0";
        Session session = ground.connect(policy).createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = consumer(session, ground);
        for (int delivery = 1; delivery <= 3; delivery++) {
            for (String text : new String[] {"a", "b"}) {
                Message message = take(consumer);
                same(text, Ground.text(message), "delivery " + delivery);
                checkDelivery(message, delivery);
            }
            session.recover();
        }
        takeTexts(consumer, "a", "b");
        Message last = take(consumer);
        checkDelivery(last, 1);
        last.acknowledge();
        session.close();
        ground.checkEmpty(ground.name());
    }

    private static void dupsOk(Ground ground) throws Exception {
        String[] texts = numbered(60);
        ground.send(ground.name(), texts);
        Connection connection = ground.connect();
        takeTexts(consumer(connection.createSession(false, Session.DUPS_OK_ACKNOWLEDGE), ground), texts);
        connection.close();
        ground.checkEmpty(ground.name());
    }

    private static void optimized(Ground ground) throws Exception {
        String[] texts = numbered(200);
        ground.send(ground.name(), texts);
        Connection connection =
                ground.connect("jms.optimizeAcknowledge=true&jms.prefetchPolicy.queuePrefetch=20");
        takeTexts(consumer(connection.createSession(false, Session.AUTO_ACKNOWLEDGE), ground), texts);
        connection.close();
        ground.checkEmpty(ground.name());
    }

    private static final String OPTIMIZED = "jms.optimizeAcknowledge=true&jms.prefetchPolicy.all=20";

    private static void optimizedListener(Ground ground) throws Exception {
        String[] texts = numbered(100);
        ground.send(ground.name(), texts);
        Connection connection = ground.connect(OPTIMIZED);
        CountDownLatch seen = new CountDownLatch(texts.length);
        consumer(connection.createSession(false, Session.AUTO_ACKNOWLEDGE), ground)
                .setMessageListener(message -> seen.countDown());
        Ground.check(seen.await(Ground.PATIENCE, TimeUnit.MILLISECONDS), seen.getCount() + " never came");
        connection.close();
        ground.checkEmpty(ground.name());
    }

    private static void optimizedTopic(Ground ground) throws Exception {
        Session session = ground.connect(OPTIMIZED).createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createTopic(ground.name()));
        publish(ground, numbered(200));
        takeTexts(consumer, numbered(200));
    }

    /** What it has not said yet it says after a while by itself. */
    private static void optimizedTimer(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b", "c");
        ActiveMQConnection connection = (ActiveMQConnection)
                ground.connect(OPTIMIZED + "&jms.optimizedAckScheduledAckInterval=20");
        takeTexts(consumer(connection.createSession(false, Session.AUTO_ACKNOWLEDGE), ground), "a", "b", "c");
        Session session = ground.session();
        MessageConsumer other = consumer(session, ground);
        Ground.waitUntil("the three are settled", () -> ground.browse(ground.name()) == 0);
        connection.getTransport().narrow(TransportFilter.class).stop();
        ground.send(ground.name(), "d");
        takeTexts(other, "d");
    }

    private static void publish(Ground ground, String... texts) throws Exception {
        Session session = ground.session();
        MessageProducer producer = session.createProducer(session.createTopic(ground.name()));
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
    }

    /**
     * Of what it failed with the client says nothing, and does not count it. With each, ActiveMQ's window loses a place for good.
     */
    private static void lazyTopic(Ground ground) throws Exception {
        int count = ground.peer.isActiveMq ? 50 : 200;
        Session session = ground.connect("jms.prefetchPolicy.all=10")
                .createSession(false, Session.DUPS_OK_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createTopic(ground.name()));
        CountDownLatch seen = new CountDownLatch(count);
        consumer.setMessageListener(message -> {
            seen.countDown();
            if (seen.getCount() % 7 == 0) {
                throw new IllegalStateException("it fails with every seventh");
            }
        });
        publish(ground, numbered(count));
        Ground.check(seen.await(Ground.PATIENCE, TimeUnit.MILLISECONDS), seen.getCount() + " never came");
    }

    private static void byPriority(Ground ground) throws Exception {
        Session sending = ground.session();
        MessageProducer producer = sending.createProducer(sending.createQueue(ground.name()));
        String[] texts = numbered(60);
        for (int number = 0; number < texts.length; number++) {
            producer.setPriority(number % 10);
            producer.send(sending.createTextMessage(texts[number]));
        }
        Session session =
                ground.connect("jms.messagePrioritySupported=true&jms.prefetchPolicy.queuePrefetch=8")
                        .createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = consumer(session, ground);
        for (int number = 0; number < texts.length; number++) {
            take(consumer);
        }
        session.close();
        ground.checkEmpty(ground.name());
    }

    private static void individual(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b", "c");
        Connection connection = ground.connect();
        MessageConsumer consumer =
                consumer(connection.createSession(false, ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE), ground);
        takeTexts(consumer, "a");
        take(consumer).acknowledge();
        takeTexts(consumer, "c");
        connection.close();
        List<Message> left = ground.drain(ground.name());
        same(2, left.size(), "what is left");
        same("a", Ground.text(left.get(0)), "the first that is left");
        same("c", Ground.text(left.get(1)), "the second that is left");
        for (Message message : left) {
            checkDelivery(message, 2);
        }
    }

    /** The client says what it has handed out, so that more may come. */
    private static void manyUnacknowledged(Ground ground) throws Exception {
        String[] texts = numbered(100);
        ground.send(ground.name(), texts);
        Session session = ground.connect("jms.prefetchPolicy.queuePrefetch=10")
                .createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = consumer(session, ground);
        for (int number = 0; number < 99; number++) {
            same(texts[number], takeText(consumer), "the next text");
        }
        take(consumer).acknowledge();
        session.close();
        ground.checkEmpty(ground.name());
    }

    private static void closes(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b", "c", "d");
        Connection connection = ground.connect();
        takeTexts(consumer(connection.createSession(false, Session.CLIENT_ACKNOWLEDGE), ground), "a", "b");
        connection.close();
        List<Message> left = ground.drain(ground.name());
        StringBuilder order = new StringBuilder();
        for (Message message : left) {
            order.append(Ground.text(message)).append(message.getIntProperty("JMSXDeliveryCount"));
        }
        same("a2b2c1d1", order.toString(), "the texts that are left, each with its delivery");
    }

    private static void closesConsumer(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b", "c");
        Session session = ground.session();
        MessageConsumer hoarding = consumer(session, ground);
        takeTexts(hoarding, "a");
        MessageConsumer waiting = consumer(session, ground);
        hoarding.close();
        takeTexts(waiting, "b", "c");
    }

    private static void vanishes(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b", "c");
        ActiveMQConnection connection = (ActiveMQConnection) ground.connect();
        takeTexts(consumer(connection.createSession(false, Session.CLIENT_ACKNOWLEDGE), ground), "a", "b");
        Session session = ground.session();
        MessageConsumer other = consumer(session, ground);
        // The socket goes, without a word.
        connection.getTransport().narrow(TransportFilter.class).stop();
        takeTexts(other, "a", "b", "c");
    }

    static String[] numbered(int count) {
        String[] texts = new String[count];
        for (int number = 0; number < count; number++) {
            texts[number] = "number " + number;
        }
        return texts;
    }
}
