//! Past use: how it is counted, told, kept over a restart, and how it adjusts weights.

use super::*;
use crate::facts::PastUse;
use crate::queues::past::GRID_MS;
use fastrand::Rng;

const HALF_LIFE_MS: u64 = 60 * GRID_MS;

fn remembering(queues: Vec<QueueFacts>) -> QueueTree {
    let mut tree = QueueTree::new();
    tree.set_half_life(Some(HALF_LIFE_MS));
    tree.replace(queues);
    tree.refresh(5);
    tree.capacities(&[(GPU, 12 * CARD)]);
    tree.count_use(0);
    tree
}

impl QueueTree {
    fn pass_steps(&mut self, steps: u64) {
        let next = self.next_use_ms().expect("the past counts") / GRID_MS;
        self.count_use((next - 1 + steps) * GRID_MS);
    }

    /// The fair share of a queue, in whole cards.
    fn cards(&mut self, name: &str) -> Amount {
        self.fair(name, GPU) / CARD
    }

    fn average(&self, name: &str) -> u64 {
        let past = self.status(self.at(name)).past_use;
        past.map_or(0, |past| past.averages[0].1)
    }
}

/// Serves units of one GPU; returns how many units each leaf got.
fn serve(tree: &mut QueueTree, leaves: &[&str], units: u32) -> Vec<u32> {
    let unit = tree.demand(&[(GPU, CARD)]);
    for leaf in leaves {
        tree.set_candidate(LineUp::FIRST, tree.at(leaf), Some(unit.clone()));
    }
    let mut served = std::vec![0; leaves.len()];
    for _ in 0..units {
        let next = tree.next();
        tree.charge(tree.at(&next), &unit, true);
        served[leaves.iter().position(|leaf| *leaf == next).unwrap()] += 1;
    }
    served
}

#[test]
fn averages_rise_to_what_is_held_and_halve_with_each_half_life() {
    let mut tree = remembering(vec![gpus("p", "", 0), gpus("a", "p", 0)]);
    assert_eq!(tree.average("a"), 0);
    tree.hold("a", &[(GPU, 8 * CARD)]);
    tree.pass_steps(60);
    assert_eq!((tree.average("a"), tree.average("p")), (4_000, 4_000));
    for _ in 0..60 {
        tree.pass_steps(1);
    }
    assert_eq!(tree.average("a"), 6_000);
    tree.release(tree.at("a"), &tree.demand(&[(GPU, 8 * CARD)]), true);
    tree.pass_steps(120);
    assert_eq!(tree.average("a"), 1_500);
    tree.count_use(0);
    assert_eq!(tree.average("a"), 1_500, "time that goes back stands still");
    tree.pass_steps(10_000);
    assert_eq!(tree.average("a"), 0);
}

#[test]
fn who_has_used_more_than_its_part_is_given_less_for_a_while() {
    let mut tree = remembering(vec![gpus("a", "", 0), gpus("b", "", 0)]);
    tree.hold("a", &[(GPU, 3 * CARD)]);
    tree.hold("b", &[(GPU, CARD)]);
    tree.pass_steps(60);
    for (name, held) in [("a", 3), ("b", 1)] {
        tree.release(tree.at(name), &tree.demand(&[(GPU, held * CARD)]), true);
    }
    // The weights count as 2/3 and 2.
    assert_eq!(serve(&mut tree, &["a", "b"], 12), [3, 9]);
    tree.want("a", &[(GPU, 12 * CARD)]);
    tree.want("b", &[(GPU, 12 * CARD)]);
    assert_eq!((tree.cards("a"), tree.cards("b")), (3, 9));
}

#[test]
fn whole_gpus_come_out_whole_whatever_past_use_has_made_of_the_weights() {
    // The queue `default` is a sibling that has used nothing.
    let cases = [
        (12, 4),
        (4, 4),
        (8, 4),
        (15, 5),
        (1, 3),
        (10, 5),
        (9, 1),
        (5, 7),
    ];
    for (a, b) in cases {
        let mut tree = remembering(vec![gpus("a", "", 0), gpus("b", "", 0)]);
        tree.capacities(&[(GPU, (a + b) * CARD)]);
        tree.hold("a", &[(GPU, a * CARD)]);
        tree.hold("b", &[(GPU, b * CARD)]);
        tree.pass_steps(37);
        for name in ["a", "b"] {
            tree.want(name, &[(GPU, 1_000 * CARD)]);
        }
        // Each queue gets the part of all that the other has used.
        let fair = (tree.cards("a"), tree.cards("b"));
        assert_eq!(fair, (b, a), "{a} and {b} were used");
    }
}

#[test]
fn the_past_is_not_remembered_unless_it_is_set() {
    let mut tree = tree(vec![gpus("a", "", 0)]);
    tree.hold("a", &[(GPU, 3 * CARD)]);
    tree.count_use(600 * GRID_MS);
    assert_eq!(tree.status(tree.at("a")).past_use, None);
    assert_eq!(tree.next_use_ms(), None);
}

#[test]
fn a_half_life_can_be_changed_begun_and_ended() {
    let queues = vec![gpus("a", "", 0), gpus("b", "", 0)];
    let mut tree = remembering(queues.clone());
    tree.hold("a", &[(GPU, 8 * CARD)]);
    tree.pass_steps(60);
    tree.set_half_life(Some(30 * GRID_MS));
    assert_eq!(tree.average("a"), 4_000, "what is known stays");
    tree.pass_steps(30);
    assert_eq!(tree.average("a"), 6_000);
    let kept = written(&tree, &queues);
    tree.release(tree.at("a"), &tree.demand(&[(GPU, 8 * CARD)]), true);
    tree.want("a", &[(GPU, 12 * CARD)]);
    tree.want("b", &[(GPU, 12 * CARD)]);
    let adjusted = tree.cards("a");
    assert!(adjusted < 6, "{adjusted}");
    tree.set_half_life(None);
    assert_eq!((tree.cards("a"), tree.cards("b")), (6, 6));
    assert_eq!(tree.status(tree.at("a")).past_use, None);
    tree.replace(kept);
    tree.refresh(9);
    tree.set_half_life(Some(HALF_LIFE_MS));
    tree.count_use(90 * GRID_MS);
    assert_eq!(tree.average("a"), 6_000, "what was written is read");
    assert_eq!(tree.cards("a"), adjusted);
}

#[test]
fn a_queue_that_is_created_again_begins_anew() {
    let mut tree = remembering(vec![gpus("a", "", 0), gpus("b", "", 0)]);
    tree.hold("a", &[(GPU, 8 * CARD)]);
    tree.pass_steps(60);
    tree.release(tree.at("a"), &tree.demand(&[(GPU, 8 * CARD)]), true);
    tree.delete("a");
    tree.refresh(6);
    tree.apply(gpus("a", "", 0));
    tree.refresh(7);
    assert_eq!(tree.average("a"), 0);
}

#[test]
fn quotas_of_weightless_queues_and_huge_weights_stay_in_order() {
    let of_weight = |name, weight| with(queue(name, ""), &[entry(GPU, 0, None, weight)]);
    let mut tree = remembering(vec![
        of_weight("none", 0),
        of_weight("one", 1),
        of_weight("huge", u16::MAX),
    ]);
    tree.hold("huge", &[(GPU, 12 * CARD)]);
    tree.pass_steps(600);
    tree.release(tree.at("huge"), &tree.demand(&[(GPU, 12 * CARD)]), true);
    assert_eq!(serve(&mut tree, &["none", "one", "huge"], 12), [0, 1, 11]);
}

/// The queues as the API server has them after statuses were last written.
fn written(tree: &QueueTree, queues: &[QueueFacts]) -> Vec<QueueFacts> {
    let written = queues.iter().map(|facts| {
        let past: Option<PastUse> = tree.status(tree.at(&facts.name)).past_use;
        QueueFacts {
            past_use: past,
            ..facts.clone()
        }
    });
    written.collect()
}

#[test]
fn who_begins_between_the_last_status_and_a_restart_is_counted_like_the_others() {
    let queues = vec![gpus("a", "", 0), gpus("b", "", 0), gpus("c", "", 0)];
    let mut tree = remembering(queues.clone());
    tree.hold("a", &[(GPU, 8 * CARD)]);
    tree.pass_steps(60);
    let mut facts = written(&tree, &queues);
    assert_eq!(facts[1].past_use, None);
    facts[2].created_ms = 90 * GRID_MS;
    let mut restarted = QueueTree::new();
    restarted.set_half_life(Some(HALF_LIFE_MS));
    restarted.replace(facts);
    restarted.refresh(5);
    for name in ["a", "b", "c"] {
        restarted.hold(name, &[(GPU, 8 * CARD)]);
    }
    restarted.count_use(120 * GRID_MS);
    let told = ["a", "b", "c"].map(|name| restarted.average(name));
    // `a`: half of what was known, and an hour of what is held. `b`: that hour alone. `c`: half an
    // hour, as it is younger.
    assert_eq!(told, [6_000, 4_000, 2_343]);
}

#[test]
fn after_a_restart_queues_are_served_in_the_same_order() {
    for seed in 0..100 {
        let mut random = Rng::with_seed(seed);
        let weight = |random: &mut Rng| entry(GPU, 0, None, random.u16(1..5));
        let queues: Vec<QueueFacts> = (0..6)
            .map(|at| with(queue(&format!("q{at}"), ""), &[weight(&mut random)]))
            .collect();
        let names = ["q0", "q1", "q2", "q3", "q4", "q5"];
        let mut tree = remembering(queues.clone());
        let mut held = [0u64; 6];
        for _ in 0..random.u32(1..200) {
            let at = random.usize(0..6);
            tree.release(
                tree.at(names[at]),
                &tree.demand(&[(GPU, held[at] * CARD)]),
                true,
            );
            held[at] = random.u64(0..9);
            tree.hold(names[at], &[(GPU, held[at] * CARD)]);
            tree.pass_steps(random.u64(1..4));
        }
        // The last statuses may have been written a step earlier.
        let late = random.bool();
        let mut facts = written(&tree, &queues);
        if late {
            tree.pass_steps(1);
        }
        let now_ms = tree.next_use_ms().unwrap() - 1;
        let mut restarted = QueueTree::new();
        restarted.set_half_life(Some(HALF_LIFE_MS));
        random.shuffle(&mut facts);
        restarted.replace(facts);
        restarted.refresh(5);
        restarted.capacities(&[(GPU, 12 * CARD)]);
        for (name, held) in names.iter().zip(held) {
            restarted.hold(name, &[(GPU, held * CARD)]);
        }
        restarted.count_use(now_ms);
        for step in 0..5 {
            for name in names {
                let (one, other) = (tree.average(name), restarted.average(name));
                assert!(one.abs_diff(other) <= 2, "seed {seed}, step {step}: {name}");
            }
            let one = serve(&mut tree, &names, 12);
            let other = serve(&mut restarted, &names, 12);
            assert_eq!(one, other, "seed {seed}, step {step}");
            for (name, units) in names.iter().zip(one) {
                for tree in [&mut tree, &mut restarted] {
                    let units = tree.demand(&[(GPU, u64::from(units) * CARD)]);
                    tree.release(tree.at(name), &units, true);
                    tree.pass_steps(0);
                }
            }
            tree.pass_steps(1);
            restarted.pass_steps(1);
        }
    }
}
