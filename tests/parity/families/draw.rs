//! Choices from a seed.

use gpu_batch_simulator::random::Random;
use serde_json::{Map, Value};

/// Makes the choices of one case.
pub(crate) struct Draw(Random);

impl Draw {
    /// The choices of a case, by its number under a seed: no case depends on those before it.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let mut seeds = Random::new(seed);
        let mut numbers = Random::new(number ^ seeds.next_u64());
        Self(Random::new(numbers.next_u64()))
    }

    /// A number below a bound.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// True with a chance of so many percent.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.0.percent(percent)
    }

    /// One of the choices.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        self.0.pick(choices)
    }

    /// A list of fewer than so many things.
    pub(crate) fn fewer<T>(&mut self, bound: u64, each: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.below(bound);
        self.several(count, each)
    }

    /// A list of so many things.
    pub(crate) fn several<T>(
        &mut self,
        count: u64,
        mut each: impl FnMut(&mut Self) -> T,
    ) -> Vec<T> {
        (0..count).map(|_| each(self)).collect()
    }

    /// A list that is absent, null, empty, or has fewer than so many entries.
    pub(crate) fn list(&mut self, bound: u64, each: impl FnMut(&mut Self) -> Value) -> Value {
        match self.below(12) {
            0 => Value::Null,
            1 => Value::Array(Vec::new()),
            _ => Value::Array(self.fewer(bound, each)),
        }
    }

    /// An object in which each field stands with its chance in percent.
    pub(crate) fn some_of(&mut self, fields: &[(&str, u64, Value)]) -> Value {
        let mut object = Map::new();
        for (name, percent, value) in fields {
            if self.percent(*percent) {
                object.insert((*name).to_owned(), value.clone());
            }
        }
        Value::Object(object)
    }
}
