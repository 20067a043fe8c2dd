package suite;

import static suite.Ground.takeTexts;

import java.util.ArrayList;
import java.util.List;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.Topic;

/** What is published goes to all who listen. */
final class Topics {
    private Topics() {}

    static void addTo(Suite suite) {
        suite.add("a_topic_goes_to_all_who_listen", Topics::all);
        suite.add("no_local_leaves_out_ones_own", Topics::noLocal);
        suite.add("a_topic_keeps_nothing_for_who_comes_late", Topics::late);
        suite.add("client_acknowledged_topics_go_on", Topics::clientAcknowledged);
    }

    private static void all(Ground ground) throws Exception {
        List<MessageConsumer> consumers = new ArrayList<>();
        for (int number = 0; number < 5; number++) {
            Session session = ground.session();
            consumers.add(session.createConsumer(session.createTopic(ground.name())));
        }
        Session session = ground.session();
        MessageProducer producer = session.createProducer(session.createTopic(ground.name()));
        String[] texts = Acknowledging.numbered(50);
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.send(session.createTextMessage("light"));
        for (MessageConsumer consumer : consumers) {
            takeTexts(consumer, texts);
            takeTexts(consumer, "light");
        }
    }

    private static void noLocal(Ground ground) throws Exception {
        Connection connection = ground.connect();
        Session own = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Topic topic = own.createTopic(ground.name());
        MessageConsumer without = own.createConsumer(topic, null, true);
        MessageConsumer with = own.createConsumer(topic);
        own.createProducer(topic).send(own.createTextMessage("own"));
        Session other = ground.session();
        other.createProducer(topic).send(other.createTextMessage("another's"));
        takeTexts(with, "own", "another's");
        takeTexts(without, "another's");
    }

    private static void late(Ground ground) throws Exception {
        Session session = ground.session();
        Topic topic = session.createTopic(ground.name());
        MessageProducer producer = session.createProducer(topic);
        producer.send(session.createTextMessage("early"));
        MessageConsumer consumer = session.createConsumer(topic);
        producer.send(session.createTextMessage("late"));
        takeTexts(consumer, "late");
    }

    private static void clientAcknowledged(Ground ground) throws Exception {
        Session session = ground.connect("jms.prefetchPolicy.topicPrefetch=10")
                .createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Topic topic = session.createTopic(ground.name());
        MessageConsumer consumer = session.createConsumer(topic);
        Session sending = ground.session();
        MessageProducer producer = sending.createProducer(topic);
        String[] texts = Acknowledging.numbered(100);
        for (String text : texts) {
            producer.send(sending.createTextMessage(text));
        }
        takeTexts(consumer, texts);
    }
}
