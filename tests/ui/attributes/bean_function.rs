#[corriere::bean(type = "nothing")]
fn nothing() {}

#[corriere::bean(type = "nameless")]
fn nameless() -> impl Sized {
    1_u8
}

#[corriere::bean(type = "generic")]
fn generic<T: Default>() -> Vec<T> {
    Vec::new()
}

#[corriere::bean(type = "bounded")]
fn bounded() -> u8
where
    u8: Copy,
{
    0
}

#[corriere::bean(type = "risky")]
unsafe fn risky() -> u8 {
    0
}

struct NoError;

#[corriere::bean(type = "fallible")]
async fn fallible() -> Result<u8, NoError> {
    Ok(0)
}

#[corriere::bean]
fn several_mistakes(_text: &str) -> u8 {
    0
}

fn main() {}
