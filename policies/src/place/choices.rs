//! Which members to take where not all are needed.

use alloc::{vec, vec::Vec};

/// How many choices are looked at. Members of six shapes, three of them needed, have 20.
pub(crate) const CHOICES_MAX: usize = 256;

/// All ways to take `need` out of groups of these sizes, up to [`CHOICES_MAX`], and whether these
/// are all; ways that take more of the earlier groups come first.
pub(crate) fn selections(sizes: &[usize], need: usize) -> (Vec<Vec<usize>>, bool) {
    let mut found = Vec::new();
    let mut taken = vec![0; sizes.len()];
    let complete = take(sizes, need, 0, &mut taken, &mut found);
    (found, complete)
}

/// Whether nothing was left out.
fn take(
    sizes: &[usize],
    need: usize,
    from: usize,
    taken: &mut Vec<usize>,
    found: &mut Vec<Vec<usize>>,
) -> bool {
    let left: usize = sizes[from..].iter().sum();
    if need > left {
        return true;
    }
    if found.len() >= CHOICES_MAX {
        return false;
    }
    if need == 0 {
        found.push(taken.clone());
        return true;
    }
    let mut complete = true;
    for count in (0..=sizes[from].min(need)).rev() {
        taken[from] = count;
        complete &= take(sizes, need - count, from + 1, taken, found);
    }
    taken[from] = 0;
    complete
}

#[cfg(test)]
mod tests {
    use super::{CHOICES_MAX, selections};
    use alloc::vec::Vec;

    #[test]
    fn every_choice_is_tried_once_and_those_of_the_first_groups_first() {
        let (all, complete) = selections(&[2, 1, 1], 2);
        assert!(complete);
        assert_eq!(
            all,
            [[2, 0, 0], [1, 1, 0], [1, 0, 1], [0, 1, 1]].map(Vec::from)
        );
        assert_eq!(selections(&[1; 6], 3).0.len(), 20);
    }

    #[test]
    fn what_cannot_be_taken_has_no_choice_and_many_choices_are_cut_off() {
        assert_eq!(selections(&[1, 1], 3), (Vec::new(), true));
        let (many, complete) = selections(&[9; 9], 40);
        assert_eq!((many.len(), complete), (CHOICES_MAX, false));
    }
}
