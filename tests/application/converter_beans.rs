//! Message converters of users, which are beans.

use std::sync::Mutex;

use corriere::Bean;
use corriere::core::Body;
use corriere::prelude::*;
use corriere::templates::converter::Visit;
use corriere::templates::erased_serde::{self, Deserializer};
use corriere::templates::{ConversionError, MessageConverter, TextConverter};

use crate::{application, refused};

/// Words that stand for others on the way.
#[derive(Debug, Deserialize)]
struct Words {
    mark: String,
}

#[derive(Debug)]
struct Dictionary(Words);

#[corriere::bean(type = "dictionary")]
impl Dictionary {
    fn new(words: Words) -> Self {
        Self(words)
    }
}

/// Writes text with a mark behind it, which it takes off again.
#[derive(Debug)]
struct Shouting {
    dictionary: Bean<Dictionary>,
    times: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShoutingConfig {
    times: usize,
}

#[corriere::bean(type = "shouting")]
impl Shouting {
    async fn new(config: ShoutingConfig, dictionary: Bean<Dictionary>) -> Result<Self, ListenerError> {
        tokio::task::yield_now().await;
        Ok(Self { dictionary, times: config.times })
    }

    fn mark(&self) -> String {
        self.dictionary.0.mark.repeat(self.times)
    }
}

impl MessageConverter for Shouting {
    fn to_message(&self, value: &dyn erased_serde::Serialize) -> Result<Message, ConversionError> {
        let plain = TextConverter.to_message(value)?;
        let Body::Text(Some(text)) = plain.body() else { return Ok(plain) };
        Ok(Message::text(format!("{text}{}", self.mark())))
    }

    fn read(&self, message: &Message, visit: Visit<'_>) -> Result<(), ConversionError> {
        let text = match message.body() {
            Body::Text(Some(text)) => text.strip_suffix(&*self.mark()),
            _ => None,
        };
        let text = text.ok_or_else(|| ConversionError::unexpected_body(message, "text with marks"))?;
        let json = serde_json::to_string(text).map_err(|error| ConversionError::read(message, error))?;
        let mut json = serde_json::Deserializer::from_str(&json);
        visit(&mut <dyn Deserializer<'_>>::erase(&mut json))
            .map_err(|error| ConversionError::read(message, error))
    }
}

/// Needs no configuration, so its type name is all that it takes.
#[derive(Debug)]
struct Upper;

#[corriere::bean(type = "upper")]
impl Upper {
    fn new() -> Self {
        Self
    }
}

impl MessageConverter for Upper {
    fn to_message(&self, value: &dyn erased_serde::Serialize) -> Result<Message, ConversionError> {
        let plain = TextConverter.to_message(value)?;
        let Body::Text(Some(text)) = plain.body() else { return Ok(plain) };
        Ok(Message::text(text.to_uppercase()))
    }

    fn read(&self, message: &Message, visit: Visit<'_>) -> Result<(), ConversionError> {
        TextConverter.read(message, visit)
    }
}

const CONVERTERS: &str = "[beans.dictionary]\ntype = \"dictionary\"\nmark = \"!\"\n[message_converters.loud]\ntype = \
                          \"shouting\"\ntimes = 3\n[beans.louder]\ntype = \"shouting\"\ntimes = 5\n";

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

#[jms_listener(queue = "words", send_to = "echo")]
async fn on_word(word: String, heard: Bean<Heard>) -> String {
    heard.0.lock().unwrap().push(word.clone());
    word
}

#[corriere::test]
async fn a_converter_that_is_a_bean_serves_templates_and_listeners(app: TestApp) {
    let text = format!(
        "[templates.speaker]\nmessage_converter = \"loud\"\n{CONVERTERS}[listeners.on_word]\nmessage_converter = \"loud\"\n\
         [templates.capitals]\nmessage_converter = \"upper\"\n\
         [templates.shouter]\nmessage_converter = \"louder\"\n"
    );
    let app = app.config(&text).bean(Heard::default()).listeners([on_word::DEF]).start().await;
    let speaker: JmsTemplate = app.bean("speaker");
    speaker.convert_and_send_to("words", "hello").await.unwrap();
    app.settled(on_word::DEF).await.acked().times(1);
    assert_eq!(*app.bean_of::<Bean<Heard>>().0.lock().unwrap(), ["hello"]);
    assert_eq!(app.take_message("echo").await.body(), &Body::Text(Some("hello!!!".into())));

    for (template, expected) in [("shouter", "hello!!!!!"), ("capitals", "HELLO")] {
        let template: JmsTemplate = app.bean(template);
        template.convert_and_send_to("seen", "hello").await.unwrap();
        assert_eq!(app.take_message("seen").await.body(), &Body::Text(Some(expected.into())));
    }
    // The same bean, by its own type and as a converter.
    let (own, converter): (Bean<Shouting>, Bean<dyn MessageConverter>) = (app.bean("loud"), app.bean("loud"));
    assert_eq!(own.times, 3);
    assert_eq!(converter.decode::<String>(&Message::text("so!!!")).unwrap(), "so");
}

#[tokio::test]
async fn a_converter_of_the_program_is_found_by_its_name() {
    let text = "[broker]\nname = \"given-converter\"\n[templates.given]\nmessage_converter = \"mine\"\n";
    let app = application(text).message_converter("mine", Upper).listeners([]).start().await.unwrap();
    let template: JmsTemplate = app.bean("given").unwrap();
    template.convert_and_send_to("queue://seen", "hello").await.unwrap();
    let seen = template.receive_from("queue://seen").await.unwrap().unwrap();
    assert_eq!(seen.body(), &Body::Text(Some("HELLO".into())));
}

#[test]
fn a_converter_that_is_needed_is_marked_where_its_key_stands() {
    let table = "[message_converters.loud]\ntype = \"shouting\"\ntimes = 3\n";
    let broker = "[broker]\nname = \"marked\"\n";
    for key in ["[templates.t]\n", "[listener_containers.default]\n", "[listeners.on_word]\n"] {
        let text = format!("{broker}{table}{key}message_converter = \"loud\"\n");
        let said = application(&text).listeners([on_word::DEF]).check().unwrap_err().to_string();
        assert!(said.contains("its `message_converter` (config.toml:7:21)"), "{said}");
        assert!(said.contains("7 | message_converter = \"loud\""), "{said}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_converter_is_told_before_it_is_made() {
    const BROKER: &str = "[broker]\nname = \"converter-beans\"\n";
    let listener = "listener `on_word` needs `message_converters.loud` (config.toml:3:1) for its `message_converter` (config.toml:7:21), \
                    which needs a bean of the type `application::converter_beans::Dictionary` for its argument `dictionary`, \
                    and there is none; add `[beans.NAME]` with `type = \"dictionary\"`";
    let cases = [
        (
            "[message_converters.loud]\ntype = \"shouting\"\ntimes = 3\n[listeners.on_word]\nmessage_converter = \"loud\"\n",
            listener,
        ),
        (
            "[message_converters.c]\ntype = \"text\"\nloud = true\n",
            "`message_converters.c.loud` (config.toml:5:1): the bean could not be made: the key `loud` is not known: this \
             type takes no settings",
        ),
        (
            "[beans.d]\ntype = \"dictionary\"\nmark = \"\"\n[message_converters.c]\ntype = \"shouting\"\ntimes = \"often\"\n",
            "`message_converters.c.times` (config.toml:8:9): the bean could not be made: `times` is a text; expected a whole number, 0 or more (usize)",
        ),
        (
            "[beans.d]\ntype = \"dictionary\"\nmark = \"\"\n[templates.t]\nmessage_converter = \"d\"\n",
            "`templates.t.message_converter` (config.toml:7:21): there is no message converter `d`; there is: `bytes`, \
             `json`, `map`, `object`, `shouting`, `text`, `upper`",
        ),
        (
            "[message_converters.c]\ntype = \"dictionary\"\n",
            "`message_converters.c.type` (config.toml:4:8): there is no message converter type `dictionary`; there is: \
             `bytes`, `json`, `map`, `object`, `shouting`, `text`, `upper`",
        ),
    ];
    for (text, expected) in cases {
        let text = format!("{BROKER}{text}");
        let told = refused(application(&text).bean(Heard::default()).listeners([on_word::DEF])).await;
        assert_eq!(told, [expected]);
    }
}
