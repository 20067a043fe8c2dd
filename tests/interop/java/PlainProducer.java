import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * Sends one text with one property, and closes the connection only.
 *
 * <p>Use: {@code java PlainProducer URL QUEUE}.
 */
public final class PlainProducer {
    public static void main(String[] arguments) throws JMSException {
        ActiveMQConnectionFactory connectionFactory = new ActiveMQConnectionFactory(arguments[0]);
        Connection connection = connectionFactory.createConnection();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Destination destination = session.createQueue(arguments[1]);
        MessageProducer producer = session.createProducer(destination);
        TextMessage message = session.createTextMessage("the expected body");
        message.setStringProperty("headname", "remoteB");
        producer.send(message);
        connection.close();
        System.out.println("sent " + message.getJMSMessageID());
    }
}
