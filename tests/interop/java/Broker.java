import org.apache.activemq.broker.BrokerService;

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
}
