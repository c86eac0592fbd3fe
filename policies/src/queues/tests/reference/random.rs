//! Random worlds of queues.

use super::world::{Entry, World};
use fastrand::Rng;
use std::vec::Vec;

/// How large random worlds are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) queues: usize,
    pub(super) depth: usize,
    pub(super) keys: usize,
}

/// How large the amounts of a world are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Every leaf wants much of most keys, and there is no more than that.
    Contested,
    /// Wanted amounts and capacities are 0, small, or of about 40 bits.
    Wild,
    /// Every leaf wants much, and queues are promised much more than there is.
    Promised,
}

fn amount(random: &mut Rng, style: Style) -> u64 {
    match (style, random.u32(0..10)) {
        (Style::Contested | Style::Promised, _) => random.u64(1..1000),
        (Style::Wild, 0) => 0,
        (Style::Wild, 1) => random.u64(0..1 << 40),
        (Style::Wild, _) => random.u64(0..200),
    }
}

fn weight(random: &mut Rng) -> u16 {
    match random.u32(0..8) {
        0 => 0,
        1 => u16::MAX,
        2 => random.u16(..),
        _ => random.u16(1..6),
    }
}

fn entries(random: &mut Rng, keys: usize, style: Style) -> Vec<Entry> {
    let mut entries = Vec::new();
    for key in 0..keys {
        if random.bool() {
            continue;
        }
        let quota = match style {
            Style::Promised => amount(random, style),
            _ if random.u32(0..3) == 0 => amount(random, style) / 4,
            _ => 0,
        };
        let limited = random.u32(0..6) == 0;
        entries.push(Entry {
            key,
            quota,
            limit: limited.then(|| quota + amount(random, style)),
            weight: weight(random),
        });
    }
    entries
}

/// What a leaf wants: a part for any GPU, and one for each model alone.
fn wants(random: &mut Rng, world: &World, style: Style) -> Vec<Vec<u64>> {
    let is_model = |key: &usize| world.plain[*key].is_some();
    let models = (0..world.keys()).filter(is_model).map(Some);
    let mut parts = Vec::new();
    for model in core::iter::once(None).chain(models) {
        if random.u32(0..4) == 0 {
            continue;
        }
        let mut part = std::vec![0; world.keys()];
        for key in (0..world.keys()).filter(|key| !is_model(key)) {
            if random.u32(0..3) > 0 {
                part[key] = amount(random, style);
            }
        }
        if let Some(model) = model {
            let gpus = amount(random, style).max(1);
            part[model] = gpus;
            part[world.plain[model].expect("a model")] = gpus;
        }
        if part.iter().any(|wanted| *wanted > 0) {
            parts.push(part);
        }
    }
    parts
}

/// What there is of a key of which `wanted` is wanted.
fn capacity(random: &mut Rng, wanted: u64, style: Style) -> u64 {
    match (style, random.u32(0..8)) {
        (Style::Contested, _) => random.u64(0..=wanted),
        (Style::Promised, _) => random.u64(0..=wanted / 3),
        (Style::Wild, 0) => 0,
        (Style::Wild, 1) => random.u64(0..1 << 42),
        (Style::Wild, _) => random.u64(1..2000),
    }
}

/// Draws what every queue has used: nothing, a few units, thousandths of a unit, or 50 bits.
pub(super) fn random_use(random: &mut Rng, world: &mut World) {
    world.half_life = Some(random.u64(1..=365 * 24 * 60));
    for q in world.indices().skip(1) {
        let used = |_| match random.u32(0..12) {
            0..=2 => 0,
            3..=8 => random.u64(1..7) * 1_000,
            9..=10 => random.u64(1..20_000),
            _ => random.u64(0..1 << 50),
        };
        world.queues[q].used = (0..world.keys()).map(used).collect();
    }
}

pub(super) fn random_world(random: &mut Rng, size: Size, style: Style) -> World {
    let mut world = World::new(&[0; 6][..size.keys]);
    for _ in 0..size.queues {
        let parent = random.usize(0..world.queues.len());
        let too_deep = (world.level(parent) + 1).saturating_sub(size.depth);
        let parent = world.path(parent).nth(too_deep).expect("on the path");
        let entries = entries(random, size.keys, style);
        let q = world.add(parent, entries, &[]);
        world.queues[q].priority = random.i32(0..3) / 2;
    }
    for q in world.indices().skip(1) {
        world.queues[q].wants = wants(random, &world, style);
    }
    let wanted = world.wants_of(0);
    for (key, wanted) in wanted.into_iter().enumerate() {
        world.capacity[key] = capacity(random, wanted, style);
    }
    world
}
