import java.util.Collections;
import java.util.Enumeration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.ConnectionFactory;
import javax.jms.Message;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.jms.annotation.JmsListenerAnnotationBeanPostProcessor;
import org.springframework.jms.config.DefaultJmsListenerContainerFactory;
import org.springframework.jms.config.JmsListenerEndpointRegistry;
import org.springframework.jms.connection.CachingConnectionFactory;
import org.springframework.jms.core.JmsMessagingTemplate;
import org.springframework.jms.core.JmsTemplate;

/**
 * A Spring application on a broker: a listener that answers, a template, and Spring's messaging template.
 *
 * <p>Use: {@code java SpringApp URL}; prints {@code OK} when all came.
 */
public final class SpringApp {
    private static final CountDownLatch HEARD = new CountDownLatch(1);
    private static String url;

    /**
     * The beans. Debian's Spring 4.3 cannot make classes of its own at run time, so neither {@code @Configuration} nor
     * {@code @EnableJms} works; beans of a plain class do, and the first two are those that {@code @EnableJms} would
     * add.
     */
    public static class Config {
        @Bean(name = "org.springframework.jms.config.internalJmsListenerAnnotationProcessor")
        public static JmsListenerAnnotationBeanPostProcessor jmsListenerProcessor() {
            return new JmsListenerAnnotationBeanPostProcessor();
        }

        @Bean(name = "org.springframework.jms.config.internalJmsListenerEndpointRegistry")
        public static JmsListenerEndpointRegistry jmsListenerRegistry() {
            return new JmsListenerEndpointRegistry();
        }

        @Bean
        public ConnectionFactory connectionFactory() {
            return new CachingConnectionFactory(new ActiveMQConnectionFactory(url));
        }

        @Bean
        public JmsTemplate jmsTemplate(ConnectionFactory connectionFactory) {
            JmsTemplate template = new JmsTemplate(connectionFactory);
            template.setReceiveTimeout(30_000);
            return template;
        }

        @Bean
        public JmsMessagingTemplate jmsMessagingTemplate(JmsTemplate template) {
            return new JmsMessagingTemplate(template);
        }

        @Bean
        public DefaultJmsListenerContainerFactory jmsListenerContainerFactory(ConnectionFactory connectionFactory) {
            DefaultJmsListenerContainerFactory factory = new DefaultJmsListenerContainerFactory();
            factory.setConnectionFactory(connectionFactory);
            factory.setConcurrency("1-3");
            return factory;
        }

        @Bean
        public Listener listener() {
            return new Listener();
        }
    }

    public static class Listener {
        @JmsListener(destination = "app.in")
        public String onText(String text) {
            System.out.println("listener got " + text);
            HEARD.countDown();
            return "re:" + text;
        }
    }

    public static void main(String[] arguments) throws Exception {
        url = arguments[0];
        AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext(Config.class);
        JmsTemplate template = context.getBean(JmsTemplate.class);
        Message reply = template.sendAndReceive("app.in", session -> session.createTextMessage("hello"));
        System.out.println("reply " + (reply == null ? "none" : ((TextMessage) reply).getText()));
        boolean isHeard = HEARD.await(30, TimeUnit.SECONDS);

        template.convertAndSend("app.browsed", "pale", message -> {
            message.setStringProperty("colour", "white");
            return message;
        });
        int browsed = template.browse("app.browsed",
                (session, browser) -> Collections.list((Enumeration<?>) browser.getEnumeration()).size());
        System.out.println("browse app.browsed " + browsed);

        context.getBean(JmsMessagingTemplate.class).convertAndSend("app.conv", Collections.singletonMap("k", 1));
        Object map = template.receiveAndConvert("app.conv");
        System.out.println("map " + map);

        boolean isWell = isHeard && reply != null && "re:hello".equals(((TextMessage) reply).getText()) && browsed == 1
                && Collections.singletonMap("k", 1).equals(map);
        System.out.println(isWell ? "OK" : "FAILED");
        context.close();
        System.exit(isWell ? 0 : 1);
    }
}
