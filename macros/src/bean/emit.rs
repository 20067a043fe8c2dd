//! What stands beside the constructor.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, LitStr};

use super::arguments::Bean;
use super::constructor::{Constructor, Made};
use crate::argument::Argument;

/// The registration of the bean type.
///
/// As for listeners, there is no `allow` in it, and its names are unlikely ones.
pub(super) fn registration(bean: &Bean, constructor: &Constructor) -> TokenStream {
    if let Some(error) = bad_close(bean, constructor) {
        return error;
    }
    let private = quote!(::corriere::__private);
    let Constructor { path, arguments, .. } = constructor;
    let type_name = &bean.type_name;
    let made = made(constructor);
    let known = arguments.iter().map(|argument| {
        let ty = &argument.ty;
        argument.emit(&quote!(#private::ArgumentProbe::<#ty>::BEANS))
    });
    let (checks, prepare) = (check_arguments(constructor), prepare(bean, constructor));
    quote! {
        const _: () = {
            use #private::{NoBean as _, NoConfiguration as _, NoConverter as _, PlainReturn as _};

            type __CorriereBean = #made;

            #private::inventory::submit! {
                #private::BeanType {
                    name: #type_name,
                    bean: #private::BeanRequest::of::<__CorriereBean>(),
                    is_converter: #private::ConverterProbe::<__CorriereBean>::AS_CONVERTER.is_some(),
                    arguments: &[#(#known),*],
                    prepare: __corriere_prepare,
                }
            }

            #checks
            #prepare

            // Its signature is not the user's to choose freely, which naming it without a call tells clippy.
            let _ = #path;
        };
    }
}

/// The type of the bean.
fn made(constructor: &Constructor) -> TokenStream {
    match &constructor.bean {
        Made::Type(ty) => quote!(#ty),
        Made::Returned(ty) => quote_spanned! {ty.span()=>
            <#ty as ::corriere::__private::ConstructorOutput<{ ::corriere::__private::Returns::<#ty>::IS_RESULT }>>::Bean
        },
    }
}

/// The place of the bean's type, for what is wrong with that.
fn made_span(constructor: &Constructor) -> Span {
    match &constructor.bean {
        Made::Type(ty) | Made::Returned(ty) => ty.span(),
    }
}

/// The function that reads the configuration, and answers with the constructor that waits for the other beans. Every
/// argument is named at its own place, so that an error about one underlines it.
fn prepare(bean: &Bean, constructor: &Constructor) -> TokenStream {
    let private = quote!(::corriere::__private);
    let Constructor { path, arguments, is_async, returned, .. } = constructor;
    // Not to be confused with anything that the user's types or constants are called.
    let local = |name: &str| Ident::new(name, Span::mixed_site());
    let (settings, beans, made) = (local("settings"), local("beans"), local("made"));
    let values: Vec<Ident> = (0..arguments.len())
        .map(|index| format_ident!("argument_{index}", span = Span::mixed_site()))
        .collect();
    // Named once, as an error about a type is shown for every place that names it.
    let read = arguments.iter().zip(&values).map(|(argument, value)| {
        let (ty, span) = (&argument.ty, argument.ty.span());
        let via = quote_spanned!(span=> <#private::BeanWay<{ #private::ArgumentProbe::<#ty>::IS_BEAN }, { #private::ArgumentProbe::<#ty>::IS_CONFIGURATION }> as #private::ChosenBeanWay>::Via);
        quote_spanned! {span=>
            let #value = <#ty as #private::ConstructorArgument<#via>>::prepare(#settings.clone())?;
        }
    });
    let is_configuration = arguments.iter().map(is_configuration);
    let awaited = is_async.then(|| quote!(.await));
    // An error about what a call is given stands where that stands.
    let made_at = |span: Span| Ident::new("made", Span::mixed_site().located_at(span));
    let made_here = made_at(*returned);
    let into_bean = quote_spanned!(*returned=> #private::IntoBean::<__CorriereBean>::into_bean(#made_here));
    let new = quote_spanned!(made_span(constructor)=> #private::MadeBean::new::<__CorriereBean>);
    let closed = bean.close.as_ref().map(|close| {
        let made_here = made_at(close.span());
        let call = quote_spanned!(close.span()=> <__CorriereBean>::#close(&#made_here));
        let finish = quote_spanned!(close.span()=> #private::Closing(#call).finish().await);
        let kind = quote_spanned! {close.span()=>
            #private::CloseProbe::of::<__CorriereBean>(<__CorriereBean>::#close).kind()
        };
        quote! {
            .closed_by(
                #made,
                {
                    use #private::NotAsync as _;
                    #kind
                },
                |#made: #private::Bean<__CorriereBean>| ::std::boxed::Box::pin(async move {
                    use #private::ClosedAtOnce as _;
                    #finish
                }),
            )
        }
    });
    quote! {
        fn __corriere_prepare(
            #settings: #private::BeanSettings,
        ) -> ::core::result::Result<#private::BeanConstructor, #private::BeanBuildError> {
            // Without a configuration there is nothing that the bean's table could say.
            if !(false #(|| #is_configuration)*) {
                #settings.clone().none()?;
            }
            #(#read)*
            ::core::result::Result::Ok(::std::boxed::Box::new(move |mut #beans| ::std::boxed::Box::pin(async move {
                #(let #values = #values(&mut #beans)?;)*
                // Whatever is to be taken is taken.
                ::core::mem::drop(#beans);
                let #made = #path(#(#values),*)#awaited;
                let #made = #into_bean?;
                let mut whole = #new(#made.clone());
                if let ::core::option::Option::Some(as_converter) =
                    #private::ConverterProbe::<__CorriereBean>::AS_CONVERTER
                {
                    whole = whole.and_converter(as_converter(#made.clone()));
                }
                ::core::result::Result::Ok(whole #closed)
            })))
        }
    }
}

/// Refuses a second configuration, and a name for what is no bean.
fn check_arguments(constructor: &Constructor) -> TokenStream {
    let arguments = &constructor.arguments;
    let one = arguments.iter().enumerate().skip(1).map(|(index, argument)| {
        let this = is_configuration(argument);
        let earlier = arguments[..index].iter().map(is_configuration);
        let span = argument.ty.span();
        let message = LitStr::new(
            "a bean has one configuration, and an earlier argument is it; take both from one type, and other beans as \
             `Bean<T>`",
            span,
        );
        quote_spanned!(span=> const _: () = ::core::assert!(!(#this && (#(#earlier)||*)), #message);)
    });
    let named = arguments.iter().filter_map(|argument| {
        let (bean, this) = (argument.bean.as_ref()?, is_configuration(argument));
        let message = LitStr::new(
            "`#[bean(\"…\")]` names a bean, and this argument is the configuration; take a bean as `Bean<T>`",
            bean.span(),
        );
        Some(quote_spanned!(bean.span()=> const _: () = ::core::assert!(!#this, #message);))
    });
    quote!(#(#one)* #(#named)*)
}

fn is_configuration(argument: &Argument) -> TokenStream {
    let ty = &argument.ty;
    quote!(::corriere::__private::ArgumentProbe::<#ty>::IS_CONFIGURATION)
}

/// The error for a method in the same `impl` block that cannot close the bean.
fn bad_close(bean: &Bean, constructor: &Constructor) -> Option<TokenStream> {
    let close = bean.close.as_ref()?;
    let (_, checked) = constructor.methods.iter().find(|(name, _)| close == name)?;
    checked.as_ref().err().map(|error| error.clone().write_errors())
}
