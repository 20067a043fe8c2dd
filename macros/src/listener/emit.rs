//! What stands beside the function.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, LitStr, Type};

use super::acknowledge::Acknowledge;
use super::arguments::{Destination, Listener, constant_name};
use super::function::Function;
use crate::argument::Argument;

/// The type with the name of the function, its constants, and their registration.
///
/// Everything here comes from the macro, and lints leave that alone even where they are forbidden; so there is no `allow`
/// among it, which a `forbid` would refuse. Names beside the user's own are unlikely ones, as items have no hygiene.
pub(super) fn listeners(function: &Function, listeners: &[Listener]) -> TokenStream {
    let Function { name, visibility, .. } = function;
    let private = quote!(::corriere::__private);
    let documentation = format!("The listener that calls [`fn@{name}`].");
    let listener = {
        let mut listener = name.clone();
        listener.set_span(Span::call_site().located_at(name.span()));
        listener
    };
    let invoke = invoke(function);
    let arguments = check_arguments(function);
    let returned = check_returned(function);
    let definitions: Vec<_> = listeners.iter().map(|listener| definition(function, listener)).collect();
    let hidden: Vec<_> =
        (0..listeners.len()).map(|index| format_ident!("__CORRIERE_DEFINITION_{index}")).collect();
    let constants = constants(listeners, &hidden);
    let item = quote_spanned!(listener.span()=> enum #listener {});
    quote! {
        #[doc = #documentation]
        #visibility #item

        const _: () = {
            use #private::{NoBody as _, NoContext as _, PlainReturn as _};

            #(const #hidden: #private::ListenerDef = #definitions;)*

            impl #listener {
                #constants
            }

            #(#private::inventory::submit! { #private::ListenerRegistration(&#hidden) })*

            #arguments
            #returned
            #invoke

            // Its signature is not the user's to choose freely, which naming it without a call tells clippy.
            let _ = #name;
        };
    }
}

fn constants(listeners: &[Listener], definitions: &[Ident]) -> TokenStream {
    if let [definition] = definitions {
        return quote! {
            /// The listener, for registration by hand and for tests.
            pub const DEF: ::corriere::__private::ListenerDef = #definition;
        };
    }
    let name = |listener: &Listener| {
        let name = listener.id.as_ref().map(|id| constant_name(id)).unwrap_or_default();
        Ident::new(&name, Span::call_site())
    };
    let names: Vec<Ident> = listeners.iter().map(name).collect();
    let count = listeners.len();
    quote! {
        #(
            /// One of the function's listeners, for registration by hand and for tests.
            pub const #names: ::corriere::__private::ListenerDef = #definitions;
        )*

        /// All of the function's listeners, in the order of their attributes.
        pub const DEFS: [::corriere::__private::ListenerDef; #count] = [#(#definitions),*];
    }
}

fn definition(function: &Function, listener: &Listener) -> TokenStream {
    let private = quote!(::corriere::__private);
    let Function { name, blocking, arguments, returned, .. } = function;
    let id = listener.id.as_ref().map_or_else(|| plain_name(name), |id| id.as_ref().clone());
    let destination = match &listener.destination {
        Destination::Queue(queue) => quote!(#private::ListenerDestination::Queue(#queue)),
        Destination::Topic(topic) => quote!(#private::ListenerDestination::Topic(#topic)),
    };
    let acknowledge = option(listener.acknowledge.map(|acknowledge| {
        let variant = match acknowledge {
            Acknowledge::Auto => quote!(Auto),
            Acknowledge::Client => quote!(Client),
            Acknowledge::DupsOk => quote!(DupsOk),
            Acknowledge::Individual => quote!(Individual),
            Acknowledge::Transacted => quote!(Transacted),
            Acknowledge::Manual => quote!(Manual),
        };
        quote!(#private::Acknowledge::#variant)
    }));
    let concurrency = option(listener.concurrency.map(|concurrency| {
        let (lower, upper) = (concurrency.lower, concurrency.upper);
        quote!(#private::Concurrency::new(#lower, #upper))
    }));
    let text = |text: &Option<String>| option(text.as_ref().map(|text| quote!(#text)));
    let (send_to, container) = (text(&listener.send_to), text(&listener.container));
    let (subscription, client_id) = (text(&listener.subscription), text(&listener.client_id));
    let ty = &returned.ty;
    let arguments = arguments.iter().map(known);
    quote! {
        #private::ListenerDef {
            id: #id,
            module: ::core::module_path!(),
            location: ::core::concat!(::core::file!(), ":", ::core::line!(), ":", ::core::column!()),
            destination: #destination,
            subscription: #subscription,
            client_id: #client_id,
            acknowledge: #acknowledge,
            concurrency: #concurrency,
            send_to: #send_to,
            container: #container,
            beans: &[#(#arguments),*],
            replies: #private::Returns::<#ty>::REPLIES,
            blocking: #blocking,
            invoke: __corriere_invoke,
        }
    }
}

/// What is known of an argument before it is made.
fn known(argument: &Argument) -> TokenStream {
    let ty = &argument.ty;
    argument.emit(&quote!(::corriere::__private::Probe::<#ty>::BEANS))
}

/// The function that makes the arguments, calls the user's function and classes what it returned. Every argument and the
/// return type are named at their own place, so that an error about one underlines it.
fn invoke(function: &Function) -> TokenStream {
    let private = quote!(::corriere::__private);
    let Function { name, arguments, returned, .. } = function;
    // Not to be confused with anything that the user's types or constants are called.
    let local = |name: &str| Ident::new(name, Span::mixed_site());
    let (invocation, converter, made, error) =
        (local("invocation"), local("converter"), local("made"), local("error"));
    let values: Vec<Ident> = (0..arguments.len())
        .map(|index| format_ident!("argument_{index}", span = Span::mixed_site()))
        .collect();
    let arguments = arguments.iter().zip(&values).map(|(argument, value)| {
        let (ty, known) = (&argument.ty, known(argument));
        let span = ty.span();
        // All of it stands at the argument: two errors about one type at one place are shown as one.
        let via = quote_spanned!(span=> <#private::Way<{ #private::Probe::<#ty>::IS_CONTEXT }, { #private::Probe::<#ty>::IS_BODY }> as #private::ChosenWay>::Via);
        quote_spanned! {span=>
            let #value = match <#ty as #private::FromDelivery<#via>>::from_delivery(#invocation.for_argument(&#known)).await {
                ::core::result::Result::Ok(#made) => #made,
                ::core::result::Result::Err(#error) => return #private::Outcome::Failed(#error),
            };
        }
    });
    let ty = &returned.ty;
    let into_outcome = |call: TokenStream, converter: TokenStream| {
        let kind = quote_spanned!(returned.span=> <#private::Kind<{ #private::Returns::<#ty>::IS_RESULT }> as #private::ChosenKind>::Of<_>);
        quote_spanned!(returned.span=> <#ty as #private::IntoOutcome<#kind>>::into_outcome(#call, #converter))
    };
    let called = if function.blocking {
        let outcome = into_outcome(quote!(#name(#(#values),*)), quote!(#converter));
        quote!(#private::call_blocking(#invocation, move |#converter| #outcome).await)
    } else {
        into_outcome(quote!(#name(#(#values),*).await), quote!(&**#invocation.converter()))
    };
    quote! {
        fn __corriere_invoke(#invocation: &mut #private::Invocation) -> #private::BoxFuture<'_, #private::Outcome> {
            ::std::boxed::Box::pin(async move {
                #(#arguments)*
                #called
            })
        }
    }
}

/// Refuses a type that could be made in both ways, and a second payload.
fn check_arguments(function: &Function) -> TokenStream {
    let private = quote!(::corriere::__private);
    let probe = |ty: &Type| quote!(#private::Probe::<#ty>);
    let types = || function.arguments.iter().map(|argument| &argument.ty);
    let either = types().map(|ty| {
        let probe = probe(ty);
        let message = LitStr::new(
            "this type has both `Deserialize` and `impl FromDelivery`, so it could be the payload or not; take the payload as \
             `Payload<T>`, or drop one of the two",
            ty.span(),
        );
        quote_spanned!(ty.span()=> const _: () = ::core::assert!(!(#probe::IS_BODY && #probe::IS_CONTEXT), #message);)
    });
    let is_payload = |ty: &Type| {
        let probe = probe(ty);
        quote!((#probe::IS_PAYLOAD || (#probe::IS_BODY && !#probe::IS_CONTEXT)))
    };
    let one_payload = types().enumerate().skip(1).map(|(index, ty)| {
        let this = is_payload(ty);
        let earlier = types().take(index).map(is_payload);
        let message = LitStr::new(
            "a listener has one payload, and an earlier argument is it; other arguments are `Header<K>`, `Headers`, \
             `Properties`, `Delivery`, `Session`, `Bean<T>`, `Message`, or a type of your own with `impl FromDelivery`",
            ty.span(),
        );
        quote_spanned!(ty.span()=> const _: () = ::core::assert!(!(#this && (#(#earlier)||*)), #message);)
    });
    let named = function.arguments.iter().filter_map(|argument| {
        let (bean, probe) = (argument.bean.as_ref()?, probe(&argument.ty));
        let message = LitStr::new(
            "`#[bean(\"…\")]` names the bean of an argument, and this argument is none; take it as `Bean<T>`",
            bean.span(),
        );
        Some(quote_spanned!(bean.span()=> const _: () = ::core::assert!(#probe::BEANS.len() == 1, #message);))
    });
    quote!(#(#either)* #(#one_payload)* #(#named)*)
}

/// Refuses a `Result` where its error would be sent as a reply.
fn check_returned(function: &Function) -> TokenStream {
    let (ty, span) = (&function.returned.ty, function.returned.span);
    let message = LitStr::new(
        "the error within this `Option` would be sent as a reply; return a `Result` of an `Option` instead",
        span,
    );
    quote_spanned!(span=> const _: () = ::core::assert!(!::corriere::__private::Returns::<#ty>::HIDES_AN_ERROR, #message);)
}

/// The function's name without `r#`.
fn plain_name(name: &Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#").unwrap_or(&name).to_owned()
}

fn option(value: Option<TokenStream>) -> TokenStream {
    value.map_or_else(
        || quote!(::core::option::Option::None),
        |value| quote!(::core::option::Option::Some(#value)),
    )
}
