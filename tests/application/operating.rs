//! What an operator does through the application.

use corriere::broker::{OperationCounts, all};
use corriere::prelude::*;

use crate::{Error, application};

const CONFIG: &str = r#"
[broker]
name = "operated"

[broker.policies.fragile]
queue = "fragile.>"
prefetch = 3
dead_letters = "shared"
redelivery = { maximum_redeliveries = 0 }

[templates.any]
"#;

async fn fail_and_retry(app: &Application) -> Result<(), Error> {
    let template: JmsTemplate = app.bean("any")?;
    template.convert_and_send_to("fragile.glass", "m1").await?;
    let session = {
        let connection = template.connection_factory().create_connection().await?;
        connection.start()?;
        connection.create_session(corriere::core::AcknowledgeMode::Client).await?
    };
    let consumer =
        session.create_consumer(&corriere::core::Destination::queue("fragile.glass").unwrap()).await?;
    let delivery = consumer.receive().await?.expect("it is open");
    let cause = corriere::core::provider::Cause::failure("E1");
    delivery.release(corriere::core::Release::Redeliver { delay: None, cause }).await?;
    // It dies of its first failure, and goes where the policy says.
    let outcome = app.broker()?.queue("ActiveMQ.DLQ")?.retry(all).await?;
    assert_eq!(outcome, OperationCounts { matched: 1, done: 1, ..OperationCounts::default() });
    let again = consumer.receive().await?.expect("it is open");
    assert_eq!((again.count(), again.property::<String>("dlqTime").unwrap()), (1, None));
    again.acknowledge().await?;
    Ok(())
}

#[tokio::test]
async fn dead_letters_are_retried_by_a_program_that_passes_every_error_on() {
    let app = application(CONFIG).listeners([]).start().await.unwrap();
    fail_and_retry(&app).await.unwrap();
    let error = Error::from(app.broker().unwrap().queue("fragile.glas").unwrap_err()).to_string();
    assert_eq!(error, "broker `operated` has no queue `fragile.glas`; did you mean `fragile.glass`?");
    app.stop().await;
}

#[tokio::test]
async fn an_application_without_a_broker_says_what_it_lacks() {
    let app = application("").listeners([]).start().await.unwrap();
    let error = app.broker().unwrap_err().to_string();
    assert_eq!(
        error,
        "this application has no embedded broker; expected a table `[broker]` in its configuration"
    );
    app.stop().await;
}
