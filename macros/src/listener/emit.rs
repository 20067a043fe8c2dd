//! What stands beside the function.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, LitStr};

use super::arguments::{Acknowledge, Destination, Listener, constant_name};
use super::function::Function;

/// The type with the name of the function, its constants, and their registration.
pub(super) fn listeners(function: &Function, listeners: &[Listener]) -> TokenStream {
    let Function { name, visibility, .. } = function;
    let run = run(function);
    let payloads = at_most_one_payload(function);
    let (constants, registered) = constants(function, listeners);
    let documentation = format!("The listener that calls [`fn@{name}`].");
    quote! {
        #[doc = #documentation]
        #[allow(non_camel_case_types, clippy::exhaustive_enums)]
        #[derive(Debug)]
        #visibility enum #name {}

        const _: () = {
            #[allow(unused_imports)]
            use ::corriere::__private::{NoBody as _, NoContext as _};

            impl #name {
                #constants
            }

            #payloads
            #run
            #(::corriere::__private::inventory::submit! {
                ::corriere::__private::ListenerRegistration(&#name::#registered)
            })*
        };
    }
}

fn constants(function: &Function, listeners: &[Listener]) -> (TokenStream, Vec<Ident>) {
    let span = Span::call_site();
    if let [listener] = listeners {
        let definition = definition(function, listener);
        let constant = quote! {
            /// The listener, for registration by hand and for tests.
            pub const DEF: ::corriere::__private::ListenerDef = #definition;
        };
        return (constant, vec![Ident::new("DEF", span)]);
    }
    let name = |listener: &Listener| {
        Ident::new(&listener.id.as_ref().map(|id| constant_name(id)).unwrap_or_default(), span)
    };
    let names: Vec<Ident> = listeners.iter().map(name).collect();
    let definitions = listeners.iter().map(|listener| definition(function, listener));
    let count = listeners.len();
    let constants = quote! {
        #(
            /// One of the function's listeners, for registration by hand and for tests.
            pub const #names: ::corriere::__private::ListenerDef = #definitions;
        )*

        /// All of the function's listeners, in the order of their attributes.
        pub const DEFS: [::corriere::__private::ListenerDef; #count] = [#(Self::#names),*];
    };
    (constants, names)
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
    let replies = returned.replies;
    quote! {
        #private::ListenerDef {
            id: #id,
            module: ::core::module_path!(),
            destination: #destination,
            acknowledge: #acknowledge,
            concurrency: #concurrency,
            send_to: #send_to,
            container: #container,
            beans: &[#(#private::Probe::<#arguments>::BEANS),*],
            replies: #replies,
            blocking: #blocking,
            invoke: run,
        }
    }
}

/// The function that makes the arguments, calls the user's function and classes what it returned. Every argument and the
/// return type are named at their own place, so that an error about one underlines it.
fn run(function: &Function) -> TokenStream {
    let private = quote!(::corriere::__private);
    let Function { name, arguments, returned, .. } = function;
    // Not to be confused with anything that the user's types or constants are called.
    let invocation = Ident::new("invocation", Span::mixed_site());
    let values: Vec<Ident> = (0..arguments.len())
        .map(|index| format_ident!("argument_{index}", span = Span::mixed_site()))
        .collect();
    let made = arguments.iter().zip(&values).map(|(ty, value)| {
        let span = ty.span();
        // All of it stands at the argument: two errors about one type at one place are shown as one.
        quote_spanned! {span=>
            let #value = match <#ty as #private::FromDelivery<_>>::from_delivery(#invocation).await {
                ::core::result::Result::Ok(value) => value,
                ::core::result::Result::Err(error) => return #private::Outcome::Failed(error),
            };
        }
    });
    let (ty, kind) = (&returned.ty, &returned.kind);
    let converter = Ident::new("converter", Span::mixed_site());
    let into_outcome = |call: TokenStream, converter: TokenStream| quote_spanned!(returned.span=> <#ty as #private::IntoOutcome<#kind>>::into_outcome(#call, #converter));
    let called = if function.blocking {
        let outcome = into_outcome(quote!(#name(#(#values),*)), quote!(#converter));
        quote!(#private::call_blocking(#invocation, move |#converter| #outcome).await)
    } else {
        into_outcome(quote!(#name(#(#values),*).await), quote!(&**#invocation.converter()))
    };
    quote! {
        fn run(#invocation: &mut #private::Invocation) -> #private::BoxFuture<'_, #private::Outcome> {
            ::std::boxed::Box::pin(async move {
                #(#made)*
                #called
            })
        }
    }
}

fn at_most_one_payload(function: &Function) -> TokenStream {
    let private = quote!(::corriere::__private);
    let is_payload =
        |ty: &syn::Type| quote!((#private::Probe::<#ty>::IS_BODY || #private::Probe::<#ty>::IS_PAYLOAD));
    let checks = function.arguments.iter().enumerate().skip(1).map(|(index, ty)| {
        let this = is_payload(ty);
        let earlier = function.arguments[..index].iter().map(is_payload);
        let message = LitStr::new(
            "a listener has one payload, and an earlier argument is it; other arguments are `Header<K>`, `Headers`, \
             `Properties`, `Delivery`, `Session`, `Bean<T>`, `Message`, or a type of your own with `impl FromDelivery`",
            ty.span(),
        );
        quote_spanned!(ty.span()=> const _: () = ::core::assert!(!(#this && (#(#earlier)||*)), #message);)
    });
    quote!(#(#checks)*)
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
