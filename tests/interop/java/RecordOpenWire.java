import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.activemq.command.*;
import org.apache.activemq.openwire.OpenWireFormat;
import org.apache.activemq.util.ByteSequence;

/**
 * Records how ActiveMQ's own classes stand on the wire: each structure of OpenWire in versions 9 to 12, in loose
 * encoding without cache, one a line, as its name and its frame without the size in hexadecimal digits.
 *
 * <p>Use: {@code java RecordOpenWire DIRECTORY}. What every field holds is said again by the test that reads the files.
 */
public final class RecordOpenWire {
    private static final String CONNECTION = "ID:host-1-2-1:1";
    private static final ConnectionId CONNECTION_ID = new ConnectionId(CONNECTION);
    private static final SessionId SESSION_ID = new SessionId(CONNECTION_ID, 3);
    private static final ConsumerId CONSUMER_ID = new ConsumerId(SESSION_ID, 5);
    private static final ProducerId PRODUCER_ID = new ProducerId(SESSION_ID, 7);
    private static final BrokerId BROKER_ID = new BrokerId("broker-1");
    private static final BrokerId[] BROKERS = {BROKER_ID, new BrokerId("broker-2")};
    private static final ActiveMQDestination QUEUE = new ActiveMQQueue("orders");
    private static final ActiveMQDestination TOPIC = new ActiveMQTopic("prices");
    private static final ActiveMQDestination TEMPORARY_QUEUE = new ActiveMQTempQueue(CONNECTION + ":9");
    private static final ActiveMQDestination TEMPORARY_TOPIC = new ActiveMQTempTopic(CONNECTION + ":10");
    private static final LocalTransactionId LOCAL = new LocalTransactionId(CONNECTION_ID, 11);

    private final Map<String, DataStructure> structures = new LinkedHashMap<>();

    public static void main(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[0]);
        for (int version = 9; version <= 12; version++) {
            record(directory.resolve("structures-v" + version + ".txt"), version, false);
        }
        record(directory.resolve("structures-v12-stack-traces.txt"), 12, true);
    }

    private static void record(Path file, int version, boolean stackTraces) throws Exception {
        OpenWireFormat format = new OpenWireFormat(version);
        format.setTightEncodingEnabled(false);
        format.setCacheEnabled(false);
        format.setStackTraceEnabled(stackTraces);
        RecordOpenWire recorder = new RecordOpenWire();
        recorder.connections();
        recorder.control();
        recorder.deliveries();
        recorder.responses();
        recorder.brokers();
        recorder.journal();
        recorder.identifiers();
        recorder.messages();
        if (version < 12) {
            recorder.structures.remove("BrokerSubscriptionInfo");
        }
        try (PrintStream out = new PrintStream(Files.newOutputStream(file), false, "UTF-8")) {
            for (Map.Entry<String, DataStructure> entry : recorder.structures.entrySet()) {
                out.println(entry.getKey() + " " + hexadecimal(format, entry.getValue()));
            }
        }
    }

    private static String hexadecimal(OpenWireFormat format, DataStructure structure) throws IOException {
        ByteSequence frame = format.marshal(structure);
        StringBuilder text = new StringBuilder();
        for (int index = 4; index < frame.length; index++) {
            text.append(String.format("%02x", frame.data[frame.offset + index]));
        }
        return text.toString();
    }

    private void add(String name, DataStructure structure) {
        if (structure instanceof Command && structure.getDataStructureType() != CommandTypes.WIREFORMAT_INFO
                && structure.getDataStructureType() != CommandTypes.PARTIAL_COMMAND
                && structure.getDataStructureType() != CommandTypes.PARTIAL_LAST_COMMAND) {
            ((Command) structure).setCommandId(258);
            ((Command) structure).setResponseRequired(true);
        }
        structures.put(name, structure);
    }

    private void connections() throws Exception {
        WireFormatInfo format = new WireFormatInfo();
        format.setVersion(12);
        format.setCacheSize(1024);
        add("WireFormatInfo", format);

        ConnectionInfo connection = new ConnectionInfo(CONNECTION_ID);
        connection.setClientId("clientId");
        connection.setPassword("password");
        connection.setUserName("userName");
        connection.setBrokerPath(BROKERS);
        connection.setManageable(true);
        connection.setFaultTolerant(true);
        connection.setClientMaster(false);
        connection.setFailoverReconnect(true);
        connection.setClientIp("clientIp");
        add("ConnectionInfo", connection);

        add("SessionInfo", new SessionInfo(SESSION_ID));

        ProducerInfo producer = new ProducerInfo(PRODUCER_ID);
        producer.setDestination(QUEUE);
        producer.setBrokerPath(BROKERS);
        producer.setDispatchAsync(true);
        producer.setWindowSize(4096);
        add("ProducerInfo", producer);
        add("ProducerInfo-anonymous", new ProducerInfo(PRODUCER_ID));

        ConsumerInfo consumer = consumer();
        consumer.setAdditionalPredicate(filter());
        add("ConsumerInfo", consumer);

        DestinationInfo destination =
                new DestinationInfo(CONNECTION_ID, DestinationInfo.REMOVE_OPERATION_TYPE, TEMPORARY_QUEUE);
        destination.setTimeout(77);
        destination.setBrokerPath(BROKERS);
        add("DestinationInfo", destination);

        RemoveSubscriptionInfo subscription = new RemoveSubscriptionInfo();
        subscription.setConnectionId(CONNECTION_ID);
        subscription.setSubscriptionName("subscriptionName");
        subscription.setClientId("clientId");
        add("RemoveSubscriptionInfo", subscription);

        RemoveInfo remove = new RemoveInfo(CONSUMER_ID);
        remove.setLastDeliveredSequenceId(-2);
        add("RemoveInfo", remove);

        TransactionInfo transaction = new TransactionInfo(CONNECTION_ID, xa(), TransactionInfo.PREPARE);
        add("TransactionInfo", transaction);
        add("TransactionInfo-recover", new TransactionInfo(CONNECTION_ID, null, TransactionInfo.RECOVER));

        SubscriptionInfo durable = new SubscriptionInfo("clientId", "subscriptionName");
        durable.setDestination(TOPIC);
        durable.setSelector("selector");
        durable.setSubscribedDestination(TEMPORARY_TOPIC);
        durable.setNoLocal(true);
        add("SubscriptionInfo", durable);
    }

    private static ConsumerInfo consumer() {
        ConsumerInfo consumer = new ConsumerInfo(CONSUMER_ID);
        consumer.setBrowser(true);
        consumer.setDestination(TOPIC);
        consumer.setPrefetchSize(32766);
        consumer.setMaximumPendingMessageLimit(-1);
        consumer.setDispatchAsync(true);
        consumer.setSelector("selector");
        consumer.setClientId("clientId");
        consumer.setSubscriptionName("subscriptionName");
        consumer.setNoLocal(true);
        consumer.setExclusive(false);
        consumer.setRetroactive(true);
        consumer.setPriority((byte) -3);
        consumer.setBrokerPath(BROKERS);
        consumer.setNetworkSubscription(true);
        consumer.setOptimizedAcknowledge(false);
        consumer.setNoRangeAcks(true);
        consumer.addNetworkConsumerId(CONSUMER_ID);
        return consumer;
    }

    private static NetworkBridgeFilter filter() {
        NetworkBridgeFilter filter = new NetworkBridgeFilter();
        filter.setNetworkBrokerId(BROKER_ID);
        filter.setNetworkTTL(2);
        filter.setMessageTTL(3);
        filter.setConsumerTTL(4);
        return filter;
    }

    private void control() {
        add("KeepAliveInfo", new KeepAliveInfo());
        add("ShutdownInfo", new ShutdownInfo());
        add("FlushCommand", new FlushCommand());
        ControlCommand control = new ControlCommand();
        control.setCommand("command");
        add("ControlCommand", control);

        ConnectionError error = new ConnectionError();
        error.setException(exception());
        error.setConnectionId(CONNECTION_ID);
        add("ConnectionError", error);

        ConsumerControl consumer = new ConsumerControl();
        consumer.setDestination(QUEUE);
        consumer.setConsumerId(CONSUMER_ID);
        consumer.setClose(true);
        consumer.setPrefetch(100);
        consumer.setFlush(false);
        consumer.setStart(true);
        consumer.setStop(false);
        add("ConsumerControl", consumer);

        ConnectionControl connection = new ConnectionControl();
        connection.setClose(true);
        connection.setExit(false);
        connection.setFaultTolerant(true);
        connection.setResume(false);
        connection.setSuspend(true);
        connection.setConnectedBrokers("connectedBrokers");
        connection.setReconnectTo("reconnectTo");
        connection.setRebalanceConnection(true);
        connection.setToken(new byte[] {1, 2, 3});
        add("ConnectionControl", connection);

        add("ProducerAck", new ProducerAck(PRODUCER_ID, 4096));
        add("ReplayCommand", replay());
        PartialCommand part = new PartialCommand();
        part.setCommandId(258);
        part.setData(new byte[] {1, 2, 3});
        add("PartialCommand", part);
        // Its own class takes no data; on the wire it has none then.
        LastPartialCommand last = new LastPartialCommand();
        last.setCommandId(258);
        add("LastPartialCommand", last);
    }

    private static ReplayCommand replay() {
        ReplayCommand replay = new ReplayCommand();
        replay.setFirstNakNumber(13);
        replay.setLastNakNumber(14);
        return replay;
    }

    private static Throwable exception() {
        Throwable cause = new IllegalStateException((String) null);
        cause.setStackTrace(new StackTraceElement[] {new StackTraceElement("Inner", "method", null, -1)});
        Throwable exception = new javax.jms.InvalidSelectorException("message");
        exception.setStackTrace(new StackTraceElement[] {
            new StackTraceElement("Outer", "first", "Outer.java", 10),
            new StackTraceElement("Outer", "second", "Outer.java", 20)});
        exception.initCause(cause);
        return exception;
    }

    private void deliveries() throws Exception {
        MessagePull pull = new MessagePull();
        pull.setConsumerId(CONSUMER_ID);
        pull.setDestination(QUEUE);
        pull.setTimeout(-1);
        pull.setCorrelationId("correlationId");
        pull.setMessageId(id());
        add("MessagePull", pull);

        MessageDispatch dispatch = new MessageDispatch();
        dispatch.setConsumerId(CONSUMER_ID);
        dispatch.setDestination(QUEUE);
        ActiveMQTextMessage message = new ActiveMQTextMessage();
        message.setText("text");
        message.setMessageId(id());
        dispatch.setMessage(message);
        dispatch.setRedeliveryCounter(2);
        add("MessageDispatch", dispatch);
        MessageDispatch end = new MessageDispatch();
        end.setConsumerId(CONSUMER_ID);
        end.setDestination(QUEUE);
        add("MessageDispatch-end", end);

        MessageAck ack = new MessageAck();
        ack.setDestination(QUEUE);
        ack.setTransactionId(LOCAL);
        ack.setConsumerId(CONSUMER_ID);
        ack.setAckType(MessageAck.POISON_ACK_TYPE);
        ack.setFirstMessageId(id());
        ack.setLastMessageId(new MessageId(PRODUCER_ID, 43));
        ack.setMessageCount(2);
        ack.setPoisonCause(exception());
        add("MessageAck", ack);

        MessageDispatchNotification notification = new MessageDispatchNotification();
        notification.setConsumerId(CONSUMER_ID);
        notification.setDestination(QUEUE);
        notification.setDeliverySequenceId(15);
        notification.setMessageId(id());
        add("MessageDispatchNotification", notification);
    }

    private void responses() {
        Response response = new Response();
        response.setCorrelationId(99);
        add("Response", response);
        ExceptionResponse exception = new ExceptionResponse(exception());
        exception.setCorrelationId(99);
        add("ExceptionResponse", exception);
        DataResponse data = new DataResponse(QUEUE);
        data.setCorrelationId(99);
        add("DataResponse", data);
        DataArrayResponse array = new DataArrayResponse(new DataStructure[] {xa(), LOCAL});
        array.setCorrelationId(99);
        add("DataArrayResponse", array);
        IntegerResponse integer = new IntegerResponse(3);
        integer.setCorrelationId(99);
        add("IntegerResponse", integer);
    }

    private void brokers() {
        BrokerInfo peer = new BrokerInfo();
        peer.setBrokerName("peer");
        BrokerInfo broker = new BrokerInfo();
        broker.setBrokerId(BROKER_ID);
        broker.setBrokerURL("brokerURL");
        broker.setPeerBrokerInfos(new BrokerInfo[] {peer});
        broker.setBrokerName("brokerName");
        broker.setSlaveBroker(true);
        broker.setMasterBroker(false);
        broker.setFaultTolerantConfiguration(true);
        broker.setDuplexConnection(false);
        broker.setNetworkConnection(true);
        broker.setConnectionId(16);
        broker.setBrokerUploadUrl("brokerUploadUrl");
        broker.setNetworkProperties("networkProperties");
        add("BrokerInfo", broker);

        DiscoveryEvent event = new DiscoveryEvent("serviceName");
        event.setBrokerName("brokerName");
        add("DiscoveryEvent", event);
        add("NetworkBridgeFilter", filter());

        BrokerSubscriptionInfo subscriptions = new BrokerSubscriptionInfo("brokerName");
        subscriptions.setBrokerId(BROKER_ID);
        subscriptions.setSubscriptionInfos(new ConsumerInfo[] {consumer()});
        add("BrokerSubscriptionInfo", subscriptions);
    }

    private void journal() {
        JournalTopicAck topic = new JournalTopicAck();
        topic.setDestination(TOPIC);
        topic.setMessageId(id());
        topic.setMessageSequenceId(17);
        topic.setSubscritionName("subscriptionName");
        topic.setClientId("clientId");
        topic.setTransactionId(LOCAL);
        add("JournalTopicAck", topic);

        MessageAck ack = new MessageAck();
        ack.setCommandId(258);
        ack.setConsumerId(CONSUMER_ID);
        ack.setAckType(MessageAck.INDIVIDUAL_ACK_TYPE);
        ack.setMessageCount(1);
        JournalQueueAck queue = new JournalQueueAck();
        queue.setDestination(QUEUE);
        queue.setMessageAck(ack);
        add("JournalQueueAck", queue);

        add("JournalTrace", new JournalTrace("message"));
        add("JournalTransaction", new JournalTransaction((byte) 2, xa(), true));
    }

    private void identifiers() {
        add("ConnectionId", CONNECTION_ID);
        add("SessionId", SESSION_ID);
        add("ConsumerId", CONSUMER_ID);
        add("ProducerId", PRODUCER_ID);
        add("BrokerId", BROKER_ID);
        add("MessageId", id());
        MessageId foreign = id();
        foreign.setTextView("textView");
        add("MessageId-foreign", foreign);
        add("LocalTransactionId", LOCAL);
        add("XATransactionId", xa());
        add("Queue", QUEUE);
        add("Topic", TOPIC);
        add("TempQueue", TEMPORARY_QUEUE);
        add("TempTopic", TEMPORARY_TOPIC);
    }

    private static MessageId id() {
        MessageId id = new MessageId(PRODUCER_ID, 42);
        id.setBrokerSequenceId(1001);
        return id;
    }

    private static XATransactionId xa() {
        XATransactionId id = new XATransactionId();
        id.setFormatId(12);
        id.setGlobalTransactionId(new byte[] {1, 2});
        id.setBranchQualifier(new byte[] {3});
        return id;
    }

    private void messages() throws Exception {
        ActiveMQMessage all = new ActiveMQMessage();
        all.setProducerId(PRODUCER_ID);
        all.setDestination(QUEUE);
        all.setTransactionId(LOCAL);
        all.setOriginalDestination(TOPIC);
        all.setMessageId(id());
        all.setOriginalTransactionId(xa());
        all.setGroupID("groupID");
        all.setGroupSequence(18);
        all.setCorrelationId("correlationId");
        all.setPersistent(true);
        all.setExpiration(19);
        all.setPriority((byte) 8);
        all.setReplyTo(TEMPORARY_QUEUE);
        all.setTimestamp(20);
        all.setType("type");
        all.setProperty("property", 21);
        all.setDataStructure(SESSION_ID);
        all.setTargetConsumerId(CONSUMER_ID);
        all.setCompressed(true);
        all.setRedeliveryCounter(22);
        all.setBrokerPath(BROKERS);
        all.setArrival(23);
        all.setUserID("userID");
        all.setRecievedByDFBridge(true);
        all.setDroppable(false);
        all.setCluster(new BrokerId[] {BROKER_ID});
        all.setBrokerInTime(24);
        all.setBrokerOutTime(25);
        all.setJMSXGroupFirstForConsumer(true);
        add("Message", all);

        bodies("", false);
        bodies("-compressed", true);

        ActiveMQMapMessage values = new ActiveMQMapMessage();
        values.setProperty("list", new ArrayList<>(List.of("a", 1, List.of(true))));
        values.setProperty("map", Map.of("inner", 1.5));
        values.setProperty("null", null);
        values.setProperty("long", "x".repeat(8191));
        values.setBoolean("boolean", true);
        values.setByte("byte", (byte) -1);
        values.setChar("char", 'é');
        values.setShort("short", (short) -2);
        values.setInt("int", 7);
        values.setLong("long", 1L << 40);
        values.setFloat("float", 1.5f);
        values.setDouble("double", -0.0);
        values.setString("string", "a\0é名😀");
        values.setBytes("bytes", new byte[] {1, 2, 3});
        add("MapMessage-values", values);

        ActiveMQBlobMessage blob = new ActiveMQBlobMessage();
        blob.setRemoteBlobUrl("remoteBlobUrl");
        blob.setMimeType("mimeType");
        blob.setDeletedByBroker(true);
        add("BlobMessage", blob);
    }

    private void bodies(String suffix, boolean compressed) throws Exception {
        ActiveMQTextMessage text = new ActiveMQTextMessage();
        text.setText("a\0é名😀");
        ActiveMQBytesMessage bytes = new ActiveMQBytesMessage();
        bytes.writeInt(7);
        bytes.writeUTF("grüße");
        ActiveMQMapMessage map = new ActiveMQMapMessage();
        map.setInt("int", 7);
        ActiveMQStreamMessage stream = new ActiveMQStreamMessage();
        stream.writeLong(8);
        stream.writeString("item");
        stream.writeObject(null);
        ActiveMQObjectMessage object = new ActiveMQObjectMessage();
        object.setObject("object");
        Map<String, ActiveMQMessage> all = new LinkedHashMap<>();
        all.put("TextMessage", text);
        all.put("BytesMessage", bytes);
        all.put("MapMessage", map);
        all.put("StreamMessage", stream);
        all.put("ObjectMessage", object);
        for (Map.Entry<String, ActiveMQMessage> entry : all.entrySet()) {
            entry.getValue().storeContent();
            if (compressed) {
                entry.getValue().compress();
            }
            add(entry.getKey() + suffix, entry.getValue());
        }
    }
}
