//! `#[corriere::main]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ItemFn};

/// A `main` that runs the function in a runtime, or the function with an error beside it.
pub(crate) fn expand(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    match checked(arguments, item) {
        Ok(function) => {
            let ItemFn { attrs, vis, sig, block, .. } = &function;
            let name = &sig.ident;
            quote! {
                #(#attrs)*
                #vis fn #name() -> ::std::process::ExitCode {
                    #sig #block
                    ::corriere::__private::run_main(#name())
                }
            }
        }
        Err(error) => {
            let error = error.to_compile_error();
            // The function is kept where it means nothing, so that what is wrong in it is still found; and without any
            // `main` the program would be said to have none, which is not what is wrong.
            quote! {
                #error
                #[allow(dead_code)]
                const _: () = { #item };
                fn main() {}
            }
        }
    }
}

fn checked(arguments: TokenStream, item: &TokenStream) -> Result<ItemFn, Error> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(arguments, "`#[corriere::main]` takes no arguments"));
    }
    let function: ItemFn = syn::parse2(item.clone())
        .map_err(|_| Error::new_spanned(item, "`#[corriere::main]` stands on `async fn main`"))?;
    if function.sig.ident != "main" {
        return Err(Error::new_spanned(
            &function.sig.ident,
            "`#[corriere::main]` stands on `async fn main`; another function is run from within it, or by \
             `tokio::runtime::Runtime::block_on`",
        ));
    }
    if function.sig.asyncness.is_none() {
        return Err(Error::new_spanned(
            function.sig.fn_token,
            "`#[corriere::main]` runs an async function; write `async fn main`",
        ));
    }
    if let Some(argument) = function.sig.inputs.first() {
        return Err(Error::new_spanned(argument, "`main` takes no arguments"));
    }
    if !function.sig.generics.params.is_empty() {
        return Err(Error::new_spanned(&function.sig.generics, "`main` cannot be generic"));
    }
    Ok(function)
}
