//! `#[corriere::test]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, FnArg, ItemFn};

/// A test that runs the function with an application of its own, or the function with an error beside it.
pub(crate) fn expand(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    match checked(arguments, item) {
        Ok(function) => {
            let ItemFn { attrs, vis, sig, block, .. } = &function;
            let (name, output) = (&sig.ident, &sig.output);
            quote! {
                #(#attrs)*
                #[::core::prelude::v1::test]
                #vis fn #name() #output {
                    #sig #block
                    ::corriere::__private::run_test(#name)
                }
            }
        }
        Err(error) => {
            let error = error.to_compile_error();
            quote! { #error #item }
        }
    }
}

fn checked(arguments: TokenStream, item: &TokenStream) -> Result<ItemFn, Error> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(arguments, "`#[corriere::test]` takes no arguments"));
    }
    let function: ItemFn = syn::parse2(item.clone()).map_err(|_| {
        Error::new_spanned(item, "`#[corriere::test]` stands on `async fn name(app: TestApp)`")
    })?;
    if function.sig.asyncness.is_none() {
        return Err(Error::new_spanned(
            function.sig.fn_token,
            "`#[corriere::test]` runs an async function; write `async fn name(app: TestApp)`",
        ));
    }
    if !function.sig.generics.params.is_empty() {
        return Err(Error::new_spanned(&function.sig.generics, "a test cannot be generic"));
    }
    let mut inputs = function.sig.inputs.iter();
    match (inputs.next(), inputs.next()) {
        (Some(FnArg::Typed(_)), None) => Ok(function),
        (None, _) => Err(Error::new_spanned(
            &function.sig.ident,
            "a `#[corriere::test]` takes the application: `app: TestApp`",
        )),
        (Some(FnArg::Receiver(more)), _) => {
            Err(Error::new_spanned(more, "a `#[corriere::test]` takes one argument: `app: TestApp`"))
        }
        (Some(_), Some(more)) => {
            Err(Error::new_spanned(more, "a `#[corriere::test]` takes one argument: `app: TestApp`"))
        }
    }
}
