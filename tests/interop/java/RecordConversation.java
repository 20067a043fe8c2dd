import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;
import javax.jms.Topic;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.ActiveMQXAConnection;
import org.apache.activemq.ActiveMQXAConnectionFactory;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.command.XATransactionId;

/**
 * Records what ActiveMQ's own client and broker say to each other: one frame a line, without its size, in hexadecimal
 * digits; behind {@code >} what the client sends, behind {@code <} what the broker does.
 *
 * <p>Use: {@code java RecordConversation FILE}. Identifiers and times differ from run to run.
 */
public final class RecordConversation {
    private static final List<String> FRAMES = Collections.synchronizedList(new ArrayList<>());

    public static void main(String[] arguments) throws Exception {
        BrokerService broker = new BrokerService();
        broker.setBrokerName("recorded");
        broker.setPersistent(false);
        broker.setUseJmx(false);
        broker.setUseShutdownHook(false);
        String plain = "wireFormat.tightEncodingEnabled=false&wireFormat.cacheEnabled=false";
        broker.addConnector("tcp://127.0.0.1:0?" + plain);
        broker.start();
        broker.waitUntilStarted();
        int port = URI.create(broker.getTransportConnectors().get(0).getPublishableConnectString()).getPort();
        try (ServerSocket door = new ServerSocket(0, 10, InetAddress.getLoopbackAddress())) {
            start(() -> {
                while (true) {
                    Socket client = door.accept();
                    Socket server = new Socket(InetAddress.getLoopbackAddress(), port);
                    start(() -> pass(client, server, '>'));
                    start(() -> pass(server, client, '<'));
                }
            });
            String url = "tcp://127.0.0.1:" + door.getLocalPort()
                    + "?jms.redeliveryPolicy.maximumRedeliveries=1&jms.redeliveryPolicy.initialRedeliveryDelay=0";
            messages(url, false);
            messages(url, true);
            subscriptions(url);
            failures(url);
            distributed(url);
        }
        Files.write(Path.of(arguments[0]), FRAMES);
        broker.stop();
        System.exit(0);
    }

    private interface Work {
        void run() throws Exception;
    }

    private static void start(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception end) {
                // A socket was closed.
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private static void pass(Socket from, Socket to, char mark) throws IOException {
        try (from; to) {
            DataInputStream in = new DataInputStream(from.getInputStream());
            DataOutputStream out = new DataOutputStream(to.getOutputStream());
            while (true) {
                byte[] frame = new byte[in.readInt()];
                in.readFully(frame);
                StringBuilder line = new StringBuilder().append(mark).append(' ');
                for (byte part : frame) {
                    line.append(String.format("%02x", part));
                }
                FRAMES.add(line.toString());
                out.writeInt(frame.length);
                out.write(frame);
                out.flush();
            }
        }
    }

    private static ActiveMQConnectionFactory factory(String url, boolean compress) {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory("user", "secret", url);
        factory.setUseCompression(compress);
        factory.setTrustAllPackages(true);
        return factory;
    }

    private static Connection connect(String url, boolean compress) throws JMSException {
        Connection connection = factory(url, compress).createConnection();
        connection.start();
        return connection;
    }

    /** All bodies, all types of properties, acknowledged by the client, with a request and a reply. */
    private static void messages(String url, boolean compress) throws Exception {
        Connection connection = connect(url, compress);
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Queue orders = session.createQueue("orders");
        Queue replies = session.createTemporaryQueue();
        MessageProducer producer = session.createProducer(null);
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeUTF("grüße");
        MapMessage map = session.createMapMessage();
        map.setLong("long", 7);
        map.setString("string", "a\0😀");
        StreamMessage stream = session.createStreamMessage();
        stream.writeDouble(1.5);
        stream.writeBytes(new byte[] {1, 2, 3});
        TextMessage text = session.createTextMessage("text");
        text.setBooleanProperty("boolean", true);
        text.setByteProperty("byte", (byte) 1);
        text.setShortProperty("short", (short) 2);
        text.setIntProperty("int", 3);
        text.setLongProperty("long", 4);
        text.setFloatProperty("float", 5.5f);
        text.setDoubleProperty("double", 6.5);
        text.setStringProperty("string", "é");
        text.setStringProperty("JMSXGroupID", "group");
        text.setJMSCorrelationID("correlation");
        text.setJMSType("type");
        text.setJMSReplyTo(replies);
        Message object = session.createObjectMessage("object");
        for (Message message : new Message[] {text, bytes, map, stream, object, session.createMessage()}) {
            producer.send(orders, message, message == bytes ? 1 : 2, 8, message == map ? 60_000 : 0);
        }
        MessageConsumer consumer = session.createConsumer(orders);
        for (int count = 0; count < 6; count++) {
            Message message = consumer.receive(5_000);
            if (message.getJMSReplyTo() != null) {
                producer.send(message.getJMSReplyTo(), session.createTextMessage("reply"));
            }
            message.acknowledge();
        }
        MessageConsumer waiting = session.createConsumer(replies);
        waiting.receive(5_000).acknowledge();
        waiting.close();
        connection.close();
    }

    /** A durable subscription, a browser, a selector, a consumer that pulls, and acknowledgements one by one. */
    private static void subscriptions(String url) throws Exception {
        Connection connection = connect(url + "&jms.prefetchPolicy.queuePrefetch=0&jms.clientID=client", false);
        Session session = connection.createSession(false, ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE);
        Topic prices = session.createTopic("prices");
        session.createDurableSubscriber(prices, "durable", "rate > 1", true).close();
        session.unsubscribe("durable");
        Queue queue = session.createQueue("pulled");
        MessageProducer producer = session.createProducer(queue);
        producer.send(session.createTextMessage("one"));
        QueueBrowser browser = session.createBrowser(queue, "JMSPriority = 4");
        Collections.list(browser.getEnumeration());
        browser.close();
        MessageConsumer consumer = session.createConsumer(queue);
        consumer.receive(5_000).acknowledge();
        consumer.receiveNoWait();
        consumer.receive(50);
        connection.close();
    }

    /** A commit, a rollback until the message is dead, and what the broker refuses. */
    private static void failures(String url) throws Exception {
        Connection connection = factory(url, false).createConnection();
        connection.setClientID("taken");
        connection.start();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        Queue queue = session.createQueue("failing");
        session.createProducer(queue).send(session.createTextMessage("poison"));
        session.commit();
        MessageConsumer consumer = session.createConsumer(queue);
        while (consumer.receive(500) != null) {
            session.rollback();
        }
        MessageConsumer dead = session.createConsumer(session.createQueue("ActiveMQ.DLQ"));
        dead.receive(5_000);
        session.commit();
        Connection second = factory(url, false).createConnection();
        try {
            second.setClientID("taken");
            throw new IllegalStateException("the client id was accepted twice");
        } catch (JMSException expected) {
            // The broker's answer is recorded.
        }
        second.close();
        connection.close();
    }

    private static void distributed(String url) throws Exception {
        ActiveMQXAConnection connection =
                (ActiveMQXAConnection) new ActiveMQXAConnectionFactory(url).createXAConnection();
        connection.start();
        var session = connection.createXASession();
        XAResource resource = session.getXAResource();
        XATransactionId branch = new XATransactionId();
        branch.setFormatId(7);
        branch.setGlobalTransactionId(new byte[] {1, 2, 3});
        branch.setBranchQualifier(new byte[] {4});
        resource.start(branch, XAResource.TMNOFLAGS);
        session.createProducer(session.createQueue("distributed")).send(session.createTextMessage("once"));
        resource.end(branch, XAResource.TMSUCCESS);
        resource.prepare(branch);
        resource.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN);
        resource.commit(branch, false);
        try {
            resource.commit(branch, false);
            throw new IllegalStateException("it was committed twice");
        } catch (XAException expected) {
            // The broker's answer is recorded.
        }
        connection.close();
    }
}
