package suite;

import static suite.Ground.check;
import static suite.Ground.fails;
import static suite.Ground.same;
import static suite.Ground.takeTexts;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.InvalidClientIDException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnectionFactory;

/** Connections, many and of each kind. */
final class Connections {
    private Connections() {}

    static void addTo(Suite suite) {
        suite.add("sixty_four_connections_at_once", Connections::sixtyFour);
        suite.add("connections_that_come_and_go", Connections::comeAndGo);
        suite.add("a_client_id_is_one_connections", Connections::clientId);
        suite.add("a_producer_with_a_window", Connections::window);
        suite.add("asynchronous_sends", Connections::asynchronous);
        suite.add("an_idle_connection_stays", Connections::idle);
        suite.add("a_failover_url", Connections::failover);
        suite.add("a_client_that_asks_for_little", Connections::plain);
    }

    /** Each sends to all and takes what it gets; nothing is lost, nothing comes twice. */
    private static void sixtyFour(Ground ground) throws Exception {
        int connections = 64;
        int each = 50;
        Set<String> seen = ConcurrentHashMap.newKeySet();
        AtomicInteger received = new AtomicInteger();
        ExecutorService threads = Executors.newFixedThreadPool(connections);
        List<Future<Void>> ends = new ArrayList<>();
        for (int number = 0; number < connections; number++) {
            int own = number;
            ends.add(threads.submit(() -> {
                Session session = ground.connect("jms.prefetchPolicy.queuePrefetch=5")
                        .createSession(false, Session.AUTO_ACKNOWLEDGE);
                MessageProducer producer = session.createProducer(session.createQueue(ground.name()));
                MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
                for (int index = 0; index < each; index++) {
                    producer.send(session.createTextMessage(own + "/" + index));
                }
                while (received.get() < connections * each) {
                    Message message = consumer.receive(20);
                    if (message != null) {
                        check(seen.add(Ground.text(message)), "twice: " + Ground.text(message));
                        received.incrementAndGet();
                    }
                }
                return null;
            }));
        }
        for (Future<Void> end : ends) {
            end.get(Ground.PATIENCE, TimeUnit.MILLISECONDS);
        }
        threads.shutdown();
        same(connections * each, seen.size(), "the number of messages");
    }

    private static void comeAndGo(Ground ground) throws Exception {
        for (String text : Acknowledging.numbered(50)) {
            ground.send(ground.name(), text);
        }
        same(50, ground.drain(ground.name()).size(), "the number of messages");
    }

    private static void clientId(Ground ground) throws Exception {
        Connection first = ground.keep(ground.factory("").createConnection());
        first.setClientID(ground.name());
        Connection second = ground.keep(ground.factory("").createConnection());
        fails(InvalidClientIDException.class, "a client id that is taken", () -> {
            second.setClientID(ground.name());
            second.start();
        });
        first.close();
        Connection third = ground.keep(ground.factory("").createConnection());
        third.setClientID(ground.name());
        third.start();
    }

    private static void window(Ground ground) throws Exception {
        flow(ground, "jms.useAsyncSend=true&jms.producerWindowSize=1024");
    }

    private static void asynchronous(Ground ground) throws Exception {
        flow(ground, "jms.useAsyncSend=true");
    }

    private static void flow(Ground ground, String options) throws Exception {
        String[] texts = Acknowledging.numbered(2_000);
        Session session = ground.connect(options).createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(ground.name()));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        Session receiving = ground.session();
        takeTexts(receiving.createConsumer(receiving.createQueue(ground.name())), texts);
    }

    /** Both sides say something now and then, so that neither takes the other for dead. */
    private static void idle(Ground ground) throws Exception {
        Connection connection =
                ground.connect("wireFormat.maxInactivityDuration=300&wireFormat.maxInactivityDurationInitalDelay=300");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(ground.name()));
        same(null, consumer.receive(1_500), "what came while nobody sent");
        ground.send(ground.name(), "a");
        takeTexts(consumer, "a");
    }

    private static void failover(Ground ground) throws Exception {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory("failover:(" + ground.peer.url + ")");
        Connection connection = ground.keep(factory.createConnection());
        connection.start();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        session.createProducer(session.createQueue(ground.name())).send(session.createTextMessage("a"));
        session.commit();
        takeTexts(session.createConsumer(session.createQueue(ground.name())), "a");
        session.commit();
    }

    private static void plain(Ground ground) throws Exception {
        Connection connection = ground.connect("wireFormat.tightEncodingEnabled=false&wireFormat.cacheEnabled=false"
                + "&wireFormat.stackTraceEnabled=false&wireFormat.version=10&jms.watchTopicAdvisories=false");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createProducer(session.createQueue(ground.name())).send(session.createTextMessage("a"));
        takeTexts(session.createConsumer(session.createQueue(ground.name())), "a");
    }
}
