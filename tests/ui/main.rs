//! What the compiler says of mistakes with Corriere's attributes. `TRYBUILD=overwrite` writes the expected texts anew.

#[test]
fn every_mistake_is_named_at_its_place() {
    let cases = trybuild::TestCases::new();
    cases.pass("ui/pass/*.rs");
    cases.compile_fail("ui/fail/*.rs");
    cases.compile_fail("ui/attributes/*.rs");
}
