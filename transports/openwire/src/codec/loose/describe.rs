//! Structures out of their descriptions.

/// Makes structures of what is said of them: a type, a name, and the fields in the order of the wire.
///
/// A field is `name: Kind`, with the versions that have it in brackets where not all do: `client_id: Text [10..]`. A
/// command that not all versions have says so behind its name. A `command` begins with its number and whether it wants
/// an answer (`BaseCommand`); a `structure` does not; `fields` have no type of their own. What stands `beside` the fields
/// is no field: whoever reads the type sets it.
macro_rules! describe {
    () => {};
    ($(#[$meta:meta])* command $type:literal $name:ident $([$of:expr])? { $($fields:tt)* } $($rest:tt)*) => {
        $crate::codec::loose::describe! {
            $(#[$meta])*
            fields $name {
                /// The number that the sender gave this command, which an answer names.
                command_id: i32,
                /// Whether the sender waits for an answer.
                response_required: bool,
                $($fields)*
            }
        }

        impl $crate::codec::loose::Described for $name {
            const TYPE: u8 = $type;

            $(fn is_in(version: $crate::codec::Version) -> bool {
                ($of).contains(&version.number())
            })?

            fn command(&self) -> Option<(i32, bool)> {
                Some((self.command_id, self.response_required))
            }

            fn set_command_id(&mut self, id: i32) {
                self.command_id = id;
            }
        }

        $crate::codec::loose::describe! { $($rest)* }
    };
    ($(#[$meta:meta])* structure $type:literal $name:ident { $($fields:tt)* } $($rest:tt)*) => {
        $crate::codec::loose::describe! { $(#[$meta])* fields $name { $($fields)* } }

        impl $crate::codec::loose::Described for $name {
            const TYPE: u8 = $type;
        }

        $crate::codec::loose::describe! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        fields $name:ident $(beside { $($(#[$beside_meta:meta])* $beside:ident: $beside_kind:ty,)* })? {
            $($(#[$field_meta:meta])* $field:ident: $kind:ty $([$versions:expr])?,)*
        }
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($($(#[$beside_meta])* pub $beside: $beside_kind,)*)?
            $(
                $(#[$field_meta])*
                $(#[doc = concat!("\n\nOn the wire in versions ", stringify!($versions), ".")])?
                pub $field: $kind,
            )*
        }

        impl $crate::codec::loose::Fields for $name {
            const NAME: &'static str = stringify!($name);

            #[allow(unused_variables, reason = "some structures have no fields")]
            fn read_all(reader: &mut $crate::codec::loose::Reader<'_>) -> Result<Self, $crate::DecodeError> {
                // A literal's fields are evaluated in the order in which they are written.
                Ok(Self {
                    $(
                        $field: if true $(&& ($versions).contains(&reader.version().number()))? {
                            <$kind as $crate::codec::loose::Field>::read(reader)
                                .map_err(|error| error.within(stringify!($field)))?
                        } else {
                            Default::default()
                        },
                    )*
                    $($($beside: Default::default(),)*)?
                })
            }

            #[allow(unused_variables, reason = "some structures have no fields")]
            fn write_all(&self, writer: &mut $crate::codec::loose::Writer<'_>) -> Result<(), $crate::EncodeError> {
                $(
                    if true $(&& ($versions).contains(&writer.version().number()))? {
                        $crate::codec::loose::Field::write(&self.$field, writer)
                            .map_err(|error| error.within(stringify!($field)))?;
                    }
                )*
                Ok(())
            }

            #[cfg(test)]
            #[allow(unused_variables, reason = "some structures have no fields")]
            fn sample_all(source: &mut $crate::codec::sample::Source) -> Self {
                Self {
                    $(
                        $field: if true $(&& ($versions).contains(&source.version().number()))? {
                            $crate::codec::loose::Field::sample(source)
                        } else {
                            Default::default()
                        },
                    )*
                    $($($beside: Default::default(),)*)?
                }
            }
        }

        $crate::codec::loose::describe! { $($rest)* }
    };
}

pub(crate) use describe;
