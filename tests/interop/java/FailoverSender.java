import javax.jms.Connection;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * Sends persistent texts, the numbers from 0, one every few milliseconds, over a transport that fails over.
 *
 * <p>Prints {@code sent NUMBER} for each, {@code failed NUMBER WHY} for one whose send throws, and
 * {@code exception WHY} for each that the listener is told.
 *
 * <p>Use: {@code java FailoverSender URL QUEUE COUNT}.
 */
public final class FailoverSender {
    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[2]);
        Connection connection = new ActiveMQConnectionFactory(arguments[0]).createConnection();
        connection.setExceptionListener(exception -> print("exception " + exception));
        connection.start();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(arguments[1]));
        for (int number = 0; number < count; number++) {
            try {
                producer.send(session.createTextMessage(Integer.toString(number)));
                print("sent " + number);
            } catch (Exception exception) {
                print("failed " + number + " " + exception);
            }
            Thread.sleep(4);
        }
        connection.close();
    }

    private static void print(String line) {
        synchronized (System.out) {
            System.out.println(line);
            System.out.flush();
        }
    }
}
