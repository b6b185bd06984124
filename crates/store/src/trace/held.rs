//! What a column of a recording can hold: how it is kept in Arrow, filled from records, and read again.
//!
//! Which columns there are is for [`super::columns`] to say.

use crate::catalog::{Class, CopyKind, HostMemory};
use crate::record::Kind;
use arrow_array::builder::{BooleanBuilder, PrimitiveBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, PrimitiveArray, StringArray};
use arrow_schema::DataType;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a column holds.
pub(super) trait Held {
    /// Whether a row may have none.
    const NULLABLE: bool = false;
    type Given<'a>;
    type Found<'a>;
    type Builder: Default;
    type View<'a>;
    fn data_type() -> DataType;
    fn append(builder: &mut Self::Builder, given: Self::Given<'_>);
    fn finish(builder: &mut Self::Builder) -> ArrayRef;
    /// `None`: it holds something else.
    fn view(column: &dyn Array) -> Option<Self::View<'_>>;
    /// Of a row that is there.
    fn found<'a>(view: &Self::View<'a>, row: usize) -> Self::Found<'a>;
}

/// What a row may have none of.
pub(super) struct Maybe<H>(PhantomData<H>);

/// A number.
pub(super) struct Number<T>(PhantomData<T>);

pub(super) struct Truth;

/// One of many texts, each of which comes often. None is an empty one.
pub(super) struct Name;

/// One of few words.
pub(super) struct Word<W>(PhantomData<W>);

/// Texts that are each another one.
pub(super) struct Text;

/// What is written as a word.
pub(super) trait Worded: Copy {
    fn word(self) -> &'static str;
    fn of_word(word: &str) -> Option<Self>;
}

macro_rules! worded {
    ($($kind:ty: $of:expr;)+) => {
        $(impl Worded for $kind {
            fn word(self) -> &'static str {
                self.name()
            }

            fn of_word(word: &str) -> Option<$kind> {
                $of(word)
            }
        })+
    };
}

worded! {
    Kind: Kind::from_name;
    Class: Class::from_name;
    CopyKind: |word| CopyKind::ALL.into_iter().find(|kind: &CopyKind| kind.name() == word);
    HostMemory: HostMemory::from_name;
}

/// What lies in an array as it is.
macro_rules! in_array {
    ($([$($of:ident: $bound:ident)?] $held:ty, $nullable:literal, $value:ty, $data_type:expr;
        $builder:ty, $append:ident; $array:ty, $cast:ident, |$values:ident, $row:ident| $found:expr;)+) => {
        $(impl$(<$of: $bound>)? Held for $held {
            const NULLABLE: bool = $nullable;
            type Given<'a> = $value;
            type Found<'a> = $value;
            type Builder = $builder;
            type View<'a> = &'a $array;

            fn data_type() -> DataType {
                $data_type
            }

            fn append(builder: &mut Self::Builder, given: Self::Given<'_>) {
                builder.$append(given);
            }

            fn finish(builder: &mut Self::Builder) -> ArrayRef {
                Arc::new(builder.finish())
            }

            fn view(column: &dyn Array) -> Option<Self::View<'_>> {
                column.$cast()
            }

            fn found<'a>(view: &Self::View<'a>, row: usize) -> Self::Found<'a> {
                let ($values, $row) = (*view, row);
                $found
            }
        })+
    };
}

in_array! {
    [T: ArrowPrimitiveType] Number<T>, false, T::Native, T::DATA_TYPE;
        PrimitiveBuilder<T>, append_value; PrimitiveArray<T>, as_primitive_opt, |values, row| values.value(row);
    [T: ArrowPrimitiveType] Maybe<Number<T>>, true, Option<T::Native>, T::DATA_TYPE;
        PrimitiveBuilder<T>, append_option; PrimitiveArray<T>, as_primitive_opt, |values, row| values.is_valid(row).then(|| values.value(row));
    [] Truth, false, bool, DataType::Boolean;
        BooleanBuilder, append_value; BooleanArray, as_boolean_opt, |values, row| values.value(row);
    [] Maybe<Text>, true, Option<&'a str>, DataType::Utf8;
        StringBuilder, append_option; StringArray, as_string_opt, |values, row| values.is_valid(row).then(|| values.value(row));
}

/// What a dictionary stands for, and which of that a row has: each entry is looked at once.
pub(super) struct Entries<'a, T> {
    keys: &'a Int32Array,
    entries: Vec<Option<T>>,
}

impl<'a, T: Copy> Entries<'a, T> {
    fn of(column: &'a dyn Array, understand: impl Fn(&'a str) -> Option<T>) -> Option<Entries<'a, T>> {
        let dictionary = column.as_dictionary_opt::<Int32Type>()?;
        let texts: &StringArray = dictionary.values().as_string_opt()?;
        Some(Entries {
            keys: dictionary.keys(),
            entries: texts.iter().map(|text| text.and_then(&understand)).collect(),
        })
    }

    fn at(&self, row: usize) -> Option<T> {
        let key = self.keys.is_valid(row).then(|| self.keys.value(row))?;
        self.entries.get(usize::try_from(key).ok()?).copied().flatten()
    }
}

fn dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// What lies in a dictionary: how a text of it is written, and understood.
macro_rules! in_dictionary {
    ($([$($of:ident: $bound:ident)?] $held:ty, $nullable:literal, $given:ty => $text:expr, $entry:ty => $understand:expr, $found:ty => $take:expr;)+) => {
        $(impl$(<$of: $bound>)? Held for $held {
            const NULLABLE: bool = $nullable;
            type Given<'a> = $given;
            type Found<'a> = $found;
            type Builder = StringDictionaryBuilder<Int32Type>;
            type View<'a> = Entries<'a, $entry>;

            fn data_type() -> DataType {
                dictionary()
            }

            fn append(builder: &mut Self::Builder, given: Self::Given<'_>) {
                builder.append_option($text(given));
            }

            fn finish(builder: &mut Self::Builder) -> ArrayRef {
                Arc::new(builder.finish())
            }

            fn view(column: &dyn Array) -> Option<Self::View<'_>> {
                Entries::of(column, $understand)
            }

            fn found<'a>(view: &Self::View<'a>, row: usize) -> Self::Found<'a> {
                $take(view.at(row))
            }
        })+
    };
}

in_dictionary! {
    [] Name, false, &'a str => Some, &'a str => Some, &'a str => Option::unwrap_or_default;
    [] Maybe<Name>, true, Option<&'a str> => std::convert::identity, &'a str => Some, Option<&'a str> => std::convert::identity;
    [W: Worded] Word<W>, false, W => |given: W| Some(given.word()), W => W::of_word, Option<W> => std::convert::identity;
    [W: Worded] Maybe<Word<W>>, true, Option<W> => |given: Option<W>| given.map(W::word), W => W::of_word, Option<W> => std::convert::identity;
}
