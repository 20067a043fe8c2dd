//! The function under `#[jms_listener]`.

use darling::{Error, Result};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{FnArg, Ident, ItemFn, LitStr, ReturnType, Safety, Signature, Type, Visibility};

use crate::argument::{Argument, BeanNames};

/// What is emitted from.
pub(super) struct Function {
    pub(super) name: Ident,
    pub(super) visibility: Visibility,
    /// A plain `fn`, which runs on a thread of its own.
    pub(super) blocking: bool,
    pub(super) arguments: Vec<Argument>,
    pub(super) returned: Returned,
}

/// The return type. What kind of return type it is, its spelling does not say: `Result` may be called otherwise, so the
/// emitted code asks the type.
pub(super) struct Returned {
    pub(super) ty: TokenStream,
    pub(super) span: Span,
}

impl Function {
    /// Reads the function and reports everything about it that no listener can have.
    pub(super) fn read(function: &ItemFn, beans: BeanNames) -> Result<Self> {
        let signature = &function.sig;
        let mut errors = Error::accumulator();
        errors.handle(no_qualifiers(signature));
        errors.handle(no_generics(signature));
        errors.handle(beans.errors);
        let inputs = signature.inputs.iter().zip(beans.names);
        let arguments = inputs.filter_map(|(input, bean)| errors.handle(argument(input, bean))).collect();
        let returned = errors.handle(Returned::read(&signature.output));
        errors.finish()?;
        let returned = returned.ok_or_else(|| Error::custom("the return type cannot be read"))?;
        Ok(Self {
            name: signature.ident.clone(),
            visibility: function.vis.clone(),
            blocking: signature.asyncness.is_none(),
            arguments,
            returned,
        })
    }
}

impl Returned {
    fn read(output: &ReturnType) -> Result<Self> {
        match output {
            ReturnType::Default => Ok(Self { ty: quote!(()), span: Span::call_site() }),
            ReturnType::Type(_, ty) if matches!(**ty, Type::ImplTrait(_)) => Err(Error::custom(
                "a listener names its return type; where it is a future, make the function `async`",
            )
            .with_span(ty)),
            ReturnType::Type(_, ty) => Ok(Self { ty: ty.to_token_stream(), span: ty.span() }),
        }
    }
}

fn no_qualifiers(signature: &Signature) -> Result<()> {
    let mut errors = Error::accumulator();
    let mut refuse = |tokens: &dyn ToTokens, what: &str| {
        errors
            .push(Error::custom(format!("a listener cannot be {what}")).with_span(&tokens.to_token_stream()));
    };
    if let Some(constness) = &signature.constness {
        refuse(constness, "`const`; it runs only when a message arrives");
    }
    if let Safety::Unsafe(safety) = &signature.safety {
        refuse(safety, "`unsafe`; nothing that calls it could keep its contract");
    }
    if let Some(abi) = &signature.abi {
        refuse(abi, "`extern`; the framework calls it as a Rust function");
    }
    if let Some(variadic) = &signature.variadic {
        refuse(variadic, "variadic");
    }
    errors.finish()
}

fn no_generics(signature: &Signature) -> Result<()> {
    let generics = &signature.generics;
    if !generics.params.is_empty() {
        return Err(Error::custom(
            "a listener cannot be generic; its arguments say what is read from the message",
        )
        .with_span(&generics.params));
    }
    match &generics.where_clause {
        Some(clause) => Err(Error::custom("a listener cannot have a `where` clause").with_span(clause)),
        None => Ok(()),
    }
}

fn argument(input: &FnArg, bean: Option<LitStr>) -> Result<Argument> {
    match input {
        FnArg::Receiver(receiver) => Err(Error::custom(
            "a listener is a free function and has no `self`; take what it needs as a `Bean<T>` argument",
        )
        .with_span(receiver)),
        FnArg::Typed(argument) => match &*argument.ty {
            Type::Reference(reference) => {
                Err(Error::custom("a listener takes its arguments by value; drop the `&`")
                    .with_span(reference))
            }
            Type::ImplTrait(ty) => {
                Err(Error::custom("a listener names the types of its arguments; `impl …` names none")
                    .with_span(ty))
            }
            _ => Ok(Argument::new(argument, bean)),
        },
    }
}
