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
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;

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

    /** Takes the dead letter of this case with this text. The queue may be shared with other cases' letters. */
    private static void checkDeadLetter(Ground ground, String text) throws Exception {
        Session session = ground.session();
        MessageConsumer consumer =
                session.createConsumer(session.createQueue(ground.peer.deadLettersOf(ground.name())));
        Message letter = take(consumer);
        while (ground.peer.sharesDeadLetters && !text.equals(Ground.text(letter))) {
            letter = take(consumer);
        }
        same(text, Ground.text(letter), "the dead letter");
        String cause = letter.getStringProperty("dlqDeliveryFailureCause");
        check(cause != null && !cause.isEmpty(), "the dead letter does not say why");
        if (!ground.peer.isActiveMq) {
            same("queue://" + ground.name(), letter.getStringProperty("dlqOriginalDestination"),
                    "where the dead letter comes from");
        }
        consumer.close();
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
}
