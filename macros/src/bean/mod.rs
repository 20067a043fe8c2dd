//! `#[corriere::bean]`.

mod arguments;
mod constructor;
mod emit;

use darling::{Error, Result};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{FnArg, ImplItem, ItemFn, ItemImpl, Token, punctuated::Punctuated};

use crate::argument::{BeanNames, take_bean_names};
use arguments::Bean;
use constructor::Constructor;

/// The item as it was, with the registration beside it, or with the errors beside it, so that an editor still knows it.
pub(crate) fn expand(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    if let Ok(mut implementation) = syn::parse2::<ItemImpl>(item.clone()) {
        let names = constructor_inputs(&mut implementation).map(take_bean_names);
        let constructor = || Constructor::of_implementation(&implementation, names);
        return beside(&implementation, arguments, constructor);
    }
    if let Ok(mut function) = syn::parse2::<ItemFn>(item.clone()) {
        let names = take_bean_names(&mut function.sig.inputs);
        return beside(&function, arguments, || Constructor::of_function(&function, names));
    }
    let error = Error::custom(
        "`#[corriere::bean]` stands on an `impl` block of the bean's type that has a function `new`, or on a function that \
         returns the bean",
    );
    let error = error.with_span(item).write_errors();
    quote!(#item #error)
}

/// Reads both the attribute and the constructor, so that everything that is wrong with either is said at once.
fn beside(
    item: &impl ToTokens,
    arguments: TokenStream,
    constructor: impl FnOnce() -> Result<Constructor>,
) -> TokenStream {
    let mut errors = Error::accumulator();
    let bean = errors.handle(Bean::read(arguments));
    let constructor = errors.handle(constructor());
    let emitted = match errors.finish() {
        Ok(()) => bean.zip(constructor).map(|(bean, constructor)| emit::registration(&bean, &constructor)),
        Err(error) => Some(error.write_errors()),
    };
    quote!(#item #emitted)
}

/// The arguments of `new`.
fn constructor_inputs(implementation: &mut ItemImpl) -> Option<&mut Punctuated<FnArg, Token![,]>> {
    implementation.items.iter_mut().find_map(|item| match item {
        ImplItem::Fn(function) if function.sig.ident == "new" => Some(&mut function.sig.inputs),
        _ => None,
    })
}

/// What there is of no constructor.
fn no_names() -> BeanNames {
    BeanNames { names: Vec::new(), errors: Ok(()) }
}
