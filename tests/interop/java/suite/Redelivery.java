package suite;

import static suite.Ground.check;
import static suite.Ground.checkDelivery;
import static suite.Ground.same;
import static suite.Ground.take;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQSession;

/** A message that fails comes again, some times, and is then kept apart. */
final class Redelivery {
    private Redelivery() {}

    static void addTo(Suite suite) {
        suite.add("a_listener_that_fails_gets_it_again_then_it_is_a_dead_letter", Redelivery::listener);
        suite.add("rollbacks_end_in_the_dead_letters", Redelivery::rollbacks);
        suite.add("redelivery_waits_for_its_delay", Redelivery::delays);
        suite.add("non_blocking_redelivery_lets_others_pass", Redelivery::nonBlocking);
        suite.add("non_persistent_poison_is_dropped", Redelivery::nonPersistent);
        suite.add("counts_add_up_over_clients", Redelivery::counts);
        suite.add("delays_grow_and_stay_below_their_bound", Redelivery::grows);
        suite.add("redelivery_without_a_limit", Redelivery::endless);
        suite.add("no_redelivery_at_all", Redelivery::never);
        suite.add("all_of_a_transaction_that_failed_too_often_become_dead_letters", Redelivery::poisonedTogether);
        suite.add("recover_ends_in_the_dead_letters", Redelivery::recovers);
        suite.add("a_listener_that_fails_and_acknowledges_one_by_one", Redelivery::individual);
        suite.add("a_listener_that_fails_and_acknowledges_lazily", Redelivery::dupsOk);
        suite.add("a_listener_that_fails_and_acknowledges_by_itself_goes_on", Redelivery::clientListener);
        suite.add("a_listener_that_rolls_back_ends_in_the_dead_letters", Redelivery::transactedListener);
        suite.add("non_blocking_redelivery_ends_in_the_dead_letters", Redelivery::nonBlockingPoison);
    }

    private static String policy(int maximum, int delay) {
        return "jms.redeliveryPolicy.maximumRedeliveries=" + maximum
                + "&jms.redeliveryPolicy.initialRedeliveryDelay=" + delay
                + "&jms.redeliveryPolicy.redeliveryDelay=" + delay;
    }

    private static void listener(Ground ground) throws Exception {
        ground.send(ground.name(), "poison of a listener", "good");
        Connection connection = ground.connect(policy(2, 10));
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        List<Integer> counts = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch good = new CountDownLatch(1);
        session.createConsumer(session.createQueue(ground.name())).setMessageListener(message -> {
            try {
                if (Ground.text(message).equals("good")) {
                    good.countDown();
                    return;
                }
                counts.add(message.getIntProperty("JMSXDeliveryCount"));
            } catch (Exception error) {
                error.printStackTrace();
            }
            throw new IllegalStateException("it is poison");
        });
        check(good.await(Ground.PATIENCE, TimeUnit.MILLISECONDS), "what stands behind the poison never came");
        same(List.of(1, 2, 3), counts, "the deliveries of the poison");
        checkDeadLetter(ground, "poison of a listener");
        connection.close();
        ground.checkEmpty(ground.name());
    }

    /** Takes the dead letter of this case with this text. */
    private static void checkDeadLetter(Ground ground, String text) throws Exception {
        Message letter = ground.deadLetter(ground.peer.deadLettersOf(ground.name()), text);
        String cause = letter.getStringProperty("dlqDeliveryFailureCause");
        check(cause != null && !cause.isEmpty(), "the dead letter does not say why");
        if (!ground.peer.isActiveMq) {
            same("queue://" + ground.name(), letter.getStringProperty("dlqOriginalDestination"),
                    "where the dead letter comes from");
        }
    }

    private static void rollbacks(Ground ground) throws Exception {
        ground.send(ground.name(), "poison", "good");
        Session session = ground.connect(policy(1, 0)).createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        for (int delivery = 1; delivery <= 2; delivery++) {
            Message message = take(consumer);
            same("poison", Ground.text(message), "delivery " + delivery);
            checkDelivery(message, delivery);
            session.rollback();
        }
        Ground.takeTexts(consumer, "good");
        session.commit();
        session.close();
        checkDeadLetter(ground, "poison");
        ground.checkEmpty(ground.name());
    }

    private static void delays(Ground ground) throws Exception {
        ground.send(ground.name(), "slow");
        Session session = ground.connect(policy(5, 300)).createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        take(consumer);
        long failed = System.nanoTime();
        session.rollback();
        checkDelivery(take(consumer), 2);
        long waited = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - failed);
        check(waited >= 290, "it came again after " + waited + " ms; expected 300 at least");
        session.commit();
        session.close();
        ground.checkEmpty(ground.name());
    }

    private static void nonBlocking(Ground ground) throws Exception {
        ground.send(ground.name(), "late", "early");
        Connection connection = ground.connect(policy(5, 1_000) + "&jms.nonBlockingRedelivery=true");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        Ground.takeTexts(consumer, "late");
        session.rollback();
        Ground.takeTexts(consumer, "early");
        session.commit();
        checkDelivery(take(consumer), 2);
        session.commit();
        connection.close();
        ground.checkEmpty(ground.name());
    }

    private static void nonPersistent(Ground ground) throws Exception {
        Connection connection = ground.connect(policy(0, 0));
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(session.createQueue(ground.name()));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.send(session.createTextMessage("light poison"));
        session.commit();
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        take(consumer);
        session.rollback();
        connection.close();
        ground.checkEmpty(ground.name());
        for (Message letter : ground.drain(ground.peer.deadLettersOf(ground.name()))) {
            check(!"light poison".equals(Ground.text(letter)), "it became a dead letter");
        }
    }

    /** The broker knows how often a message was delivered, whoever took it. */
    private static void counts(Ground ground) throws Exception {
        ground.send(ground.name(), "again");
        AtomicInteger delivery = new AtomicInteger();
        while (delivery.incrementAndGet() <= 3) {
            Connection connection = ground.connect();
            Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
            Message message = take(session.createConsumer(session.createQueue(ground.name())));
            checkDelivery(message, delivery.get());
            if (delivery.get() == 3) {
                message.acknowledge();
            }
            connection.close();
        }
        ground.checkEmpty(ground.name());
    }

    private static void grows(Ground ground) throws Exception {
        ground.send(ground.name(), "slower and slower");
        String policy = policy(5, 50) + "&jms.redeliveryPolicy.useExponentialBackOff=true"
                + "&jms.redeliveryPolicy.backOffMultiplier=3&jms.redeliveryPolicy.maximumRedeliveryDelay=200";
        Session session = ground.connect(policy).createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        take(consumer);
        for (int expected : new int[] {50, 150, 200, 200}) {
            long failed = System.nanoTime();
            session.rollback();
            take(consumer);
            long waited = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - failed);
            check(waited >= expected - 10, "it came again after " + waited + " ms; expected " + expected);
        }
        session.commit();
        session.close();
        ground.checkEmpty(ground.name());
    }

    private static void endless(Ground ground) throws Exception {
        ground.send(ground.name(), "again and again");
        Session session = ground.connect(policy(-1, 0)).createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        for (int delivery = 1; delivery <= 20; delivery++) {
            checkDelivery(take(consumer), delivery);
            session.rollback();
        }
        checkDelivery(take(consumer), 21);
        session.commit();
        session.close();
        ground.checkEmpty(ground.name());
    }

    private static void never(Ground ground) throws Exception {
        ground.send(ground.name(), "never again", "good");
        Session session = ground.connect(policy(0, 0)).createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        Ground.takeTexts(consumer, "never again");
        session.rollback();
        Ground.takeTexts(consumer, "good");
        session.commit();
        session.close();
        checkDeadLetter(ground, "never again");
        ground.checkEmpty(ground.name());
    }

    /** As its client has it: the last one's count decides over all. */
    private static void poisonedTogether(Ground ground) throws Exception {
        ground.send(ground.name(), "poison 1", "poison 2", "poison 3", "good");
        Session session = ground.connect(policy(1, 0)).createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        for (int delivery = 1; delivery <= 2; delivery++) {
            Ground.takeTexts(consumer, "poison 1", "poison 2", "poison 3");
            session.rollback();
        }
        Ground.takeTexts(consumer, "good");
        session.commit();
        session.close();
        for (int number = 1; number <= 3; number++) {
            checkDeadLetter(ground, "poison " + number);
        }
        ground.checkEmpty(ground.name());
    }

    private static void recovers(Ground ground) throws Exception {
        ground.send(ground.name(), "poison of a recover", "good");
        Session session = ground.connect(policy(2, 0)).createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        for (int delivery = 1; delivery <= 3; delivery++) {
            Message message = take(consumer);
            same("poison of a recover", Ground.text(message), "delivery " + delivery);
            checkDelivery(message, delivery);
            session.recover();
        }
        Message good = take(consumer);
        same("good", Ground.text(good), "what is behind it");
        good.acknowledge();
        session.close();
        checkDeadLetter(ground, "poison of a recover");
        ground.checkEmpty(ground.name());
    }

    private static void individual(Ground ground) throws Exception {
        failing(ground, ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE);
    }

    private static void dupsOk(Ground ground) throws Exception {
        failing(ground, Session.DUPS_OK_ACKNOWLEDGE);
    }

    /** A listener that fails once with the first message and then with none. */
    private static void failing(Ground ground, int mode) throws Exception {
        ground.send(ground.name(), "a", "b");
        Connection connection = ground.connect(policy(5, 10));
        Session session = connection.createSession(false, mode);
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch all = new CountDownLatch(3);
        session.createConsumer(session.createQueue(ground.name())).setMessageListener(message -> {
            try {
                seen.add(Ground.text(message) + message.getIntProperty("JMSXDeliveryCount"));
                all.countDown();
                if (seen.size() > 1 && mode == ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE) {
                    message.acknowledge();
                }
            } catch (JMSException error) {
                error.printStackTrace();
            }
            if (seen.size() == 1) {
                throw new IllegalStateException("not yet");
            }
        });
        check(all.await(Ground.PATIENCE, TimeUnit.MILLISECONDS), "only these came: " + seen);
        connection.close();
        same(List.of("a1", "a2", "b1"), seen, "what came");
        ground.checkEmpty(ground.name());
    }

    /** Its message counts as delivered, and comes again when the session recovers, or when another has it. */
    private static void clientListener(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b");
        Connection connection = ground.connect(policy(5, 10));
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        CountDownLatch both = new CountDownLatch(2);
        session.createConsumer(session.createQueue(ground.name())).setMessageListener(message -> {
            both.countDown();
            throw new IllegalStateException("it fails with all");
        });
        check(both.await(Ground.PATIENCE, TimeUnit.MILLISECONDS), "the second one never came");
        connection.close();
        List<Message> left = ground.drain(ground.name());
        same(2, left.size(), "what is left");
        for (Message message : left) {
            checkDelivery(message, 2);
        }
    }

    private static void transactedListener(Ground ground) throws Exception {
        ground.send(ground.name(), "poison of a rollback", "good");
        Connection connection = ground.connect(policy(2, 10));
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        List<Integer> counts = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch good = new CountDownLatch(1);
        session.createConsumer(session.createQueue(ground.name())).setMessageListener(message -> {
            try {
                if (Ground.text(message).equals("good")) {
                    session.commit();
                    good.countDown();
                } else {
                    counts.add(message.getIntProperty("JMSXDeliveryCount"));
                    session.rollback();
                }
            } catch (JMSException error) {
                error.printStackTrace();
            }
        });
        check(good.await(Ground.PATIENCE, TimeUnit.MILLISECONDS), "what stands behind the poison never came");
        same(List.of(1, 2, 3), counts, "the deliveries of the poison");
        connection.close();
        checkDeadLetter(ground, "poison of a rollback");
        ground.checkEmpty(ground.name());
    }

    private static void nonBlockingPoison(Ground ground) throws Exception {
        ground.send(ground.name(), "late poison", "good 1", "good 2");
        Connection connection = ground.connect(policy(1, 50) + "&jms.nonBlockingRedelivery=true");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        int good = 0;
        int poison = 0;
        while (good < 2 || poison < 2) {
            if (Ground.takeText(consumer).equals("late poison")) {
                poison++;
                session.rollback();
            } else {
                good++;
                session.commit();
            }
        }
        connection.close();
        checkDeadLetter(ground, "late poison");
        ground.checkEmpty(ground.name());
    }
}
