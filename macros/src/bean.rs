//! `#[corriere::bean]`.

use darling::FromMeta;
use darling::ast::NestedMeta;
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, FnArg, GenericArgument, ImplItem, ImplItemFn, ItemImpl, LitStr, PathArguments, Type};

#[derive(FromMeta)]
struct Arguments {
    #[darling(rename = "type")]
    bean_type: Option<LitStr>,
}

/// The implementation unchanged, with the registration beside it, or with an error beside it.
pub(crate) fn expand(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let registration = registration(arguments, item).unwrap_or_else(|error| error);
    quote! { #item #registration }
}

fn registration(arguments: TokenStream, item: &TokenStream) -> Result<TokenStream, TokenStream> {
    let implementation: ItemImpl = syn::parse2(item.clone()).map_err(|_| {
        Error::new_spanned(
            item,
            "`#[corriere::bean]` stands on an `impl` block of the bean's type that has a function `new`",
        )
        .to_compile_error()
    })?;
    let arguments = NestedMeta::parse_meta_list(arguments)
        .map_err(darling::Error::from)
        .and_then(|list| Arguments::from_list(&list))
        .map_err(darling::Error::write_errors)?;
    checked(&arguments, &implementation).map_err(|error| error.to_compile_error())
}

fn checked(arguments: &Arguments, implementation: &ItemImpl) -> Result<TokenStream, Error> {
    let name = arguments.bean_type.as_ref().ok_or_else(|| {
        Error::new(
            Span::call_site(),
            "a bean needs the type name that `[beans.NAME]` gives: `#[corriere::bean(type = \"smtp_mailer\")]`",
        )
    })?;
    if name.value().is_empty() {
        return Err(Error::new(name.span(), "the type name of a bean is empty"));
    }
    if let Some((interface, _)) = &implementation.trait_ {
        return Err(Error::new_spanned(
            interface,
            "a bean's constructor stands in an `impl` block of the type itself, not of a trait",
        ));
    }
    if !implementation.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &implementation.generics,
            "a bean type cannot be generic: the configuration names one type",
        ));
    }
    let bean = &*implementation.self_ty;
    let new = constructor(implementation)?;
    let call = match argument(new)? {
        Some(settings) => quote_spanned! { settings.span()=>
            let settings: #settings = settings.read::<#settings>()?;
            let bean = <#bean>::new(settings);
        },
        None => quote! {
            settings.none()?;
            let bean = <#bean>::new();
        },
    };
    let returned = new.sig.output.span();
    let into_bean = quote_spanned! { returned=> ::corriere::__private::IntoBean::<#bean>::into_bean(bean) };
    let add = quote_spanned! { bean.span()=> beans.add::<#bean>(name, bean)?; };
    Ok(quote! {
        ::corriere::__private::inventory::submit! {
            ::corriere::__private::BeanType {
                name: #name,
                rust_type: ::core::any::type_name::<#bean>,
                build: |beans, name, settings| {
                    #call
                    let bean = #into_bean?;
                    #add
                    ::core::result::Result::Ok(())
                },
            }
        }
    })
}

fn constructor(implementation: &ItemImpl) -> Result<&ImplItemFn, Error> {
    let found = implementation.items.iter().find_map(|item| match item {
        ImplItem::Fn(function) if function.sig.ident == "new" => Some(function),
        _ => None,
    });
    let new = found.ok_or_else(|| {
        Error::new_spanned(
            &implementation.self_ty,
            "a bean needs a constructor here: `fn new(config: MyConfig) -> Result<Self, MyError>`, without the argument if \
             it has no settings",
        )
    })?;
    if let Some(asyncness) = &new.sig.asyncness {
        return Err(Error::new_spanned(
            asyncness,
            "an async constructor of a bean is not available yet; make the bean in `main` and hand it over with \
             `.bean(name, value)` before `.start()`",
        ));
    }
    if !new.sig.generics.params.is_empty() {
        return Err(Error::new_spanned(&new.sig.generics, "a bean's constructor cannot be generic"));
    }
    Ok(new)
}

/// The type of the constructor's settings, if it has any.
fn argument(new: &ImplItemFn) -> Result<Option<&Type>, Error> {
    let mut inputs = new.sig.inputs.iter();
    let settings = match inputs.next() {
        None => return Ok(None),
        Some(FnArg::Receiver(receiver)) => {
            return Err(Error::new_spanned(
                receiver,
                "a bean's constructor makes the bean, so it has no `self`",
            ));
        }
        Some(FnArg::Typed(settings)) => &*settings.ty,
    };
    for input in std::iter::once(settings).chain(inputs.clone().filter_map(|input| match input {
        FnArg::Typed(input) => Some(&*input.ty),
        FnArg::Receiver(_) => None,
    })) {
        if is_bean(input) {
            return Err(Error::new_spanned(
                input,
                "a constructor that takes other beans is not available yet; make the bean in `main` and hand it over with \
                 `.bean(name, value)` before `.start()`",
            ));
        }
    }
    if let Some(more) = inputs.next() {
        return Err(Error::new_spanned(
            more,
            "a bean's constructor takes one argument, the settings in `[beans.NAME]`, or none",
        ));
    }
    if let Type::Reference(reference) = settings {
        return Err(Error::new_spanned(reference, "the settings of a bean are taken by value"));
    }
    Ok(Some(settings))
}

fn is_bean(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|segment| {
        segment.ident == "Bean"
            && matches!(&segment.arguments, PathArguments::AngleBracketed(arguments)
                if matches!(arguments.args.first(), Some(GenericArgument::Type(_))))
    })
}
