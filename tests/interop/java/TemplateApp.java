import javax.jms.Message;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;
import org.springframework.jms.core.JmsTemplate;

/**
 * Spring's template with a default destination, a time limit and a converter.
 *
 * <p>Use: {@code java TemplateApp URL send QUEUE} sends an object, {@code java TemplateApp URL receive QUEUE} takes
 * one, and {@code java TemplateApp URL both QUEUE} does all that a template can do by itself.
 */
public final class TemplateApp {
    public static void main(String[] arguments) {
        String url = arguments[0];
        ActiveMQQueue queue = new ActiveMQQueue(arguments[2]);
        JmsTemplate template = new JmsTemplate();
        template.setConnectionFactory(new ActiveMQConnectionFactory(url));
        template.setDefaultDestination(queue);
        template.setReceiveTimeout(60_000);
        template.afterPropertiesSet();
        JmsTemplate converting = new JmsTemplate();
        converting.setConnectionFactory(new ActiveMQConnectionFactory(url));
        converting.setDefaultDestination(queue);
        converting.setReceiveTimeout(60_000);
        converting.setMessageConverter(new MyMessageConverter());
        converting.afterPropertiesSet();
        switch (arguments[1]) {
            case "send":
                converting.convertAndSend(new MessageObj("7", "信息"));
                System.out.println("sent");
                break;
            case "receive":
                System.out.println("received " + escaped(converting.receiveAndConvert().toString()));
                break;
            default:
                template.send(session -> session.createTextMessage("hello"));
                System.out.println("default " + text(template.receive()));
                String other = arguments[2] + ".other";
                template.send(new ActiveMQQueue(other), session -> session.createTextMessage("other"));
                System.out.println("by name " + text(template.receive(other)));
                ActiveMQTopic topic = new ActiveMQTopic(arguments[2]);
                template.send(topic, session -> session.createTextMessage("nobody hears this"));
                converting.convertAndSend(new MessageObj("8", "both"));
                System.out.println("converted " + converting.receiveAndConvert());
                template.setReceiveTimeout(50);
                System.out.println("nothing " + text(template.receive()));
                template.setReceiveTimeout(JmsTemplate.RECEIVE_TIMEOUT_NO_WAIT);
                System.out.println("nothing " + text(template.receive()));
        }
    }

    private static String text(Message message) {
        try {
            return message == null ? "null" : ((TextMessage) message).getText();
        } catch (javax.jms.JMSException error) {
            return error.toString();
        }
    }

    /** In ASCII, as the console may have no other characters. */
    private static String escaped(String text) {
        StringBuilder escaped = new StringBuilder();
        text.chars().forEach(c -> escaped.append(c < 128 ? Character.toString((char) c) : String.format("\\u%04x", c)));
        return escaped.toString();
    }
}
