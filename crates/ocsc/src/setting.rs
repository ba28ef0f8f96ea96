//! What is known of a setting, and the macro that declares a group of them.
//!
//! A setting is declared once, as a line of `settings!`:
//!
//! ```text
//! /// Replace filters that no code uses.
//! reseed: bool = true, of(Part::Lags), flag("no-reseed");
//! ```
//!
//! The line makes a field of the group's structure with this default, the entry of the model file, and a [`Setting`]: the
//! program's flag with its help, its check and its conflict with `--resume`, and the parameter of the Python package with its
//! documentation are made from that.

use crate::{Error, Result};
use serde_json::Value;

/// Describes one setting.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Setting {
    /// The name, as Python has it.
    pub name: &'static str,
    /// The JSON pointer to its place in [`Config`](crate::Config); other text for a setting of a run.
    path: &'static str,
    doc: &'static str,
    /// The program's flag without its dashes, where it is not the name.
    flag: Option<&'static str>,
    /// What the program's help calls its value.
    pub value_name: Option<&'static str>,
    /// What its values are like.
    pub kind: Kind,
    default: fn() -> Value,
    /// Which values are accepted.
    pub check: Check,
    /// Which part of a method obeys it.
    pub part: Part,
    /// When a change takes effect in a model that was learned already.
    pub effect: Effect,
    /// Whether the program's `learn` has a flag for it.
    pub is_in_learn: bool,
    /// Whether the Python package's estimator has a parameter for it.
    pub is_in_python: bool,
    /// The flag of the program's `code` and `evaluate`, where they take it; without it the model's value counts.
    pub code_flag: Option<&'static str>,
}

/// Names the parts of methods that settings belong to. A method obeys the settings of its parts, which its row lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Every method obeys it.
    Every,
    /// The active-set coder, as the coder that learns.
    ActiveSet,
    /// A coder that iterates to a tolerance.
    Iterations,
    /// A coder that iterates, with its stopping rules.
    Stopping,
    /// An ADMM coder.
    Admm,
    /// Statistics that forget, and sweeps of block descent over them.
    Sweeps,
    /// Sweeps of block descent that end when a tolerance holds.
    SweepTolerance,
    /// Block descent on lag statistics.
    Lags,
    /// What filters may be.
    Filters,
    /// Filters made of base filters.
    BaseFilters,
    /// An update that makes gradient steps of given lengths.
    Steps,
    /// An update that iterates until a tolerance holds.
    UpdateTolerance,
    /// An update that iterates as often as `update_iters` says.
    UpdateIterations,
    /// An ADMM update.
    UpdateAdmm,
    /// The schedule of batch methods.
    Batch,
}

/// Says what the values of a setting are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// True or false.
    Switch,
    /// A whole number from 0 up.
    Count,
    /// A number.
    Number,
    /// A number, or none.
    OptionalNumber,
    /// A number for every filter, or none.
    OptionalNumbers,
    /// A length for every axis.
    Lengths,
    /// Any number of sizes, each one length for every axis or one for each.
    Sizes,
    /// A number, or a text in its place.
    NumberOrText,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A text.
    Text,
    /// A text, or none.
    OptionalText,
    /// A number of bytes, or none.
    OptionalBytes,
    /// A whole number from 0 up, or none.
    OptionalCount,
}

/// Says which values of a setting are accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Check {
    /// Any of its kind.
    Any,
    /// Finite numbers above 0.
    Positive,
    /// Whole numbers from 1 up.
    AtLeastOne,
    /// Finite numbers from this one up.
    From(f64),
    /// Numbers from the first up to the second, which is not included.
    Within(f64, f64),
}

/// Says when a change of a setting takes effect in a model that was learned already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// At the next run: what was learned was learned without it.
    NextRun,
    /// In learning, from the next step on.
    Learning,
    /// In coding at once, and in learning from the next step on.
    Both,
    /// In coding at once. Learning cannot go on: its statistics were made with the old value.
    Coding,
    /// Learning cannot go on: its statistics were made with the old value.
    Fixed,
}

impl Setting {
    /// Declares a setting with the place, text, kind and default that its line says.
    pub(crate) const fn new(name: &'static str, doc: &'static str, kind: Kind, default: fn() -> Value) -> Self {
        Setting {
            name,
            path: "",
            doc,
            flag: None,
            value_name: None,
            kind,
            default,
            check: Check::Any,
            part: Part::Every,
            effect: Effect::NextRun,
            is_in_learn: true,
            is_in_python: true,
            code_flag: None,
        }
    }

    /// Says where it stands: at a JSON pointer in model files, or elsewhere.
    pub(crate) const fn at(self, path: &'static str) -> Self {
        Setting { path, ..self }
    }

    /// Gives it another name than that of the field.
    pub(crate) const fn name(self, name: &'static str) -> Self {
        Setting { name, ..self }
    }

    /// Gives it another flag than `--name`. A switch that is on by default is switched off by its flag.
    pub(crate) const fn flag(self, flag: &'static str) -> Self {
        Setting { flag: Some(flag), ..self }
    }

    /// Says what the program's help calls its value.
    pub(crate) const fn value_name(self, name: &'static str) -> Self {
        Setting { value_name: Some(name), ..self }
    }

    /// Says which values are accepted.
    pub(crate) const fn check(self, check: Check) -> Self {
        Setting { check, ..self }
    }

    /// Says which part of a method obeys it.
    pub(crate) const fn of(self, part: Part) -> Self {
        Setting { part, ..self }
    }

    /// Says when a change takes effect.
    pub(crate) const fn effect(self, effect: Effect) -> Self {
        Setting { effect, ..self }
    }

    /// Says that the program's `learn` has no flag of its own for it.
    pub(crate) const fn not_in_learn(self) -> Self {
        Setting { is_in_learn: false, ..self }
    }

    /// Says that the Python package's estimator has no parameter that is just this setting.
    pub(crate) const fn not_in_python(self) -> Self {
        Setting { is_in_python: false, ..self }
    }

    /// Gives it a flag of the program's `code` and `evaluate`.
    pub(crate) const fn in_code(self, flag: &'static str) -> Self {
        Setting { code_flag: Some(flag), ..self }
    }

    /// Returns what it does, as one sentence or two without the last full stop.
    pub fn doc(&self) -> &'static str {
        self.doc.trim().trim_end_matches('.')
    }

    /// Returns the program's flag, without its dashes.
    pub fn flag_name(&self) -> String {
        self.flag.map_or_else(|| self.name.replace('_', "-"), str::to_owned)
    }

    /// Returns the default.
    pub fn default(&self) -> Value {
        (self.default)()
    }

    /// Returns the JSON pointer to its place in [`Config`](crate::Config); none for a setting of a run.
    pub fn path(&self) -> Option<&'static str> {
        self.path.starts_with('/').then_some(self.path)
    }

    /// Returns whether model files hold it.
    pub fn is_recorded(&self) -> bool {
        self.path().is_some()
    }

    /// Returns its value in `group`, the group or configuration that has it, as JSON; null for a setting of a run.
    pub fn value(&self, group: &impl serde::Serialize) -> Value {
        let all = serde_json::to_value(group).unwrap_or_default();
        self.path().and_then(|path| all.pointer(path).cloned()).unwrap_or_default()
    }

    /// Refuses a number that is not accepted.
    pub fn validate(&self, number: f64) -> Result<()> {
        if self.check.accepts(number) { Ok(()) } else { Err(Error::invalid(self.name, self.check.words(), number)) }
    }
}

impl Check {
    /// Returns what is accepted, in words.
    pub fn words(self) -> String {
        match self {
            Check::Any => "a value of its kind".to_owned(),
            Check::Positive => "a finite number above 0".to_owned(),
            Check::AtLeastOne => "at least 1".to_owned(),
            Check::From(least) => format!("a finite number from {least} up"),
            Check::Within(least, end) => format!("a number from {least} up to, not including, {end}"),
        }
    }

    /// Returns whether a number is accepted.
    pub fn accepts(self, number: f64) -> bool {
        match self {
            Check::Any => true,
            Check::Positive => number.is_finite() && number > 0.0,
            Check::AtLeastOne => number >= 1.0,
            Check::From(least) => number.is_finite() && number >= least,
            Check::Within(least, end) => (least..end).contains(&number),
        }
    }
}

impl Kind {
    /// Returns its name, one word.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Switch => "switch",
            Kind::Count => "count",
            Kind::Number => "number",
            Kind::OptionalNumber => "optional-number",
            Kind::OptionalNumbers => "optional-numbers",
            Kind::Lengths => "lengths",
            Kind::Sizes => "sizes",
            Kind::NumberOrText => "number-or-text",
            Kind::Choice(_) => "choice",
            Kind::Text => "text",
            Kind::OptionalText => "optional-text",
            Kind::OptionalBytes => "optional-bytes",
            Kind::OptionalCount => "optional-count",
        }
    }

    /// Returns the words to choose from; none for what is no choice.
    pub fn choices(self) -> &'static [&'static str] {
        match self {
            Kind::Choice(words) => words,
            _ => &[],
        }
    }
}

impl Effect {
    /// Returns whether coding heeds a change at once.
    pub fn is_in_coding(self) -> bool {
        matches!(self, Effect::Both | Effect::Coding)
    }

    /// Returns whether learning heeds a change from the next step on.
    pub fn is_in_learning(self) -> bool {
        matches!(self, Effect::Both | Effect::Learning)
    }

    /// Returns whether learning cannot go on after a change.
    pub fn ends_learning(self) -> bool {
        matches!(self, Effect::Coding | Effect::Fixed)
    }
}

/// A type that settings have.
pub(crate) trait HasKind {
    /// What its values are like.
    const KIND: Kind;

    /// Returns the numbers that the setting's check is to accept.
    fn numbers(&self) -> &[f64] {
        &[]
    }

    /// Returns the count that the setting's check is to accept.
    fn count(&self) -> Option<u64> {
        None
    }
}

impl HasKind for bool {
    const KIND: Kind = Kind::Switch;
}

impl HasKind for usize {
    const KIND: Kind = Kind::Count;

    fn count(&self) -> Option<u64> {
        Some(*self as u64)
    }
}

impl HasKind for u64 {
    const KIND: Kind = Kind::Count;
}

impl HasKind for Vec<usize> {
    const KIND: Kind = Kind::Lengths;
}

impl HasKind for Option<usize> {
    const KIND: Kind = Kind::OptionalBytes;
}

impl HasKind for Option<u64> {
    const KIND: Kind = Kind::OptionalCount;

    fn count(&self) -> Option<u64> {
        *self
    }
}

impl HasKind for Option<String> {
    const KIND: Kind = Kind::OptionalText;
}

impl HasKind for f64 {
    const KIND: Kind = Kind::Number;

    fn numbers(&self) -> &[f64] {
        std::slice::from_ref(self)
    }
}

impl HasKind for Option<f64> {
    const KIND: Kind = Kind::OptionalNumber;

    fn numbers(&self) -> &[f64] {
        self.as_slice()
    }
}

impl HasKind for Option<Vec<f64>> {
    const KIND: Kind = Kind::OptionalNumbers;

    fn numbers(&self) -> &[f64] {
        self.as_deref().unwrap_or_default()
    }
}

/// Declares a group of settings: a structure with these fields and defaults, and its constant `SETTINGS`.
///
/// `at "/coder"` says where the group stands in model files, as a JSON pointer; `at "run"` that model files do not hold it. What
/// follows a default are methods of [`Setting`].
macro_rules! settings {
    (
        $(#[$about:meta])*
        pub struct $group:ident at $at:literal {
            $(
                $(#[doc = $doc:literal])+
                $(#[serde($serde:meta)])?
                $field:ident : $type:ty = $default:expr $(, $say:ident ( $($with:expr),* ))*;
            )*
        }
        $(groups { $($(#[doc = $group_doc:literal])+ $inner:ident : $inner_type:ty;)* })?
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $group {
            $(
                $(#[doc = $doc])+
                $(#[serde($serde)])?
                pub $field: $type,
            )*
            $($(
                $(#[doc = $group_doc])+
                pub $inner: $inner_type,
            )*)?
        }

        impl Default for $group {
            fn default() -> Self {
                $group { $($field: $default,)* $($($inner: <$inner_type>::default(),)*)? }
            }
        }

        impl $group {
            /// Lists all settings of this group, in the order of their declarations.
            pub const SETTINGS: &'static [$crate::setting::Setting] = &[
                $(
                    $crate::setting::Setting::new(
                        stringify!($field),
                        concat!($($doc),+),
                        <$type as $crate::setting::HasKind>::KIND,
                        || serde_json::to_value($group::default().$field).unwrap_or_default(),
                    )
                    .at(concat!($at, "/", stringify!($field)))
                    $(.$say($($with),*))*,
                )*
            ];

            /// Refuses values that their checks do not accept, also in the groups within.
            pub fn check_values(&self) -> $crate::Result<()> {
                use $crate::setting::HasKind;
                let mut settings = Self::SETTINGS.iter();
                $(
                    if let Some(setting) = settings.next() {
                        self.$field.numbers().iter().try_for_each(|number| setting.validate(*number))?;
                        self.$field.count().map_or(Ok(()), |count| setting.validate(count as f64))?;
                    }
                )*
                $($(self.$inner.check_values()?;)*)?
                Ok(())
            }
        }
    };
}

pub(crate) use settings;

/// Refuses a number that is not finite and above 0.
pub(crate) fn positive(what: &str, value: f64) -> Result<()> {
    if Check::Positive.accepts(value) { Ok(()) } else { Err(Error::invalid(what, Check::Positive.words(), value)) }
}
