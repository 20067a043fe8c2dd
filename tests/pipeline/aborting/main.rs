//! A program whose handler kills its process, for `tests/pipeline/aborted.rs`: `aborting DATA HANDLED`. The first start on a
//! data directory sends five jobs, of which the third is deadly. Handled ones are written into the file `HANDLED`. It ends
//! when nothing is left to do.

use std::fs::File;
use std::io::Write;
use std::process;
use std::time::Duration;

use corriere::prelude::*;

const JOBS: [&str; 5] = ["a", "b", "deadly", "d", "e"];

#[jms_listener(queue = "jobs")]
async fn on_job(job: String, handled: Bean<File>) -> Result<(), ListenerError> {
    if job == "deadly" {
        process::abort();
    }
    writeln!(&*handled, "{job}")?;
    Ok(())
}

#[corriere::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [data, handled] = [1, 2].map(|index| std::env::args().nth(index).unwrap_or_default());
    let is_first = !std::path::Path::new(&data).exists();
    let app = Application::builder()
        .set("broker.name", "local")
        .set("broker.data_directory", data)
        .set("templates.jobs.default_destination", "jobs")
        .named_bean("handled", File::options().create(true).append(true).open(handled)?)
        .start()
        .await?;
    if is_first {
        // In one transaction, so that all are there before the deadly one kills the process.
        let template: JmsTemplate = app.bean("jobs")?;
        let connection = template.connection_factory().create_connection().await?;
        let session = connection.create_session(corriere::core::AcknowledgeMode::Transacted).await?;
        for job in JOBS {
            corriere::core::with_session(session.clone(), template.convert_and_send(job)).await?;
        }
        session.commit().await?;
    }
    let (broker, jobs) = (app.broker()?, app.destinations().queue("jobs")?);
    while broker.counts(&jobs).unwrap_or_default().pending > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    app.stop().await;
    Ok(())
}
