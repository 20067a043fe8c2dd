//! The constructor under `#[corriere::bean]`.

use darling::{Error, Result};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{FnArg, ImplItem, ImplItemFn, ItemFn, ItemImpl, ReceiverKind, ReturnType, Safety, Signature, Type};

use super::no_names;
use crate::argument::{Argument, BeanNames};

/// What is emitted from.
pub(super) struct Constructor {
    /// How it is called.
    pub(super) path: TokenStream,
    pub(super) bean: Made,
    pub(super) is_async: bool,
    pub(super) arguments: Vec<Argument>,
    /// Where the type stands that it returns.
    pub(super) returned: Span,
    /// The methods beside it that could close the bean, with what is wrong with each.
    pub(super) methods: Vec<(String, Result<()>)>,
}

/// The type of the bean.
pub(super) enum Made {
    /// That of the `impl` block.
    Type(Type),
    /// What a function returns, or the value of its `Result`.
    Returned(Type),
}

impl Constructor {
    /// Reads the function `new`, and reports everything about it that no constructor can have.
    pub(super) fn of_implementation(item: &ItemImpl, names: Option<BeanNames>) -> Result<Self> {
        if let Some((interface, _)) = &item.trait_ {
            return Err(Error::custom(
                "a bean's constructor stands in an `impl` block of the type itself, not of a trait",
            )
            .with_span(interface));
        }
        if !item.generics.params.is_empty() {
            return Err(Error::custom("a bean type cannot be generic: the configuration names one type")
                .with_span(&item.generics));
        }
        let functions = || {
            item.items.iter().filter_map(|item| match item {
                ImplItem::Fn(function) => Some(function),
                _ => None,
            })
        };
        let Some(new) = functions().find(|function| function.sig.ident == "new") else {
            return Err(Error::custom(
                "a bean needs a constructor here: `fn new(config: MyConfig) -> Result<Self, MyError>`, without the argument \
                 if it has no settings",
            )
            .with_span(&item.self_ty));
        };
        let bean = &*item.self_ty;
        let path = quote!(<#bean>::new);
        let methods = functions().map(|function| (function.sig.ident.to_string(), is_method(function)));
        let made = Made::Type(bean.clone());
        let mut constructor = Self::of_signature(&new.sig, names.unwrap_or_else(no_names), path, made)?;
        constructor.methods = methods.collect();
        Ok(constructor)
    }

    /// Reads a function that stands by itself.
    pub(super) fn of_function(function: &ItemFn, names: BeanNames) -> Result<Self> {
        let signature = &function.sig;
        let returned = match &signature.output {
            ReturnType::Default => Err(Error::custom(
                "a function under `#[corriere::bean]` returns the bean, or a `Result` of it",
            )
            .with_span(&signature.ident)),
            ReturnType::Type(_, ty) if matches!(**ty, Type::ImplTrait(_)) => {
                Err(Error::custom("a bean's constructor names the type of the bean; `impl …` names none")
                    .with_span(ty))
            }
            ReturnType::Type(_, ty) => Ok(ty),
        };
        let made = |ty: &Type| Made::Returned(ty.clone());
        match returned {
            Ok(ty) => Self::of_signature(signature, names, signature.ident.to_token_stream(), made(ty)),
            Err(error) => {
                let other = check(signature, names.errors).err();
                Err(Error::multiple(std::iter::once(error).chain(other).collect()))
            }
        }
    }

    fn of_signature(signature: &Signature, names: BeanNames, path: TokenStream, bean: Made) -> Result<Self> {
        check(signature, names.errors)?;
        let mut names = names.names.into_iter();
        let typed = signature.inputs.iter().filter_map(|input| match input {
            FnArg::Typed(argument) => Some(argument),
            FnArg::Receiver(_) => None,
        });
        let arguments = typed.map(|argument| Argument::new(argument, names.next().flatten())).collect();
        Ok(Self {
            path,
            bean,
            is_async: signature.asyncness.is_some(),
            arguments,
            returned: match &signature.output {
                ReturnType::Default => signature.ident.span(),
                ReturnType::Type(_, ty) => ty.span(),
            },
            methods: Vec::new(),
        })
    }
}

fn check(signature: &Signature, names: Result<()>) -> Result<()> {
    let mut errors = Error::accumulator();
    errors.handle(names);
    if let Safety::Unsafe(safety) = &signature.safety {
        errors.push(
            Error::custom(
                "a bean's constructor cannot be `unsafe`; nothing that calls it could keep its contract",
            )
            .with_span(safety),
        );
    }
    if !signature.generics.params.is_empty() {
        errors.push(Error::custom("a bean's constructor cannot be generic").with_span(&signature.generics));
    }
    if let Some(clause) = &signature.generics.where_clause {
        errors.push(Error::custom("a bean's constructor cannot have a `where` clause").with_span(clause));
    }
    for input in &signature.inputs {
        errors.handle(check_argument(input));
    }
    errors.finish()
}

fn check_argument(input: &FnArg) -> Result<()> {
    match input {
        FnArg::Receiver(receiver) => {
            Err(Error::custom("a bean's constructor makes the bean, so it has no `self`").with_span(receiver))
        }
        FnArg::Typed(argument) => match &*argument.ty {
            Type::Reference(reference) => Err(Error::custom(
                "a bean's constructor takes its arguments by value: its configuration, and other beans as `Bean<T>`",
            )
            .with_span(reference)),
            Type::ImplTrait(ty) => Err(Error::custom(
                "a bean's constructor names the types of its arguments; `impl …` names none",
            )
            .with_span(ty)),
            _ => Ok(()),
        },
    }
}

/// Whether a function can close the bean.
fn is_method(function: &ImplItemFn) -> Result<()> {
    let expected = "the method that closes a bean takes `&self` and nothing else";
    let mut inputs = function.sig.inputs.iter();
    match (inputs.next(), inputs.next()) {
        (Some(FnArg::Receiver(receiver)), None)
            if matches!(receiver.kind, ReceiverKind::Reference(_, _, None)) =>
        {
            Ok(())
        }
        (_, Some(more)) => Err(Error::custom(expected).with_span(more)),
        (Some(first), None) => Err(Error::custom(expected).with_span(first)),
        (None, None) => Err(Error::custom(expected).with_span(&function.sig.ident)),
    }
}
