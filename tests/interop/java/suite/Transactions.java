package suite;

import static suite.Ground.check;
import static suite.Ground.checkDelivery;
import static suite.Ground.same;
import static suite.Ground.take;
import static suite.Ground.takeTexts;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;

/** What a session does in a transaction takes effect as one, or not at all. */
final class Transactions {
    private static final String AT_ONCE =
            "jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0";

    private Transactions() {}

    static void addTo(Suite suite) {
        suite.add("commit_shows_all_that_was_sent", Transactions::commitsSends);
        suite.add("rollback_undoes_all_that_was_sent", Transactions::rollsSendsBack);
        suite.add("commit_settles_all_that_was_taken", Transactions::commitsReceives);
        suite.add("rollback_delivers_again_in_order", Transactions::rollsReceivesBack);
        suite.add("take_and_send_are_one", Transactions::takesAndSends);
        suite.add("close_within_a_transaction_is_a_rollback", Transactions::closes);
        suite.add("a_long_transaction", Transactions::isLong);
        suite.add("more_than_the_prefetch_in_one_transaction", Transactions::beyondPrefetch);
        suite.add("a_transaction_over_several_destinations", Transactions::overSeveral);
        suite.add("a_consumer_closed_within_a_transaction", Transactions::closesConsumer);
        suite.add("a_listener_that_sends_on_in_its_transaction", Transactions::listens);
        suite.add("transactions_by_priority", Transactions::byPriority);
    }

    private static void commitsSends(Ground ground) throws Exception {
        Session session = ground.connect().createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(session.createQueue(ground.name()));
        producer.send(session.createTextMessage("a"));
        producer.send(session.createTextMessage("b"));
        ground.checkEmpty(ground.name());
        session.commit();
        producer.send(session.createTextMessage("c"));
        same(2, ground.drain(ground.name()).size(), "what was committed");
        session.commit();
        same(1, ground.drain(ground.name()).size(), "what was committed later");
    }

    private static void rollsSendsBack(Ground ground) throws Exception {
        Session session = ground.connect().createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(session.createQueue(ground.name()));
        producer.send(session.createTextMessage("a"));
        session.rollback();
        producer.send(session.createTextMessage("b"));
        session.commit();
        takeTexts(session.createConsumer(session.createQueue(ground.name())), "b");
        session.commit();
        ground.checkEmpty(ground.name());
    }

    private static void commitsReceives(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b", "c");
        Connection connection = ground.connect();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        takeTexts(session.createConsumer(session.createQueue(ground.name())), "a", "b");
        session.commit();
        connection.close();
        same(1, ground.drain(ground.name()).size(), "what is left");
    }

    private static void rollsReceivesBack(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b", "c", "d");
        Session session = ground.connect(AT_ONCE).createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        for (int delivery = 1; delivery <= 3; delivery++) {
            for (String text : new String[] {"a", "b", "c"}) {
                Message message = take(consumer);
                same(text, Ground.text(message), "delivery " + delivery);
                checkDelivery(message, delivery);
            }
            session.rollback();
        }
        takeTexts(consumer, "a", "b", "c", "d");
        session.commit();
        session.close();
        ground.checkEmpty(ground.name());
    }

    private static void takesAndSends(Ground ground) throws Exception {
        String out = ground.name("out");
        ground.send(ground.name(), "in");
        Session session = ground.connect(AT_ONCE).createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        MessageProducer producer = session.createProducer(session.createQueue(out));
        for (boolean commit : new boolean[] {false, true}) {
            takeTexts(consumer, "in");
            producer.send(session.createTextMessage("out"));
            ground.checkEmpty(out);
            if (commit) {
                session.commit();
            } else {
                session.rollback();
            }
        }
        session.close();
        same(1, ground.drain(out).size(), "what was sent on");
        ground.checkEmpty(ground.name());
    }

    private static void closes(Ground ground) throws Exception {
        ground.send(ground.name(), "a");
        Connection connection = ground.connect();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        takeTexts(session.createConsumer(session.createQueue(ground.name())), "a");
        session.createProducer(session.createQueue(ground.name("out"))).send(session.createTextMessage("b"));
        connection.close();
        same(1, ground.drain(ground.name()).size(), "what was given back");
        ground.checkEmpty(ground.name("out"));
    }

    private static void isLong(Ground ground) throws Exception {
        // ActiveMQ hands out the first 200 of a transaction at once, and the others when its timer wakes it, in 30 s.
        String[] texts = Acknowledging.numbered(ground.peer.isActiveMq ? 200 : 2_000);
        Session session = ground.connect().createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(session.createQueue(ground.name()));
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        session.commit();
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        takeTexts(consumer, texts);
        session.commit();
        session.close();
        ground.checkEmpty(ground.name());
    }

    private static void beyondPrefetch(Ground ground) throws Exception {
        String[] texts = Acknowledging.numbered(100);
        ground.send(ground.name(), texts);
        Session session = ground.connect("jms.prefetchPolicy.queuePrefetch=5")
                .createSession(true, Session.SESSION_TRANSACTED);
        takeTexts(session.createConsumer(session.createQueue(ground.name())), texts);
        session.commit();
        session.close();
        ground.checkEmpty(ground.name());
    }

    /** Two queues and a topic, taken from and sent to, as one. */
    private static void overSeveral(Ground ground) throws Exception {
        String second = ground.name("second");
        String out = ground.name("out");
        ground.send(ground.name(), "a1", "a2");
        ground.send(second, "b1", "b2");
        Session listening = ground.session();
        MessageConsumer published = listening.createConsumer(listening.createTopic(out));
        Session session = ground.connect(AT_ONCE).createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer one = session.createConsumer(session.createQueue(ground.name()));
        MessageConsumer other = session.createConsumer(session.createQueue(second));
        MessageProducer producer = session.createProducer(null);
        for (boolean commit : new boolean[] {false, true}) {
            takeTexts(one, "a1");
            takeTexts(other, "b1", "b2");
            producer.send(session.createQueue(out), session.createTextMessage("queued " + commit));
            producer.send(session.createTopic(out), session.createTextMessage("published " + commit));
            if (commit) {
                session.commit();
            } else {
                session.rollback();
            }
        }
        takeTexts(published, "published true");
        session.close();
        same(1, ground.drain(out).size(), "what was sent on");
        same(1, ground.drain(ground.name()).size(), "what is left of the first queue");
        ground.checkEmpty(second);
    }

    /** What it took is part of the transaction still. */
    private static void closesConsumer(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b", "c", "d");
        Session session = ground.connect(AT_ONCE).createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        takeTexts(consumer, "a");
        consumer.close();
        session.commit();
        consumer = session.createConsumer(session.createQueue(ground.name()));
        takeTexts(consumer, "b", "c");
        consumer.close();
        session.rollback();
        consumer = session.createConsumer(session.createQueue(ground.name()));
        takeTexts(consumer, "b", "c", "d");
        session.commit();
        session.close();
        ground.checkEmpty(ground.name());
    }

    private static void listens(Ground ground) throws Exception {
        String out = ground.name("out");
        String[] texts = Acknowledging.numbered(20);
        ground.send(ground.name(), texts);
        Connection connection = ground.connect(AT_ONCE);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(session.createQueue(out));
        CountDownLatch all = new CountDownLatch(texts.length);
        session.createConsumer(session.createQueue(ground.name())).setMessageListener(message -> {
            try {
                producer.send(session.createTextMessage(Ground.text(message)));
                // Every third one fails once.
                if (message.getIntProperty("JMSXDeliveryCount") == 1 && all.getCount() % 3 == 0) {
                    session.rollback();
                } else {
                    session.commit();
                    all.countDown();
                }
            } catch (JMSException error) {
                error.printStackTrace();
            }
        });
        check(all.await(Ground.PATIENCE, TimeUnit.MILLISECONDS), all.getCount() + " never came");
        connection.close();
        List<Message> sent = ground.drain(out);
        same(texts.length, sent.size(), "what was sent on");
        for (int number = 0; number < texts.length; number++) {
            same(texts[number], Ground.text(sent.get(number)), "what was sent on");
        }
        ground.checkEmpty(ground.name());
    }

    /** A client that sorts what it has acknowledges one by one, in an order of its own. */
    private static void byPriority(Ground ground) throws Exception {
        String[] texts = Acknowledging.numbered(60);
        Session sending = ground.session();
        MessageProducer producer = sending.createProducer(sending.createQueue(ground.name()));
        for (int number = 0; number < texts.length; number++) {
            producer.setPriority(number % 10);
            producer.send(sending.createTextMessage(texts[number]));
        }
        String options = AT_ONCE + "&jms.messagePrioritySupported=true&jms.prefetchPolicy.queuePrefetch=8";
        Session session = ground.connect(options).createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        Set<String> taken = new HashSet<>();
        for (int begin = 0; begin < texts.length; begin += 6) {
            Set<String> batch = new HashSet<>();
            for (int number = 0; number < 6; number++) {
                batch.add(Ground.takeText(consumer));
            }
            if (begin % 12 == 0) {
                session.rollback();
                batch.clear();
                for (int number = 0; number < 6; number++) {
                    batch.add(Ground.takeText(consumer));
                }
            }
            session.commit();
            taken.addAll(batch);
        }
        same(texts.length, taken.size(), "how many different ones came");
        session.close();
        ground.checkEmpty(ground.name());
    }
}
