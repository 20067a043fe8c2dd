import java.util.List;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.region.policy.IndividualDeadLetterStrategy;
import org.apache.activemq.broker.region.policy.PolicyEntry;
import org.apache.activemq.broker.region.policy.PolicyMap;

/**
 * A real ActiveMQ on a free port of this machine, without a store. Prints {@code url tcp://...} and ends with its
 * standard input.
 */
public final class Broker {
    public static void main(String[] arguments) throws Exception {
        BrokerService broker = new BrokerService();
        broker.setBrokerName("activemq");
        broker.setPersistent(false);
        broker.setUseJmx(false);
        broker.setUseShutdownHook(false);
        broker.setDestinationPolicy(deadLettersApart("remote.>"));
        broker.addConnector("tcp://127.0.0.1:0");
        broker.start();
        broker.waitUntilStarted();
        System.out.println("url " + broker.getTransportConnectors().get(0).getPublishableConnectString());
        while (System.in.read() != -1) {
            // What is written to it means nothing; only its end does.
        }
        broker.stop();
        broker.waitUntilStopped();
    }

    /** Each of these queues has dead letters of its own, so that tests run beside each other; all others share one queue. */
    private static PolicyMap deadLettersApart(String queues) {
        IndividualDeadLetterStrategy apart = new IndividualDeadLetterStrategy();
        apart.setQueuePrefix("DLQ.");
        PolicyEntry entry = new PolicyEntry();
        entry.setQueue(queues);
        entry.setDeadLetterStrategy(apart);
        PolicyMap policies = new PolicyMap();
        policies.setPolicyEntries(List.of(entry));
        return policies;
    }
}
