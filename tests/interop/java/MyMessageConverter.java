import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.Session;
import org.springframework.jms.support.converter.MessageConversionException;
import org.springframework.jms.support.converter.MessageConverter;

/** A {@link MessageObj} as a map message. */
public final class MyMessageConverter implements MessageConverter {
    @Override
    public Object fromMessage(Message message) throws JMSException {
        if (!(message instanceof MapMessage)) {
            throw new MessageConversionException("the message is no MapMessage");
        }
        MapMessage map = (MapMessage) message;
        return new MessageObj(map.getString("id"), map.getString("info"));
    }

    @Override
    public Message toMessage(Object object, Session session) throws JMSException {
        if (!(object instanceof MessageObj)) {
            throw new MessageConversionException("the object is no MessageObj");
        }
        MessageObj message = (MessageObj) object;
        MapMessage map = session.createMapMessage();
        map.setString("id", message.getId());
        map.setString("info", message.getInfo());
        return map;
    }
}
