package suite;

import static suite.Ground.check;
import static suite.Ground.checkDelivery;
import static suite.Ground.fails;
import static suite.Ground.same;
import static suite.Ground.take;
import static suite.Ground.takeTexts;

import javax.jms.Connection;
import javax.jms.InvalidClientIDException;
import javax.jms.InvalidDestinationException;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.transport.TransportFilter;

/** Subscriptions that are kept while nobody has them. */
final class Durables {
    private static final String AT_ONCE =
            "jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0";

    private Durables() {}

    static void addTo(Suite suite) {
        suite.add("a_durable_subscription_keeps_what_comes_meanwhile", Durables::keeps);
        suite.add("a_durable_subscriber_goes_on_where_it_was", Durables::goesOn);
        suite.add("two_durable_subscriptions_of_one_topic", Durables::areTwo);
        suite.add("a_durable_subscription_is_made_anew_for_another_topic", Durables::changes);
        suite.add("unsubscribe_drops_what_was_kept", Durables::drops);
        suite.add("unsubscribe_of_what_is_not_there_is_refused", Durables::unknown);
        suite.add("unsubscribe_of_what_is_in_use_is_refused", Durables::active);
        suite.add("a_durable_subscription_has_one_consumer", Durables::inUse);
        suite.add("a_client_id_has_one_connection", Durables::clientInUse);
        suite.add("a_durable_subscription_without_a_client_id_is_refused", Durables::withoutClient);
        suite.add("a_durable_subscriber_leaves_out_its_own", Durables::noLocal);
        suite.add("a_durable_subscriber_that_vanishes_loses_nothing", Durables::vanishes);
        suite.add("a_durable_subscriber_in_transactions", Durables::transacted);
        suite.add("what_a_durable_subscriber_fails_with_becomes_a_dead_letter", Durables::poison);
    }

    /** What every case has: a client with a name, a topic, and somebody who publishes. */
    private static final class Scene {
        final Ground ground;
        final Session sending;
        final MessageProducer producer;
        Connection connection;
        Session session;

        Scene(Ground ground) throws JMSException {
            this(ground, Session.AUTO_ACKNOWLEDGE, "");
        }

        Scene(Ground ground, int mode, String options) throws JMSException {
            this.ground = ground;
            sending = ground.session();
            producer = sending.createProducer(sending.createTopic(ground.name()));
            connect(mode, options);
        }

        void connect(int mode, String options) throws JMSException {
            connection = ground.connectAs(ground.name("client"), options);
            session = connection.createSession(mode == Session.SESSION_TRANSACTED, mode);
        }

        void connectAgain(int mode) throws JMSException {
            connection.close();
            connect(mode, "");
        }

        Topic topic() throws JMSException {
            return session.createTopic(ground.name());
        }

        MessageConsumer subscribe(String name) throws JMSException {
            return session.createDurableSubscriber(topic(), name);
        }

        /** The end of a subscription, and of the consumer that has it. */
        void end(MessageConsumer consumer, String name) throws JMSException {
            consumer.close();
            session.unsubscribe(name);
        }

        void publish(String... texts) throws JMSException {
            for (String text : texts) {
                producer.send(sending.createTextMessage(text));
            }
        }
    }

    /** The next message, which has this text and is delivered for this time. */
    private static Message takeDelivery(MessageConsumer consumer, int delivery, String text) throws Exception {
        Message message = take(consumer);
        same(text, Ground.text(message), "what comes");
        checkDelivery(message, delivery);
        return message;
    }

    private static void keeps(Ground ground) throws Exception {
        Scene scene = new Scene(ground);
        scene.publish("before it was there");
        scene.subscribe("name").close();
        scene.publish("a", "b");
        MessageConsumer consumer = scene.subscribe("name");
        takeDelivery(consumer, 1, "a");
        takeDelivery(consumer, 1, "b");
        scene.publish("c");
        takeTexts(consumer, "c");
        scene.end(consumer, "name");
    }

    private static void goesOn(Ground ground) throws Exception {
        Scene scene = new Scene(ground, Session.CLIENT_ACKNOWLEDGE, "");
        MessageConsumer consumer = scene.subscribe("name");
        scene.publish("a", "b", "c", "d");
        takeTexts(consumer, "a");
        take(consumer).acknowledge();
        takeTexts(consumer, "c");
        scene.connection.close();
        scene.publish("e");
        scene.connect(Session.CLIENT_ACKNOWLEDGE, "");
        consumer = scene.subscribe("name");
        takeDelivery(consumer, 2, "c").acknowledge();
        takeDelivery(consumer, 1, "d").acknowledge();
        takeDelivery(consumer, 1, "e").acknowledge();
        scene.end(consumer, "name");
    }

    private static void areTwo(Ground ground) throws Exception {
        Scene scene = new Scene(ground);
        MessageConsumer one = scene.subscribe("one");
        scene.subscribe("other").close();
        scene.publish("a", "b");
        takeTexts(one, "a", "b");
        scene.end(one, "one");
        MessageConsumer other = scene.subscribe("other");
        takeTexts(other, "a", "b");
        scene.end(other, "other");
    }

    private static void changes(Ground ground) throws Exception {
        Scene scene = new Scene(ground);
        scene.subscribe("name").close();
        scene.publish("of the first topic");
        Topic second = scene.session.createTopic(ground.name("second"));
        MessageConsumer consumer = scene.session.createDurableSubscriber(second, "name");
        scene.sending.createProducer(second).send(scene.sending.createTextMessage("of the second"));
        takeTexts(consumer, "of the second");
        scene.end(consumer, "name");
    }

    private static void drops(Ground ground) throws Exception {
        Scene scene = new Scene(ground);
        scene.subscribe("name").close();
        scene.publish("dropped");
        scene.session.unsubscribe("name");
        MessageConsumer consumer = scene.subscribe("name");
        scene.publish("kept");
        takeTexts(consumer, "kept");
        scene.end(consumer, "name");
    }

    private static void unknown(Ground ground) throws Exception {
        Scene scene = new Scene(ground);
        fails(InvalidDestinationException.class, "an end of nothing", () -> scene.session.unsubscribe("nothing"));
        scene.subscribe("name").close();
        scene.session.unsubscribe("name");
        fails(InvalidDestinationException.class, "a second end", () -> scene.session.unsubscribe("name"));
    }

    private static void active(Ground ground) throws Exception {
        Scene scene = new Scene(ground);
        MessageConsumer consumer = scene.subscribe("name");
        JMSException refused =
                fails(JMSException.class, "the end of one in use", () -> scene.session.unsubscribe("name"));
        check(refused.getMessage().contains("Durable consumer is in use"), refused.getMessage());
        scene.publish("a");
        takeTexts(consumer, "a");
        scene.end(consumer, "name");
    }

    private static void inUse(Ground ground) throws Exception {
        Scene scene = new Scene(ground);
        MessageConsumer consumer = scene.subscribe("name");
        JMSException refused = fails(JMSException.class, "a second consumer", () -> scene.subscribe("name"));
        String words = "Durable consumer is in use for client: " + ground.name("client")
                + " and subscriptionName: name";
        check(refused.getMessage().contains(words), refused.getMessage());
        scene.publish("a");
        takeTexts(consumer, "a");
        consumer.close();
        consumer = scene.subscribe("name");
        scene.publish("b");
        takeTexts(consumer, "b");
        scene.end(consumer, "name");
    }

    private static void clientInUse(Ground ground) throws Exception {
        Scene scene = new Scene(ground);
        fails(InvalidClientIDException.class, "a second connection", () -> scene.connect(1, ""));
        scene.connectAgain(Session.AUTO_ACKNOWLEDGE);
    }

    private static void withoutClient(Ground ground) throws Exception {
        Session session = ground.session();
        Topic topic = session.createTopic(ground.name());
        fails(JMSException.class, "one of nobody", () -> session.createDurableSubscriber(topic, "name"));
        ground.send(ground.name(), "a");
        takeTexts(session.createConsumer(session.createQueue(ground.name())), "a");
    }

    private static void noLocal(Ground ground) throws Exception {
        Scene scene = new Scene(ground);
        MessageConsumer consumer = scene.session.createDurableSubscriber(scene.topic(), "name", null, true);
        MessageProducer own = scene.session.createProducer(scene.topic());
        own.send(scene.session.createTextMessage("own"));
        scene.publish("another's");
        takeTexts(consumer, "another's");
        own.send(scene.session.createTextMessage("own again"));
        scene.publish("another's again");
        takeTexts(consumer, "another's again");
        scene.end(consumer, "name");
    }

    private static void vanishes(Ground ground) throws Exception {
        Scene scene = new Scene(ground, Session.CLIENT_ACKNOWLEDGE, "");
        MessageConsumer consumer = scene.subscribe("name");
        scene.publish("a", "b", "c");
        take(consumer).acknowledge();
        takeTexts(consumer, "b");
        // The socket goes, without a word.
        ((ActiveMQConnection) scene.connection).getTransport().narrow(TransportFilter.class).stop();
        long deadline = System.nanoTime() + Ground.PATIENCE * 1_000_000;
        while (true) {
            try {
                scene.connect(Session.CLIENT_ACKNOWLEDGE, "");
                break;
            } catch (InvalidClientIDException early) {
                // The broker has not noticed yet.
                check(System.nanoTime() < deadline, "the client id is never free");
                Thread.sleep(10);
            }
        }
        consumer = scene.subscribe("name");
        takeDelivery(consumer, 2, "b");
        take(consumer).acknowledge();
        scene.end(consumer, "name");
    }

    private static void transacted(Ground ground) throws Exception {
        Scene scene = new Scene(ground, Session.SESSION_TRANSACTED, AT_ONCE);
        MessageConsumer consumer = scene.subscribe("name");
        scene.publish("a", "b", "c");
        takeTexts(consumer, "a", "b");
        scene.session.rollback();
        takeDelivery(consumer, 2, "a");
        takeDelivery(consumer, 2, "b");
        scene.session.commit();
        takeTexts(consumer, "c");
        scene.connectAgain(Session.AUTO_ACKNOWLEDGE);
        consumer = scene.subscribe("name");
        takeTexts(consumer, "c");
        scene.end(consumer, "name");
    }

    private static void poison(Ground ground) throws Exception {
        String options = AT_ONCE + "&jms.redeliveryPolicy.maximumRedeliveries=1";
        Scene scene = new Scene(ground, Session.SESSION_TRANSACTED, options);
        MessageConsumer consumer = scene.subscribe("name");
        scene.publish("poison of a topic", "good");
        for (int delivery = 1; delivery <= 2; delivery++) {
            takeDelivery(consumer, delivery, "poison of a topic");
            scene.session.rollback();
        }
        takeTexts(consumer, "good");
        scene.session.commit();
        scene.end(consumer, "name");
        String letters = ground.peer.sharesDeadLetters ? "ActiveMQ.DLQ" : "DLQ.topic." + ground.name();
        Message letter = ground.deadLetter(letters, "poison of a topic");
        String cause = letter.getStringProperty("dlqDeliveryFailureCause");
        check(cause != null && !cause.isEmpty(), "the dead letter does not say why");
    }
}
