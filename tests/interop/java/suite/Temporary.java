package suite;

import static suite.Ground.check;
import static suite.Ground.fails;
import static suite.Ground.same;
import static suite.Ground.take;
import static suite.Ground.takeText;
import static suite.Ground.takeTexts;

import java.util.concurrent.TimeUnit;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.InvalidDestinationException;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TemporaryTopic;
import org.apache.activemq.DestinationDoesNotExistException;
import org.apache.activemq.command.ActiveMQTempQueue;

/** Destinations that live as long as their connection. */
final class Temporary {
    private Temporary() {}

    static void addTo(Suite suite) {
        suite.add("request_and_reply_by_a_temporary_queue", ground -> replies(ground, false, ""));
        suite.add("request_and_reply_by_a_temporary_topic", ground -> replies(ground, true, ""));
        suite.add("request_and_reply_without_advisories",
                ground -> replies(ground, false, "jms.watchTopicAdvisories=false"));
        suite.add("a_temporary_queue_is_its_connections_own", Temporary::own);
        suite.add("a_temporary_queue_with_a_consumer_stays", Temporary::staysWithConsumer);
        suite.add("a_deleted_temporary_queue_takes_nothing", Temporary::deleted);
        suite.add("a_temporary_queue_ends_with_its_connection", Temporary::endsWithConnection);
        suite.add("a_temporary_queue_that_never_was_takes_nothing", Temporary::neverWas);
    }

    private static void replies(Ground ground, boolean isTopic, String options) throws Exception {
        Session answering = ground.connect(options).createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer anywhere = answering.createProducer(null);
        answering.createConsumer(answering.createQueue(ground.name())).setMessageListener(request -> {
            try {
                Message reply = answering.createTextMessage("re:" + Ground.text(request));
                reply.setJMSCorrelationID(request.getJMSMessageID());
                anywhere.send(request.getJMSReplyTo(), reply);
            } catch (Exception error) {
                error.printStackTrace();
            }
        });
        Session session = ground.connect(options).createSession(false, Session.AUTO_ACKNOWLEDGE);
        Destination replies = isTopic ? session.createTemporaryTopic() : session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(replies);
        MessageProducer producer = session.createProducer(session.createQueue(ground.name()));
        for (String text : Acknowledging.numbered(20)) {
            Message request = session.createTextMessage(text);
            request.setJMSReplyTo(replies);
            producer.send(request);
            Message reply = take(consumer);
            same("re:" + text, Ground.text(reply), "the reply");
            same(request.getJMSMessageID(), reply.getJMSCorrelationID(), "the reply's JMSCorrelationID");
            same(replies, reply.getJMSDestination(), "the reply's JMSDestination");
        }
        consumer.close();
        if (isTopic) {
            ((TemporaryTopic) replies).delete();
        } else {
            ((TemporaryQueue) replies).delete();
        }
    }

    private static void own(Ground ground) throws Exception {
        TemporaryQueue queue = ground.session().createTemporaryQueue();
        Session other = ground.session();
        fails(JMSException.class, "consuming from another's temporary queue", () -> other.createConsumer(queue));
    }

    private static void staysWithConsumer(Ground ground) throws Exception {
        Session session = ground.session();
        TemporaryQueue queue = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(queue);
        fails(JMSException.class, "deleting a temporary queue with a consumer", queue::delete);
        session.createProducer(queue).send(session.createTextMessage("a"));
        takeTexts(consumer, "a");
        consumer.close();
        queue.delete();
    }

    private static void deleted(Ground ground) throws Exception {
        Session session = ground.session();
        TemporaryQueue queue = session.createTemporaryQueue();
        Session other = ground.session();
        MessageProducer producer = other.createProducer(queue);
        goesSoon(() -> producer.send(other.createTextMessage("a")));
        queue.delete();
        failsSoon(ground, () -> producer.send(other.createTextMessage("b")));
        fails(InvalidDestinationException.class, "consuming from a deleted temporary queue",
                () -> session.createConsumer(queue));
    }

    private static void endsWithConnection(Ground ground) throws Exception {
        Connection connection = ground.connect();
        TemporaryQueue queue = connection.createSession(false, Session.AUTO_ACKNOWLEDGE).createTemporaryQueue();
        Session other = ground.session();
        MessageProducer producer = other.createProducer(queue);
        goesSoon(() -> producer.send(other.createTextMessage("a")));
        connection.close();
        failsSoon(ground, () -> producer.send(other.createTextMessage("b")));
    }

    /** Another client hears of a temporary queue by and by, and refuses to send to it until then. */
    private static void goesSoon(Ground.Call send) throws Exception {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Ground.PATIENCE);
        while (true) {
            try {
                send.make();
                return;
            } catch (InvalidDestinationException error) {
                if (System.nanoTime() >= until) {
                    throw error;
                }
            }
            Thread.sleep(5);
        }
    }

    /**
     * It hears of the end of one in the same way, and refuses from then on. What it sends before that the broker refuses,
     * ActiveMQ with an exception of its own.
     */
    private static void failsSoon(Ground ground, Ground.Call send) throws Exception {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Ground.PATIENCE);
        while (System.nanoTime() < until) {
            try {
                send.make();
            } catch (InvalidDestinationException expected) {
                return;
            } catch (DestinationDoesNotExistException error) {
                check(ground.peer.isActiveMq, "expected an InvalidDestinationException, not " + error);
                return;
            }
            Thread.sleep(5);
        }
        throw new Failure("sends to a temporary queue that is gone go on");
    }

    private static void neverWas(Ground ground) throws Exception {
        Session session = ground.session();
        ActiveMQTempQueue queue = new ActiveMQTempQueue("ID:nobody-1-1-1:1:1");
        fails(JMSException.class, "sending to a temporary queue that never was",
                () -> session.createProducer(queue).send(session.createTextMessage("a")));
        // The connection goes on.
        ground.send(ground.name(), "b");
        check(takeText(session.createConsumer(session.createQueue(ground.name()))).equals("b"), "it does not");
    }
}
