//! Programs as people write them: what one side sends, the other sees, to the last property.

use std::time::Duration;

use corriere::core::message::{Body, MapBody, StreamBody, Value};
use corriere::core::{DeliveryMode, Destination, Message};

use crate::java::run;
use crate::peer::Peer;

/// What the receiver prints of all that the sender sends. The last one is the most urgent, so it comes first.
const SENT: &str = "\
text with everything
  persistent, priority 7, delivery 1
  JMSCorrelationID = correlation
  JMSReplyTo = queue://replies
  JMSType = type
  property aBoolean = Boolean true
  property aByte = Byte -128
  property aDouble = Double -2.25
  property aFloat = Float 1.5
  property aLong = Long 9223372036854775807
  property aShort = Short 32767
  property anInt = Integer -2147483648
  property headname = String remoteB
text ActiveMQ Text Message!
  not persistent, priority 4, delivery 1
map
  MapMessage = String ActiveMQ Map Message!
  boolean = Boolean true
  long = Long 123456
  short = Short 0
  not persistent, priority 4, delivery 1
stream
  String ActiveMQ stream Message!
  Boolean false
  Long 1234567890
  not persistent, priority 4, delivery 1
object ActiveMQ Object Message__18__false
  not persistent, priority 4, delivery 1
bytes e5ad97e88a82e6b688e681af
  not persistent, priority 4, delivery 1
receiver test stop
";

#[tokio::test(flavor = "multi_thread")]
async fn java_sees_what_java_sends() {
    let peer = Peer::start("java-to-java", "").await;
    assert_eq!(run("JmsSender", &[peer.url(), "ActiveMQ.Demo"]).await.well(), "sender test stop\n");
    assert_eq!(run("JmsReceiver", &[peer.url(), "ActiveMQ.Demo", "6"]).await.well(), SENT);
    let counts = peer.counts("ActiveMQ.Demo");
    assert_eq!((counts.enqueued, counts.acknowledged, counts.redelivered), (6, 6, 0), "{counts:?}");
    peer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn we_see_what_java_sends() {
    let peer = Peer::start("java-to-us", "").await;
    run("JmsSender", &[peer.url(), "ActiveMQ.Demo"]).await.well();

    let everything = peer.take("ActiveMQ.Demo").await;
    assert_eq!(everything.as_text().unwrap(), Some("with everything"));
    let properties: Vec<_> =
        everything.properties().iter().map(|(name, value)| (name, value.clone())).collect();
    for (name, value) in [
        ("aBoolean", Value::Boolean(true)),
        ("aByte", Value::Byte(i8::MIN)),
        ("aShort", Value::Short(i16::MAX)),
        ("anInt", Value::Int(i32::MIN)),
        ("aLong", Value::Long(i64::MAX)),
        ("aFloat", Value::Float(1.5)),
        ("aDouble", Value::Double(-2.25)),
        ("headname", Value::from("remoteB")),
    ] {
        assert!(properties.contains(&(name, value)), "{name} of {properties:?}");
    }
    assert_eq!(properties.len(), 8, "{properties:?}");
    let headers = everything.headers();
    assert_eq!((headers.delivery_mode, headers.priority.level()), (DeliveryMode::Persistent, 7));
    assert_eq!(headers.correlation_id.as_deref(), Some("correlation"));
    assert_eq!(headers.reply_to, Some(Destination::queue("replies").unwrap()));
    assert_eq!(headers.message_type.as_deref(), Some("type"));
    assert_eq!(headers.destination, Some(Destination::queue("ActiveMQ.Demo").unwrap()));
    assert!(headers.message_id.is_some() && headers.timestamp.0 > 0 && headers.expiration.is_none());

    let text = peer.take("ActiveMQ.Demo").await;
    assert_eq!(text.as_text().unwrap(), Some("ActiveMQ Text Message!"));
    assert_eq!(text.headers().delivery_mode, DeliveryMode::NonPersistent);
    assert!(text.properties().is_empty(), "{:?}", text.properties());

    let map = peer.take("ActiveMQ.Demo").await;
    let map = map.as_map().unwrap();
    assert_eq!(map.len(), 4);
    assert_eq!(map.get("boolean"), Some(&Value::Boolean(true)));
    assert_eq!(map.get("short"), Some(&Value::Short(0)));
    assert_eq!(map.get("long"), Some(&Value::Long(123_456)));
    assert_eq!(map.get("MapMessage"), Some(&Value::from("ActiveMQ Map Message!")));

    let stream = peer.take("ActiveMQ.Demo").await;
    let values: Vec<_> = stream.as_stream().unwrap().iter().cloned().collect();
    let expected =
        [Value::from("ActiveMQ stream Message!"), Value::Boolean(false), Value::Long(1_234_567_890)];
    assert_eq!(values, expected);

    // A Java object is bytes, which nobody here looks into: Java's serialised form.
    let object = peer.take("ActiveMQ.Demo").await;
    let bytes = object.as_object().unwrap().as_bytes();
    assert_eq!(bytes[..4], [0xac, 0xed, 0x00, 0x05]);

    let bytes = peer.take("ActiveMQ.Demo").await;
    assert_eq!(**bytes.as_bytes().unwrap().as_bytes(), *"字节消息".as_bytes());
    peer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn java_sees_what_we_send() {
    let peer = Peer::start("us-to-java", "").await;
    let template = peer.template();
    let mut everything = Message::text("with everything");
    for (name, value) in [
        ("aBoolean", Value::Boolean(true)),
        ("aByte", Value::Byte(i8::MIN)),
        ("aShort", Value::Short(i16::MAX)),
        ("anInt", Value::Int(i32::MIN)),
        ("aLong", Value::Long(i64::MAX)),
        ("aFloat", Value::Float(1.5)),
        ("aDouble", Value::Double(-2.25)),
        ("headname", Value::from("remoteB")),
    ] {
        everything.set_property(name, value).unwrap();
    }
    everything.headers_mut().correlation_id = Some("correlation".into());
    everything.headers_mut().reply_to = Some(Destination::queue("replies").unwrap());
    everything.headers_mut().message_type = Some("type".into());
    template.to("ActiveMQ.Demo").priority(7).send(&everything).await.unwrap();

    let mut map = MapBody::new();
    map.set("boolean", true).unwrap().set("short", 0_i16).unwrap().set("long", 123_456_i64).unwrap();
    map.set("MapMessage", "ActiveMQ Map Message!").unwrap();
    let mut stream = StreamBody::new();
    stream.push("ActiveMQ stream Message!").push(false).push(1_234_567_890_i64);
    for message in [
        Message::text("ActiveMQ Text Message!"),
        Message::map(map),
        Message::stream(stream),
        Message::bytes("字节消息".as_bytes().to_vec()),
    ] {
        let light = template.to("ActiveMQ.Demo").delivery_mode(DeliveryMode::NonPersistent);
        light.send(&message).await.unwrap();
    }
    let object = "object ActiveMQ Object Message__18__false\n  not persistent, priority 4, delivery 1\n";
    let received = run("JmsReceiver", &[peer.url(), "ActiveMQ.Demo", "5"]).await.well();
    assert_eq!(received, SENT.replace(object, ""));
    peer.stop().await;
}

/// The object that Java sent goes back to Java as it came.
#[tokio::test(flavor = "multi_thread")]
async fn what_java_sent_goes_on_through_us_to_java() {
    let peer = Peer::start("java-by-us-to-java", "").await;
    run("JmsSender", &[peer.url(), "in"]).await.well();
    for _ in 0..6 {
        let message = peer.take("in").await;
        let (mode, priority) = (message.headers().delivery_mode, message.headers().priority.level());
        peer.template().to("out").delivery_mode(mode).priority(priority).send(&message).await.unwrap();
    }
    assert_eq!(run("JmsReceiver", &[peer.url(), "out", "6"]).await.well(), SENT);
    peer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plain_producers_message_arrives() {
    let peer = Peer::start("plain-producer", "").await;
    let sent = run("PlainProducer", &[peer.url(), "myQueue"]).await.well();
    let message = peer.take("myQueue").await;
    assert_eq!(message.as_text().unwrap(), Some("the expected body"));
    assert_eq!(message.property::<String>("headname").unwrap().as_deref(), Some("remoteB"));
    let id = message.headers().message_id.as_ref().unwrap().to_string();
    assert_eq!(sent, format!("sent {id}\n"));
    peer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn springs_template_sends_and_receives() {
    let peer = Peer::start("spring-template", "").await;
    let expected = "default hello\nby name other\nconverted 8 both\nnothing null\nnothing null\n";
    assert_eq!(run("TemplateApp", &[peer.url(), "both", "HelloWorldQueue"]).await.well(), expected);

    run("TemplateApp", &[peer.url(), "send", "HelloWorldQueue"]).await.well();
    let message = peer.take("HelloWorldQueue").await;
    let map = message.as_map().unwrap();
    assert_eq!(map.len(), 2);
    assert_eq!((map.get("id"), map.get("info")), (Some(&Value::from("7")), Some(&Value::from("信息"))));

    let Body::Map(back) = message.body().clone() else { panic!("{message:?}") };
    peer.template().send_to("HelloWorldQueue", &Message::map(back)).await.unwrap();
    let received = run("TemplateApp", &[peer.url(), "receive", "HelloWorldQueue"]).await.well();
    assert_eq!(received, "received 7 \\u4fe1\\u606f\n");
    peer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spring_application_runs() {
    let peer = Peer::start("spring-application", "").await;
    let output = run("SpringApp", &[peer.url()]).await.well();
    let expected = "listener got hello\nreply re:hello\nbrowse app.browsed 1\nmap {k=1}\nOK\n";
    assert_eq!(output, expected);
    peer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_java_sent_is_there_when_the_broker_starts_again() {
    let directory = tempfile::tempdir().unwrap();
    let data = format!("data_directory = {:?}", directory.path().to_str().unwrap());
    let peer = Peer::start("java-restart", &data).await;
    run("JmsSender", &[peer.url(), "ActiveMQ.Demo"]).await.well();
    peer.stop().await;

    let peer = Peer::start("java-restart", &data).await;
    let counts = peer.counts("ActiveMQ.Demo");
    assert_eq!((counts.recovered, counts.pending), (1, 1), "{counts:?}");
    // Of the six the last one only is persistent.
    let received = run("JmsReceiver", &[peer.url(), "ActiveMQ.Demo", "1"]).await.well();
    let first: String =
        SENT.split_inclusive('\n').take_while(|line| *line != "text ActiveMQ Text Message!\n").collect();
    assert_eq!(received, first + "receiver test stop\n");
    peer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_stops_does_not_wait_for_its_clients_and_they_hear_of_it() {
    let peer = Peer::start("stopping-under-java", "").await;
    let url = peer.url().to_owned();
    let stopping = async {
        peer.template().convert_and_send_to("work", "the first of two").await.unwrap();
        while peer.counts("work").acknowledged == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        peer.stop().await;
    };
    let arguments = [url.as_str(), "work", "2"];
    let (ended, ()) = tokio::join!(run("JmsReceiver", &arguments), stopping);
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(ended.output.ends_with("the connection is lost\n"), "{}", ended.output);
}
