#[corriere::main]
async fn start() -> Result<(), corriere::Error> {
    Ok(())
}
