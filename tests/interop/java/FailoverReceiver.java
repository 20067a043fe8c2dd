import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.TransactionRolledBackException;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * Receives texts in transactions of one message each, over a transport that fails over, until so many are committed.
 *
 * <p>Prints {@code committed TEXT} where the commit returned, {@code rolled back TEXT} where it is said to have been rolled
 * back, {@code failed TEXT WHY} where it throws anything else, and {@code exception WHY} for each that the listener is told.
 *
 * <p>Use: {@code java FailoverReceiver URL QUEUE COUNT}.
 */
public final class FailoverReceiver {
    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[2]);
        Connection connection = new ActiveMQConnectionFactory(arguments[0]).createConnection();
        connection.setExceptionListener(exception -> print("exception " + exception));
        connection.start();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(arguments[1]));
        int committed = 0;
        // The last one may be in doubt: then there is nothing more to come.
        int nothing = 0;
        while (committed < count && nothing < 4) {
            TextMessage message = (TextMessage) consumer.receive(5_000);
            if (message == null) {
                nothing++;
                continue;
            }
            nothing = 0;
            Thread.sleep(4);
            try {
                session.commit();
                committed++;
                print("committed " + message.getText());
            } catch (TransactionRolledBackException exception) {
                print("rolled back " + message.getText());
            } catch (JMSException exception) {
                print("failed " + message.getText() + " " + exception);
            }
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
