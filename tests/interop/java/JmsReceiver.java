import java.util.Collections;
import java.util.Enumeration;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageListener;
import javax.jms.ObjectMessage;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * Receives messages with a listener and prints all that is in each, line by line.
 *
 * <p>Use: {@code java JmsReceiver URL QUEUE NUMBER}; ends after so many messages, or with status 3 when its broker
 * goes.
 */
public final class JmsReceiver implements MessageListener {
    private final CountDownLatch expected;

    private JmsReceiver(int number) {
        expected = new CountDownLatch(number);
    }

    private boolean receive(String url, String queue) throws Exception {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(
                ActiveMQConnection.DEFAULT_USER, ActiveMQConnection.DEFAULT_PASSWORD, url);
        factory.setTrustAllPackages(true);
        Connection connection = factory.createConnection();
        connection.setExceptionListener(error -> {
            System.out.println("the connection is lost");
            System.exit(3);
        });
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Destination destination = session.createQueue(queue);
        MessageConsumer consumer = session.createConsumer(destination);
        connection.start();
        consumer.setMessageListener(this);
        boolean isComplete = expected.await(60, TimeUnit.SECONDS);
        consumer.close();
        session.close();
        connection.close();
        return isComplete;
    }

    @Override
    public void onMessage(Message message) {
        try {
            printBody(message);
            printHeaders(message);
            expected.countDown();
        } catch (JMSException error) {
            error.printStackTrace();
        }
    }

    private static void printBody(Message message) throws JMSException {
        if (message instanceof TextMessage) {
            System.out.println("text " + ((TextMessage) message).getText());
        } else if (message instanceof MapMessage) {
            MapMessage map = (MapMessage) message;
            System.out.println("map");
            for (String name : sorted(map.getMapNames())) {
                System.out.println("  " + name + " = " + typed(map.getObject(name)));
            }
        } else if (message instanceof StreamMessage) {
            StreamMessage stream = (StreamMessage) message;
            System.out.println("stream");
            System.out.println("  " + typed(stream.readString()));
            System.out.println("  " + typed(stream.readBoolean()));
            System.out.println("  " + typed(stream.readLong()));
        } else if (message instanceof ObjectMessage) {
            JmsObjectMessageBean bean = (JmsObjectMessageBean) ((ObjectMessage) message).getObject();
            System.out.println("object " + bean.getUserName() + "__" + bean.getAge() + "__" + bean.isFlag());
        } else if (message instanceof BytesMessage) {
            BytesMessage bytes = (BytesMessage) message;
            StringBuilder digits = new StringBuilder();
            byte[] part = new byte[1024];
            for (int length = bytes.readBytes(part); length != -1; length = bytes.readBytes(part)) {
                for (int index = 0; index < length; index++) {
                    digits.append(String.format("%02x", part[index]));
                }
            }
            System.out.println("bytes " + digits);
        } else {
            System.out.println("message");
        }
    }

    private static void printHeaders(Message message) throws JMSException {
        boolean isPersistent = message.getJMSDeliveryMode() == DeliveryMode.PERSISTENT;
        System.out.println("  " + (isPersistent ? "persistent" : "not persistent") + ", priority "
                + message.getJMSPriority() + ", delivery " + message.getIntProperty("JMSXDeliveryCount"));
        if (message.getJMSCorrelationID() != null) {
            System.out.println("  JMSCorrelationID = " + message.getJMSCorrelationID());
        }
        if (message.getJMSReplyTo() != null) {
            System.out.println("  JMSReplyTo = " + message.getJMSReplyTo());
        }
        if (message.getJMSType() != null) {
            System.out.println("  JMSType = " + message.getJMSType());
        }
        for (String name : sorted(message.getPropertyNames())) {
            if (!name.startsWith("JMSX")) {
                System.out.println("  property " + name + " = " + typed(message.getObjectProperty(name)));
            }
        }
    }

    private static Iterable<String> sorted(Enumeration<?> names) {
        TreeSet<String> sorted = new TreeSet<>();
        for (Object name : Collections.list(names)) {
            sorted.add(name.toString());
        }
        return sorted;
    }

    private static String typed(Object value) {
        return value == null ? "null" : value.getClass().getSimpleName() + " " + value;
    }

    public static void main(String[] arguments) throws Exception {
        JmsReceiver receiver = new JmsReceiver(Integer.parseInt(arguments[2]));
        boolean isComplete = receiver.receive(arguments[0], arguments[1]);
        System.out.println(isComplete ? "receiver test stop" : "not all came");
        System.exit(isComplete ? 0 : 1);
    }
}
