#[corriere::main]
struct Program;
