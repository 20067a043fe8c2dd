package suite;

import static suite.Ground.check;
import static suite.Ground.same;
import static suite.Ground.take;
import static suite.Ground.text;

import java.io.Serializable;
import java.util.Arrays;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;

/** A message arrives as it was sent, to the last property. */
final class Messages {
    /** The sizes of a text at which the client changes how it is written are 8191 and 32767. */
    private static final List<String> TEXTS = List.of(
            "", "plain", "Grüße, \u5b57\u8282\u6d88\u606f", "an emoji \ud83d\ude00 and a NUL \u0000 within",
            "x".repeat(8_190), "y".repeat(8_191), "\u00e9".repeat(40_000));

    private Messages() {}

    static void addTo(Suite suite) {
        suite.add("texts", ground -> texts(new Ends(ground, "")));
        suite.add("maps", ground -> maps(new Ends(ground, "")));
        suite.add("streams", ground -> streams(new Ends(ground, "")));
        suite.add("bytes", ground -> bytes(new Ends(ground, "")));
        suite.add("objects", ground -> objects(new Ends(ground, "")));
        suite.add("messages_without_a_body", Messages::withoutBody);
        suite.add("compressed_bodies", Messages::compressed);
        suite.add("properties", Messages::properties);
        suite.add("headers", Messages::headers);
        suite.add("non_persistent_messages", Messages::nonPersistent);
        suite.add("expired_messages_do_not_arrive", Messages::expired);
        suite.add("priorities", Messages::priorities);
        suite.add("large_messages", Messages::large);
        suite.add("many_small_messages_in_their_order", Messages::many);
    }

    /** Two ends of this case's queue, on two connections. */
    private static final class Ends {
        final Session session;
        final MessageProducer producer;
        final MessageConsumer consumer;

        Ends(Ground ground, String options) throws Exception {
            session = ground.connect(options).createSession(false, Session.AUTO_ACKNOWLEDGE);
            producer = session.createProducer(session.createQueue(ground.name()));
            Session receiving = ground.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
            consumer = receiving.createConsumer(receiving.createQueue(ground.name()));
        }

        <M extends Message> M pass(M message, Class<M> type) throws Exception {
            producer.send(message);
            Message arrived = take(consumer);
            check(type.isInstance(arrived), "expected a " + type.getSimpleName() + ", not " + arrived);
            same(message.getJMSMessageID(), arrived.getJMSMessageID(), "JMSMessageID");
            return type.cast(arrived);
        }
    }

    private static void texts(Ends ends) throws Exception {
        for (String text : TEXTS) {
            TextMessage arrived = ends.pass(ends.session.createTextMessage(text), TextMessage.class);
            check(text.equals(arrived.getText()), "a text of " + text.length() + " came as another");
        }
        TextMessage none = ends.pass(ends.session.createTextMessage(), TextMessage.class);
        same(null, none.getText(), "a text that was never set");
    }

    private static void maps(Ends ends) throws Exception {
        MapMessage message = ends.session.createMapMessage();
        message.setBoolean("boolean", true);
        message.setByte("byte", Byte.MIN_VALUE);
        message.setShort("short", Short.MAX_VALUE);
        message.setChar("char", '\u5b57');
        message.setInt("int", Integer.MIN_VALUE);
        message.setLong("long", Long.MAX_VALUE);
        message.setFloat("float", Float.MIN_VALUE);
        message.setDouble("double", -0.0);
        message.setString("string", "字节");
        message.setString("long string", "z".repeat(40_000));
        message.setBytes("bytes", new byte[] {0, -1, 127});
        message.setObject("null", null);
        MapMessage arrived = ends.pass(message, MapMessage.class);
        same(content(message), content(arrived), "the map");
        same('\u5b57', arrived.getChar("char"), "the char");
        MapMessage empty = ends.pass(ends.session.createMapMessage(), MapMessage.class);
        check(!empty.getMapNames().hasMoreElements(), "an empty map came with something in it");
    }

    private static Map<String, Object> content(MapMessage message) throws Exception {
        Map<String, Object> content = new HashMap<>();
        for (Object name : Collections.list((Enumeration<?>) message.getMapNames())) {
            Object value = message.getObject((String) name);
            content.put((String) name, value instanceof byte[] ? Arrays.toString((byte[]) value) : value);
        }
        return content;
    }

    private static void streams(Ends ends) throws Exception {
        StreamMessage message = ends.session.createStreamMessage();
        message.writeString("ActiveMQ stream Message!");
        message.writeBoolean(false);
        message.writeByte((byte) -7);
        message.writeShort((short) 300);
        message.writeChar('c');
        message.writeInt(1 << 30);
        message.writeLong(1_234_567_890L);
        message.writeFloat(1.5f);
        message.writeDouble(Math.PI);
        message.writeBytes(new byte[] {1, 2, 3});
        message.writeObject(null);
        message.writeString("w".repeat(40_000));
        StreamMessage arrived = ends.pass(message, StreamMessage.class);
        same("ActiveMQ stream Message!", arrived.readString(), "the string");
        same(false, arrived.readBoolean(), "the boolean");
        same((byte) -7, arrived.readByte(), "the byte");
        same((short) 300, arrived.readShort(), "the short");
        same('c', arrived.readChar(), "the char");
        same(1 << 30, arrived.readInt(), "the int");
        same(1_234_567_890L, arrived.readLong(), "the long");
        same(1.5f, arrived.readFloat(), "the float");
        same(Math.PI, arrived.readDouble(), "the double");
        same(new byte[] {1, 2, 3}, arrived.readObject(), "the bytes");
        same(null, arrived.readObject(), "the null");
        same(40_000, arrived.readString().length(), "the length of the long string");
        Ground.fails(javax.jms.MessageEOFException.class, "reading on", arrived::readObject);
    }

    private static void bytes(Ends ends) throws Exception {
        for (int length : new int[] {0, 1, 255, 65_536, 300_000}) {
            byte[] content = new byte[length];
            new Random(length).nextBytes(content);
            BytesMessage message = ends.session.createBytesMessage();
            message.writeBytes(content);
            BytesMessage arrived = ends.pass(message, BytesMessage.class);
            same((long) length, arrived.getBodyLength(), "the length");
            byte[] found = new byte[length];
            same(length, arrived.readBytes(found), "the number of bytes read");
            check(Arrays.equals(content, found), length + " bytes came as others");
        }
    }

    /** Something with parts. */
    static final class Person implements Serializable {
        private static final long serialVersionUID = 1;
        private final String name;
        private final List<Integer> numbers;

        Person(String name, Integer... numbers) {
            this.name = name;
            this.numbers = List.of(numbers);
        }
    }

    private static void objects(Ends ends) throws Exception {
        ObjectMessage arrived =
                ends.pass(ends.session.createObjectMessage(new Person("Söhne", 1, 2)), ObjectMessage.class);
        Person person = (Person) arrived.getObject();
        same("Söhne", person.name, "the name");
        same(List.of(1, 2), person.numbers, "the numbers");
        ObjectMessage none = ends.pass(ends.session.createObjectMessage(), ObjectMessage.class);
        same(null, none.getObject(), "an object that was never set");
    }

    private static void withoutBody(Ground ground) throws Exception {
        Ends ends = new Ends(ground, "");
        Message message = ends.session.createMessage();
        message.setStringProperty("only", "a property");
        Message arrived = ends.pass(message, Message.class);
        same("a property", arrived.getStringProperty("only"), "the property");
        check(!(arrived instanceof TextMessage || arrived instanceof BytesMessage), "it came as " + arrived);
    }

    private static void compressed(Ground ground) throws Exception {
        Ends ends = new Ends(ground, "jms.useCompression=true");
        texts(ends);
        maps(ends);
        streams(ends);
        bytes(ends);
        objects(ends);
    }

    private static void properties(Ground ground) throws Exception {
        Ends ends = new Ends(ground, "");
        Message message = ends.session.createTextMessage("with properties");
        message.setBooleanProperty("aBoolean", true);
        message.setByteProperty("aByte", Byte.MAX_VALUE);
        message.setShortProperty("aShort", Short.MIN_VALUE);
        message.setIntProperty("anInt", Integer.MAX_VALUE);
        message.setLongProperty("aLong", Long.MIN_VALUE);
        message.setFloatProperty("aFloat", Float.NaN);
        message.setDoubleProperty("aDouble", Double.MIN_VALUE);
        // No emoji: the client itself reads two characters that are none out of one in a property.
        message.setStringProperty("aString", "Grüße, \u5b57\u8282");
        message.setStringProperty("aLongString", "p".repeat(20_000));
        message.setStringProperty("anEmptyString", "");
        message.setObjectProperty("aNull", null);
        Message arrived = ends.pass(message, Message.class);
        Map<String, Object> expected = new HashMap<>();
        Map<String, Object> found = new HashMap<>();
        for (Object name : Collections.list((Enumeration<?>) message.getPropertyNames())) {
            expected.put((String) name, message.getObjectProperty((String) name));
        }
        for (Object name : Collections.list((Enumeration<?>) arrived.getPropertyNames())) {
            // The client counts this among the properties of what was delivered.
            if (!name.equals("JMSXDeliveryCount")) {
                found.put((String) name, arrived.getObjectProperty((String) name));
            }
        }
        expected.remove("JMSXDeliveryCount");
        same(expected.keySet(), found.keySet(), "the names of the properties");
        for (String name : expected.keySet()) {
            same(expected.get(name), found.get(name), "the property " + name);
        }
        check(found.size() >= 10, "only " + found.keySet() + " came");
    }

    private static void headers(Ground ground) throws Exception {
        Ends ends = new Ends(ground, "");
        Queue replies = ends.session.createQueue(ground.name("replies"));
        TextMessage message = ends.session.createTextMessage("with headers");
        message.setJMSCorrelationID("correlation 字");
        message.setJMSReplyTo(replies);
        message.setJMSType("a type");
        message.setStringProperty("JMSXGroupID", "group");
        message.setIntProperty("JMSXGroupSeq", 3);
        ends.producer.setPriority(7);
        ends.producer.setTimeToLive(3_600_000);
        long before = System.currentTimeMillis();
        TextMessage arrived = ends.pass(message, TextMessage.class);
        same("correlation 字", arrived.getJMSCorrelationID(), "JMSCorrelationID");
        same(replies, arrived.getJMSReplyTo(), "JMSReplyTo");
        same("a type", arrived.getJMSType(), "JMSType");
        same("group", arrived.getStringProperty("JMSXGroupID"), "JMSXGroupID");
        same(3, arrived.getIntProperty("JMSXGroupSeq"), "JMSXGroupSeq");
        same(7, arrived.getJMSPriority(), "JMSPriority");
        same(DeliveryMode.PERSISTENT, arrived.getJMSDeliveryMode(), "JMSDeliveryMode");
        same(ends.session.createQueue(ground.name()), arrived.getJMSDestination(), "JMSDestination");
        same(message.getJMSTimestamp(), arrived.getJMSTimestamp(), "JMSTimestamp");
        check(arrived.getJMSTimestamp() >= before, "JMSTimestamp is before the send");
        same(message.getJMSTimestamp() + 3_600_000, arrived.getJMSExpiration(), "JMSExpiration");
        Ground.checkDelivery(arrived, 1);
    }

    private static void nonPersistent(Ground ground) throws Exception {
        Ends ends = new Ends(ground, "");
        ends.producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        TextMessage arrived = ends.pass(ends.session.createTextMessage("light"), TextMessage.class);
        same(DeliveryMode.NON_PERSISTENT, arrived.getJMSDeliveryMode(), "JMSDeliveryMode");
    }

    private static void expired(Ground ground) throws Exception {
        Session session = ground.session();
        MessageProducer producer = session.createProducer(session.createQueue(ground.name()));
        producer.setTimeToLive(1);
        Message old = session.createTextMessage("old");
        producer.send(old);
        producer.setTimeToLive(0);
        producer.send(session.createTextMessage("fresh"));
        while (System.currentTimeMillis() <= old.getJMSExpiration()) {
            Thread.sleep(1);
        }
        List<Message> arrived = ground.drain(ground.name());
        same(1, arrived.size(), "the number of messages");
        same("fresh", text(arrived.get(0)), "the one that is left");
    }

    private static void priorities(Ground ground) throws Exception {
        Session session = ground.session();
        MessageProducer producer = session.createProducer(session.createQueue(ground.name()));
        for (int priority : new int[] {1, 9, 4, 9}) {
            producer.setPriority(priority);
            producer.send(session.createTextMessage("priority " + priority));
        }
        StringBuilder order = new StringBuilder();
        for (Message message : ground.drain(ground.name())) {
            order.append(message.getJMSPriority());
        }
        same(ground.peer.honoursPriorities ? "9941" : "1949", order.toString(), "the order");
    }

    private static void large(Ground ground) throws Exception {
        Ends ends = new Ends(ground, "");
        int length = 10 << 20;
        byte[] content = new byte[length];
        new Random(1).nextBytes(content);
        BytesMessage message = ends.session.createBytesMessage();
        message.writeBytes(content);
        byte[] found = new byte[length];
        ends.pass(message, BytesMessage.class).readBytes(found);
        check(Arrays.equals(content, found), "10 MiB of bytes came as others");
        String text = "0123456789abcdef".repeat(length / 16);
        TextMessage arrived = ends.pass(ends.session.createTextMessage(text), TextMessage.class);
        check(text.equals(arrived.getText()), "10 MiB of text came as another");
    }

    private static void many(Ground ground) throws Exception {
        int count = 20_000;
        Ends ends = new Ends(ground, "");
        Connection connection = ground.connect();
        Thread sender = new Thread(() -> {
            try {
                Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                MessageProducer producer = session.createProducer(session.createQueue(ground.name()));
                producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
                for (int number = 0; number < count; number++) {
                    Message message = session.createMessage();
                    message.setIntProperty("number", number);
                    producer.send(message);
                }
            } catch (Exception error) {
                error.printStackTrace();
            }
        });
        sender.setDaemon(true);
        sender.start();
        for (int number = 0; number < count; number++) {
            same(number, take(ends.consumer).getIntProperty("number"), "the next number");
        }
        sender.join();
    }
}
