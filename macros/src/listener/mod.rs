//! `#[jms_listener]`.

mod acknowledge;
mod arguments;
mod concurrency;
mod emit;
mod function;
#[cfg(test)]
mod same_rules;

use darling::{Error, Result};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Item, ItemFn, Meta, TraitItemFn};

use crate::argument::{BeanNames, take_bean_names};
use arguments::Listener;
use function::Function;

/// What stands for the attribute and its function. With errors it is the function, untouched, beside the errors, so that
/// an editor still knows the function.
pub(crate) fn expand(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let Ok(mut function) = syn::parse2::<ItemFn>(item.clone()) else {
        let error = not_a_function(item).write_errors();
        return quote!(#error #item);
    };
    let further = take_further_attributes(&mut function);
    let beans = take_bean_names(&mut function.sig.inputs);
    let expanded = definitions(arguments, &further, &function, beans)
        .map_or_else(Error::write_errors, |(function, listeners)| emit::listeners(&function, &listeners));
    quote!(#function #expanded)
}

/// The outermost attribute takes in the others: they share one type beside the function.
fn take_further_attributes(function: &mut ItemFn) -> Vec<Attribute> {
    let is_listener = |attribute: &mut Attribute| {
        attribute.path().segments.last().is_some_and(|segment| segment.ident == "jms_listener")
    };
    function.attrs.extract_if(.., is_listener).collect()
}

/// Reads attributes and function, and reports everything that is wrong with any of them at once.
fn definitions(
    arguments: TokenStream,
    further: &[Attribute],
    function: &ItemFn,
    beans: BeanNames,
) -> Result<(Function, Vec<Listener>)> {
    let mut errors = Error::accumulator();
    let further = further.iter().map(|attribute| match &attribute.meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
    });
    let listeners: Vec<_> = std::iter::once(arguments)
        .chain(further)
        .map(|arguments| errors.handle(Listener::read(arguments)))
        .collect();
    let complete: Vec<Listener> = listeners.iter().flatten().cloned().collect();
    if listeners.len() > 1 {
        errors.handle(arguments::check_ids(&complete));
    }
    let function = errors.handle(Function::read(function, beans));
    errors.finish()?;
    function.map(|function| (function, complete)).ok_or_else(|| Error::custom("the function cannot be read"))
}

fn not_a_function(item: &TokenStream) -> Error {
    let kind = match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Struct(_) | Item::Enum(_) | Item::Union(_)) => "a type",
        Ok(Item::Impl(_)) => "an `impl` block; put it on a free function and take what it needs as `Bean<T>`",
        Ok(Item::Mod(_)) => "a module",
        Ok(Item::Trait(_)) => "a trait",
        Ok(Item::Const(_) | Item::Static(_)) => "a constant",
        _ if syn::parse2::<TraitItemFn>(item.clone()).is_ok() => "a method without one",
        _ => "something else",
    };
    Error::custom(format!("`#[jms_listener]` goes on a function with a body; this is {kind}")).with_span(item)
}
