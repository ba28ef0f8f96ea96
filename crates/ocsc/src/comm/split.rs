//! Who takes which samples.

use crate::{Real, Samples};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Returns what sample `index` weighs when work is divided: its numbers, as far as they are known.
pub(crate) fn size<T: Real>(samples: &dyn Samples<T>, index: usize) -> usize {
    samples.spatial(index).map_or(1, |size| size.iter().product())
}

/// Makes parts of almost equal weight, one for each member: each item, the heaviest first, goes to the member with the least so
/// far. Every part is in ascending order; they depend on nothing but the weights.
///
/// No part weighs more than an even share and the heaviest item together.
pub fn split(weights: &[usize], members: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|i| Reverse(weights[*i]));
    let mut parts = vec![Vec::new(); members];
    // Weight, number of items, member: items without weight are spread evenly too.
    let mut loads: BinaryHeap<_> = (0..members).map(|member| Reverse((0_usize, 0_usize, member))).collect();
    for item in order {
        let Some(Reverse((weight, count, member))) = loads.pop() else { break };
        parts[member].push(item);
        loads.push(Reverse((weight.saturating_add(weights[item]), count + 1, member)));
    }
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_goes_to_one_member_and_the_weights_are_even() {
        for (n, members) in [(0, 3), (1, 4), (7, 1), (64, 3), (1000, 7)] {
            let weights: Vec<usize> = (0..n).map(|i| 100 + (i * i * 37) % 1009).collect();
            let parts = split(&weights, members);
            assert_eq!(parts.len(), members);
            let mut all = parts.concat();
            assert!(parts.iter().all(|part| part.is_sorted()));
            all.sort_unstable();
            assert_eq!(all, (0..n).collect::<Vec<_>>());
            let load = |part: &Vec<usize>| part.iter().map(|i| weights[*i]).sum::<usize>();
            let (total, largest) = (weights.iter().sum::<usize>(), weights.iter().max().copied().unwrap_or(0));
            for part in &parts {
                assert!(load(part) * members <= total + largest * members, "{n} over {members}");
            }
        }
    }

    #[test]
    fn one_large_sample_weighs_as_much_as_many_small_ones() {
        assert_eq!(split(&[1, 1, 10, 1, 1, 1], 2), [vec![2], vec![0, 1, 3, 4, 5]]);
        assert_eq!(split(&[0; 4], 2), [vec![0, 2], vec![1, 3]]);
    }
}
