struct Missing;

#[corriere::bean(type = "missing", close = "clos")]
impl Missing {
    fn new() -> Self {
        Self
    }
}

struct Taken;

#[corriere::bean(type = "taken", close = "close")]
impl Taken {
    fn new() -> Self {
        Self
    }

    fn close(self) {}
}

struct More;

#[corriere::bean(type = "more", close = "close")]
impl More {
    fn new() -> Self {
        Self
    }

    fn close(&self, _hard: bool) {}
}

struct Unnamed;

#[corriere::bean(type = "unnamed", close = "close()")]
impl Unnamed {
    fn new() -> Self {
        Self
    }
}

struct Answers;

#[corriere::bean(type = "answers", close = "close")]
impl Answers {
    fn new() -> Self {
        Self
    }

    fn close(&self) -> bool {
        true
    }
}

struct AnswersLater;

#[corriere::bean(type = "answers_later", close = "close")]
impl AnswersLater {
    fn new() -> Self {
        Self
    }

    async fn close(&self) -> bool {
        true
    }
}

fn main() {}
