package suite;

import static suite.Ground.check;
import static suite.Ground.fails;
import static suite.Ground.pulled;
import static suite.Ground.same;
import static suite.Ground.take;
import static suite.Ground.takeTexts;

import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import javax.jms.Connection;
import javax.jms.InvalidSelectorException;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.QueueBrowser;
import javax.jms.Session;

/** How messages are asked for. */
final class Receiving {
    private Receiving() {}

    static void addTo(Suite suite) {
        suite.add("receive_returns_when_its_time_is_up", Receiving::timeouts);
        suite.add("a_waiting_receive_gets_what_comes", Receiving::waits);
        suite.add("prefetch_0_pulls_one_at_a_time", Receiving::pulls);
        suite.add("prefetch_0_waits_for_what_comes", Receiving::pullWaits);
        suite.add("prefetch_1_shares_a_queue", Receiving::shares);
        suite.add("a_browser_sees_all_and_takes_nothing", Receiving::browses);
        suite.add("a_browser_of_many", Receiving::browsesMany);
        suite.add("a_browser_of_an_empty_queue_ends", Receiving::browsesNothing);
        suite.add("selectors", Receiving::selectors);
        suite.add("a_selector_that_is_none_is_refused", Receiving::wrongSelector);
        suite.add("a_stopped_connection_receives_nothing", Receiving::stops);
    }

    private static void timeouts(Ground ground) throws Exception {
        Session session = ground.session();
        for (MessageConsumer consumer : List.of(
                session.createConsumer(session.createQueue(ground.name())),
                session.createConsumer(pulled(session, ground.name("pulled"))))) {
            same(null, consumer.receiveNoWait(), "what came at once");
            same(null, consumer.receive(50), "what came within 50 ms");
        }
        ground.send(ground.name(), "a");
        ground.send(ground.name("pulled"), "b");
        // A receive whose time was up does not swallow what comes later.
        MessageConsumer other = session.createConsumer(pulled(session, ground.name("pulled")));
        takeTexts(other, "b");
    }

    private static void waits(Ground ground) throws Exception {
        Session session = ground.session();
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        FutureTask<Message> waiting = new FutureTask<>(() -> consumer.receive());
        new Thread(waiting).start();
        ground.send(ground.name(), "late");
        Message message = waiting.get(Ground.PATIENCE, TimeUnit.MILLISECONDS);
        same("late", Ground.text(message), "what came");
    }

    private static void pulls(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b", "c", "d");
        Session session = ground.session();
        MessageConsumer first = session.createConsumer(pulled(session, ground.name()));
        MessageConsumer second = session.createConsumer(pulled(session, ground.name()));
        takeTexts(first, "a");
        takeTexts(second, "b");
        same("c", Ground.text(first.receiveNoWait()), "what comes at once");
        takeTexts(second, "d");
        same(null, first.receiveNoWait(), "what comes of an empty queue");
    }

    private static void pullWaits(Ground ground) throws Exception {
        Session session = ground.session();
        MessageConsumer consumer = session.createConsumer(pulled(session, ground.name()));
        FutureTask<Message> waiting = new FutureTask<>(() -> consumer.receive(Ground.PATIENCE));
        new Thread(waiting).start();
        ground.send(ground.name(), "late", "later");
        same("late", Ground.text(waiting.get(Ground.PATIENCE, TimeUnit.MILLISECONDS)), "what came");
        takeTexts(consumer, "later");
    }

    private static void shares(Ground ground) throws Exception {
        Connection connection = ground.connect("jms.prefetchPolicy.queuePrefetch=1");
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer first = session.createConsumer(session.createQueue(ground.name()));
        Session other = ground.connect("jms.prefetchPolicy.queuePrefetch=1")
                .createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer second = other.createConsumer(other.createQueue(ground.name()));
        ground.send(ground.name(), "a", "b");
        // Neither can have both, as neither acknowledges.
        check(!Ground.takeText(first).equals(Ground.takeText(second)), "both got the same");
    }

    private static void browses(Ground ground) throws Exception {
        ground.send(ground.name(), "a", "b", "c");
        Session session = ground.session();
        QueueBrowser browser = session.createBrowser(session.createQueue(ground.name()));
        for (int round = 0; round < 2; round++) {
            StringBuilder seen = new StringBuilder();
            for (Object message : Collections.list((Enumeration<?>) browser.getEnumeration())) {
                seen.append(Ground.text((Message) message));
                Ground.checkDelivery((Message) message, 1);
            }
            same("abc", seen.toString(), "what the browser saw");
        }
        browser.close();
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        for (String text : new String[] {"a", "b", "c"}) {
            Message message = take(consumer);
            same(text, Ground.text(message), "what is there afterwards");
            Ground.checkDelivery(message, 1);
        }
    }

    /** More than the browser's prefetch of 500, and no more than the 400 that ActiveMQ has in memory for it. */
    private static void browsesMany(Ground ground) throws Exception {
        int count = ground.peer.isActiveMq ? 400 : 1_200;
        Session sending = ground.connect().createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = sending.createProducer(sending.createQueue(ground.name()));
        for (int number = 0; number < count; number++) {
            producer.send(sending.createTextMessage("number " + number));
        }
        sending.commit();
        Session session = ground.session();
        QueueBrowser browser = session.createBrowser(session.createQueue(ground.name()));
        List<?> seen = Collections.list((Enumeration<?>) browser.getEnumeration());
        same(count, seen.size(), "the number of messages that the browser saw");
        browser.close();
        same(count, ground.drain(ground.name()).size(), "the number of messages that are there");
    }

    private static void browsesNothing(Ground ground) throws Exception {
        Session session = ground.session();
        QueueBrowser browser = session.createBrowser(session.createQueue(ground.name()));
        check(!browser.getEnumeration().hasMoreElements(), "there is something in an empty queue");
        browser.close();
    }

    private static void selectors(Ground ground) throws Exception {
        Session session = ground.session();
        String selector = "colour = 'red' AND weight > 2";
        if (!ground.peer.isActiveMq) {
            InvalidSelectorException refused = fails(InvalidSelectorException.class, "a selector",
                    () -> session.createConsumer(session.createQueue(ground.name()), selector));
            check(refused.getMessage().contains("selector"), "it does not say why: " + refused.getMessage());
            fails(InvalidSelectorException.class, "a browser's selector", () -> session
                    .createBrowser(session.createQueue(ground.name()), selector).getEnumeration());
            // The connection goes on.
            ground.send(ground.name(), "a");
            takeTexts(session.createConsumer(session.createQueue(ground.name())), "a");
            return;
        }
        MessageProducer producer = session.createProducer(session.createQueue(ground.name()));
        for (String colour : new String[] {"white", "red"}) {
            Message message = session.createTextMessage(colour);
            message.setStringProperty("colour", colour);
            message.setIntProperty("weight", 3);
            producer.send(message);
        }
        takeTexts(session.createConsumer(session.createQueue(ground.name()), selector), "red");
    }

    private static void wrongSelector(Ground ground) throws Exception {
        // The client itself parses a consumer's selector first; the browser's it leaves to the broker.
        Session session = ground.session();
        fails(InvalidSelectorException.class, "a selector that is none",
                () -> session.createConsumer(session.createQueue(ground.name()), "colour = = 'red'"));
        fails(JMSException.class, "a browser's selector that is none", () -> session
                .createBrowser(session.createQueue(ground.name()), "colour = = 'red'").getEnumeration());
    }

    private static void stops(Ground ground) throws Exception {
        Connection connection = ground.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        connection.stop();
        ground.send(ground.name(), "a");
        same(null, consumer.receive(50), "what came while it was stopped");
        connection.start();
        takeTexts(consumer, "a");
    }
}
