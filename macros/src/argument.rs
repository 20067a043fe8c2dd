//! The arguments of listeners and of constructors: their types, their names, and `#[bean("name")]` on them.

use darling::{Error, Result};
use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Attribute, FnArg, LitStr, Meta, Pat, PatType, Token, Type};

/// An argument as it is emitted from.
pub(crate) struct Argument {
    /// Its name, unless it is taken apart.
    name: Option<String>,
    /// The name in `#[bean("name")]`.
    pub(crate) bean: Option<LitStr>,
    pub(crate) ty: Type,
}

/// What `#[bean("name")]` says of each argument. It is ours, so it is taken off the function.
pub(crate) fn take_bean_names(inputs: &mut Punctuated<FnArg, Token![,]>) -> BeanNames {
    let mut errors = Error::accumulator();
    let names = inputs.iter_mut().map(|input| {
        let attributes = match input {
            FnArg::Receiver(receiver) => &mut receiver.attrs,
            FnArg::Typed(argument) => &mut argument.attrs,
        };
        let names: Vec<_> = attributes.extract_if(.., |attribute| is_bean(attribute)).collect();
        if let Some(second) = names.get(1) {
            errors.push(Error::custom("an argument asks for one bean").with_span(second));
        }
        names.first().and_then(|attribute| errors.handle(bean_name(attribute)))
    });
    let names = names.collect();
    BeanNames { names, errors: errors.finish() }
}

/// The names, beside their arguments, and what is wrong with them.
pub(crate) struct BeanNames {
    pub(crate) names: Vec<Option<LitStr>>,
    pub(crate) errors: Result<()>,
}

impl Argument {
    pub(crate) fn new(argument: &PatType, bean: Option<LitStr>) -> Self {
        Self { name: plain_name(&argument.pat), bean, ty: (*argument.ty).clone() }
    }

    /// What is known of it before it is made; `requests` are the beans that its type asks for.
    pub(crate) fn emit(&self, requests: &TokenStream) -> TokenStream {
        let option = |text: Option<TokenStream>| match text {
            Some(text) => quote!(::core::option::Option::Some(#text)),
            None => quote!(::core::option::Option::None),
        };
        let name = option(self.name.as_ref().map(|name| quote!(#name)));
        let bean = option(self.bean.as_ref().map(|bean| quote!(#bean)));
        quote!(::corriere::__private::BeanArgument { name: #name, bean: #bean, requests: #requests })
    }
}

fn is_bean(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "bean")
}

fn bean_name(attribute: &Attribute) -> Result<LitStr> {
    let expected = "`#[bean]` on an argument names the bean that it asks for; expected `#[bean(\"name\")]`";
    let Meta::List(list) = &attribute.meta else {
        return Err(Error::custom(expected).with_span(attribute));
    };
    let name: LitStr =
        syn::parse2(list.tokens.clone()).map_err(|_| Error::custom(expected).with_span(attribute))?;
    if name.value().trim().is_empty() {
        return Err(Error::custom("the name of the bean is empty").with_span(&name));
    }
    Ok(name)
}

/// The name as people would call it: `pool` for `_pool`, as an underscore only says that it is not used.
fn plain_name(pattern: &Pat) -> Option<String> {
    let Pat::Ident(name) = pattern else { return None };
    let name = name.ident.to_string();
    let name = name.strip_prefix("r#").unwrap_or(&name).trim_start_matches('_');
    (!name.is_empty()).then(|| name.to_owned())
}
