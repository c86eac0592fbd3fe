//! The part of each card that a pod asks for by annotations, in our spelling and in KAI's.
//!
//! HAMi's device plugin keeps a container to what the annotations of its pod say, which a binding
//! writes, and not to the container's own resources. So annotations are as good as resources; but
//! the kubelet asks the plugin for nothing unless the container asks for `nvidia.com/gpu`.

use super::choice;
use crate::kube::convert::problems::Problems;
use crate::kube::convert::{keys, quantity};
use crate::kube::objects::Annotations;
use gpu_batch_policies::facts::{CardMemory, CardModes};
use std::fmt;
use std::ops::RangeInclusive;

/// The most cards of a node.
pub(super) const CARDS_MAX: u64 = 256;
/// The largest number that HAMi reads.
pub(super) const NUMBER_MAX: u64 = i32::MAX.unsigned_abs() as u64;

const KAI_FRACTION: &str = "gpu-fraction";
const KAI_MEMORY: &str = "gpu-memory";
const KAI_COUNT: &str = "gpu-fraction-num-devices";
const KAI_CONTAINER: &str = "gpu-fraction-container-name";

/// Thousandths of a byte in a MiB.
const MIB: quantity::Thousandths = 1_000 << 20;

/// What the annotations of a pod ask of its cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked<'a> {
    /// Nothing.
    Nothing,
    /// Nothing, though the annotation `gpu-slice` says how a card is to be divided.
    SliceAlone,
    /// A part of each card.
    Part(Part<'a>),
    /// Something that makes no sense, which is a problem.
    Wrong,
}

/// A part of each card of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'a> {
    /// The annotation that asks for it.
    pub(super) key: &'static str,
    pub(super) memory: CardMemory,
    /// The computing power, in percent of a card.
    pub(super) power_percent: u64,
    /// How many cards KAI's annotation says, with its key.
    pub(super) count: Option<(&'static str, u64)>,
    /// The container that KAI's annotation names, with its key.
    pub(super) container: Option<(&'static str, &'a str)>,
}

/// Whether a pod asks for parts of cards by annotations, however wrong they are.
pub(super) fn asks_for_parts(annotations: &Annotations) -> bool {
    let keys = [
        keys::GPU_FRACTION,
        keys::GPU_MEMORY,
        keys::GPU_CORES,
        KAI_FRACTION,
        KAI_MEMORY,
    ];
    keys.iter().any(|key| annotations.get(key).is_some())
}

/// Reads what a pod asks for. A fraction is of a card's memory and of its computing power, unless
/// `gpu-cores` says another power; memory alone leaves the power to whoever needs it.
pub(super) fn asked<'a>(annotations: &'a Annotations, problems: &mut Problems) -> Asked<'a> {
    let mut reader = Reader {
        annotations,
        problems,
        is_sound: true,
    };
    let percent = reader.either([
        (keys::GPU_FRACTION, percent as Parse<u32>),
        (KAI_FRACTION, percent),
    ]);
    let mib = reader.either([
        (keys::GPU_MEMORY, mib as Parse<u64>),
        (KAI_MEMORY, whole_mib),
    ]);
    let power = reader.read(keys::GPU_CORES, |text| whole(text, 0..=100));
    let count = reader.read(KAI_COUNT, |text| whole(text, 1..=CARDS_MAX));
    let has_slice = reader.read(keys::GPU_SLICE, slice).is_some();
    if let (Some((fraction, _)), Some((memory, _))) = (percent, mib) {
        let problem = format_args!("asks for memory, and {fraction} for a part of it; write one");
        reader.problem(memory, problem);
    }
    let key = [
        percent.map(|it| it.0),
        mib.map(|it| it.0),
        power.map(|it| it.0),
    ];
    let Some(key) = key.into_iter().flatten().next() else {
        if let Some((key, _)) = count {
            let problem = "counts the cards of gpu-fraction or gpu-memory, and neither is there";
            reader.problem(key, problem);
        }
        return match reader.is_sound {
            true if has_slice => Asked::SliceAlone,
            true => Asked::Nothing,
            false => Asked::Wrong,
        };
    };
    let (memory, default_percent) = match (percent, mib) {
        (Some((_, percent)), _) => (CardMemory::Percent(percent), percent.into()),
        (None, Some((_, mib))) => (CardMemory::Mib(mib), 0),
        (None, None) => (CardMemory::Percent(100), 0),
    };
    let part = Part {
        key,
        memory,
        power_percent: power.map_or(default_percent, |(_, percent)| percent),
        count,
        container: annotations
            .get(KAI_CONTAINER)
            .map(|name| (KAI_CONTAINER, name)),
    };
    match reader.is_sound {
        true => Asked::Part(part),
        false => Asked::Wrong,
    }
}

type Parse<T> = fn(&str) -> Result<T, String>;

struct Reader<'a, 'b> {
    annotations: &'a Annotations,
    problems: &'b mut Problems,
    is_sound: bool,
}

impl Reader<'_, '_> {
    fn read<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<(&'static str, T)> {
        match parse(self.annotations.get(key)?) {
            Ok(value) => Some((key, value)),
            Err(problem) => {
                self.problem(key, problem);
                None
            }
        }
    }

    /// What one of two annotations says, or both of them alike.
    fn either<T: PartialEq>(
        &mut self,
        [first, second]: [(&'static str, Parse<T>); 2],
    ) -> Option<(&'static str, T)> {
        let (first, second) = (self.read(first.0, first.1), self.read(second.0, second.1));
        if let (Some((key, one)), Some((same, other))) = (&first, &second)
            && one != other
        {
            self.problem(
                key,
                format_args!("says another amount than {same}; write one"),
            );
        }
        first.or(second)
    }

    fn problem(&mut self, key: &str, problem: impl fmt::Display) {
        self.is_sound = false;
        self.problems.push(keys::annotation(key), problem);
    }
}

/// A part of a card in hundredths, exactly: HAMi divides computing power by nothing finer.
fn percent(text: &str) -> Result<u32, String> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let digits = || whole.bytes().chain(rest.bytes());
    if digits().next().is_none() || !digits().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("`{text}` is no part of a card; write it like 0.5"));
    }
    let rest = rest.trim_end_matches('0');
    if whole.trim_start_matches('0') == "1" && rest.is_empty() {
        return Err(format!(
            "`{text}` is a whole card; for whole cards of HAMi write instead \
             `nvidia.com/gpumem-percentage: 100` in the limits"
        ));
    }
    let hundredths = rest.bytes().chain([b'0', b'0']).take(2);
    let percent = hundredths.fold(0, |sum, digit| 10 * sum + u32::from(digit - b'0'));
    let is_one = whole.bytes().any(|byte| byte != b'0');
    match (is_one, rest.len(), percent) {
        (false, 3.., 0) => Err(format!("`{text}` is finer than a hundredth; write 0.01")),
        (false, 3.., 99) => Err(format!("`{text}` is finer than a hundredth; write 0.99")),
        (false, 3.., _) => Err(format!(
            "`{text}` is finer than a hundredth; write 0.{percent:02} or 0.{:02}",
            percent + 1
        )),
        (false, _, 1..) => Ok(percent),
        _ => Err(format!(
            "`{text}` is not between 0 and 1; write it like 0.5"
        )),
    }
}

/// An amount of memory with its unit, in MiB, rounded up.
fn mib(text: &str) -> Result<u64, String> {
    let Ok(amount) = quantity::thousandths(text) else {
        return Err(format!(
            "`{text}` is no amount of memory; write it like 20Gi or 500Mi"
        ));
    };
    match u64::try_from(amount.div_ceil(MIB)) {
        _ if amount < MIB => Err(format!(
            "`{text}` is less than 1Mi; write it like 20Gi or 500Mi"
        )),
        Ok(mib) if mib <= NUMBER_MAX => Ok(mib),
        _ => Err(format!(
            "`{text}` is more than {NUMBER_MAX}Mi, the most that HAMi reads"
        )),
    }
}

/// KAI's amount of memory, a number of MiB.
fn whole_mib(text: &str) -> Result<u64, String> {
    let numbers = 1..=NUMBER_MAX;
    let number = text.parse().ok().filter(|number| numbers.contains(number));
    number.ok_or_else(|| {
        let ours = keys::GPU_MEMORY;
        format!("`{text}` is no whole number of MiB such as 2000; {ours} takes 20Gi, too")
    })
}

fn whole(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    let (first, last) = (range.start(), range.end());
    number.ok_or_else(|| format!("`{text}` is no whole number from {first} to {last}"))
}

/// How a card is to be divided.
fn slice(text: &str) -> Result<CardModes, String> {
    choice::slice(text).ok_or_else(|| format!("`{text}` is none of any, mig and shared"))
}
