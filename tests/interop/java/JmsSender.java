import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * Sends a message of each type, not persistent, and a last one with a property of each type.
 *
 * <p>Use: {@code java JmsSender URL QUEUE}.
 */
public final class JmsSender {
    private final Connection connection;
    private final Session session;
    private final MessageProducer producer;

    private JmsSender(String url, String queue) throws JMSException {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(
                ActiveMQConnection.DEFAULT_USER, ActiveMQConnection.DEFAULT_PASSWORD, url);
        connection = factory.createConnection();
        session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Destination destination = session.createQueue(queue);
        producer = session.createProducer(destination);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        connection.start();
    }

    private void sendText() throws JMSException {
        TextMessage message = session.createTextMessage();
        message.setText("ActiveMQ Text Message!");
        producer.send(message);
    }

    private void sendMap() throws JMSException {
        MapMessage message = session.createMapMessage();
        message.setBoolean("boolean", true);
        message.setShort("short", (short) 0);
        message.setLong("long", 123456);
        message.setString("MapMessage", "ActiveMQ Map Message!");
        producer.send(message);
    }

    private void sendStream() throws JMSException {
        StreamMessage message = session.createStreamMessage();
        message.writeString("ActiveMQ stream Message!");
        message.writeBoolean(false);
        message.writeLong(1234567890);
        producer.send(message);
    }

    private void sendObject() throws JMSException {
        ObjectMessage message = session.createObjectMessage();
        message.setObject(new JmsObjectMessageBean("ActiveMQ Object Message", 18, false));
        producer.send(message);
    }

    private void sendBytes() throws Exception {
        BytesMessage message = session.createBytesMessage();
        message.writeBytes("字节消息".getBytes("UTF-8"));
        producer.send(message);
    }

    private void sendProperties() throws JMSException {
        Message message = session.createTextMessage("with everything");
        message.setJMSCorrelationID("correlation");
        message.setJMSReplyTo(session.createQueue("replies"));
        message.setJMSType("type");
        message.setBooleanProperty("aBoolean", true);
        message.setByteProperty("aByte", Byte.MIN_VALUE);
        message.setShortProperty("aShort", Short.MAX_VALUE);
        message.setIntProperty("anInt", Integer.MIN_VALUE);
        message.setLongProperty("aLong", Long.MAX_VALUE);
        message.setFloatProperty("aFloat", 1.5f);
        message.setDoubleProperty("aDouble", -2.25);
        message.setStringProperty("headname", "remoteB");
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        producer.setPriority(7);
        producer.send(message);
    }

    private void close() throws JMSException {
        producer.close();
        session.close();
        connection.close();
    }

    public static void main(String[] arguments) throws Exception {
        JmsSender sender = new JmsSender(arguments[0], arguments[1]);
        sender.sendText();
        sender.sendMap();
        sender.sendStream();
        sender.sendObject();
        sender.sendBytes();
        sender.sendProperties();
        sender.close();
        System.out.println("sender test stop");
    }
}
