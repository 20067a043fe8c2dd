//! What stands in the parentheses of `#[corriere::bean(…)]`.

use darling::ast::NestedMeta;
use darling::{Error, FromMeta, Result};
use proc_macro2::{Span, TokenStream};
use syn::{Ident, LitStr};

/// The attribute, checked.
pub(super) struct Bean {
    /// The type name that `[beans.NAME]` gives.
    pub(super) type_name: LitStr,
    /// The method that closes a bean.
    pub(super) close: Option<Ident>,
}

#[derive(FromMeta)]
struct Keys {
    #[darling(rename = "type")]
    type_name: Option<LitStr>,
    close: Option<LitStr>,
}

impl Bean {
    pub(super) fn read(arguments: TokenStream) -> Result<Self> {
        let keys = Keys::from_list(&NestedMeta::parse_meta_list(arguments)?)?;
        let mut errors = Error::accumulator();
        let type_name = errors.handle(type_name(keys.type_name));
        let close = keys.close.as_ref().map(method).transpose();
        let close = errors.handle(close).flatten();
        errors.finish()?;
        let type_name = type_name.ok_or_else(|| Error::custom("the attribute cannot be read"))?;
        Ok(Self { type_name, close })
    }
}

fn type_name(type_name: Option<LitStr>) -> Result<LitStr> {
    let type_name = type_name.ok_or_else(|| {
        Error::custom(
            "a bean needs the type name that `[beans.NAME]` gives: `#[corriere::bean(type = \"smtp_mailer\")]`",
        )
        .with_span(&Span::call_site())
    })?;
    if type_name.value().trim().is_empty() {
        return Err(Error::custom("the type name of a bean is empty").with_span(&type_name));
    }
    Ok(type_name)
}

fn method(name: &LitStr) -> Result<Ident> {
    name.parse().map_err(|_| {
        Error::custom("`close` names a method of the bean; expected `close = \"close\"`").with_span(name)
    })
}
