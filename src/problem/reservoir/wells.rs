//! Where wells are.

use crate::base::error::{Error, Result};
use crate::problem::splitmix::mix;

/// Columns of cells `[h, i]` for `count` wells on `h x i` columns, in a random order of the seed,
/// each at least `spacing` cells from those before.
pub(super) fn random(
    [h, i]: [usize; 2],
    count: usize,
    spacing: f64,
    seed: u64,
) -> Result<Vec<[usize; 2]>> {
    let mut columns: Vec<usize> = (0..h * i).collect();
    columns.sort_unstable_by_key(|&c| mix(mix(seed ^ 0x7765_6c6c) ^ c as u64));
    let mut wells: Vec<[usize; 2]> = Vec::with_capacity(count.min(h * i));
    for column in columns {
        if wells.len() == count {
            break;
        }
        let place = [column % h, column / h];
        if wells.iter().all(|&well| distance(well, place) >= spacing) {
            wells.push(place);
        }
    }
    if wells.len() == count {
        return Ok(wells);
    }
    Err(Error::input(format!(
        "`reservoir`: {} of {count} wells have room on {h} x {i} columns, {spacing} cells apart",
        wells.len()
    ))
    .hint("choose fewer wells, a smaller `spacing` or a larger grid"))
}

/// The columns that `text` lists, counted from 1: `3x7+10x2`.
pub(super) fn listed([h, i]: [usize; 2], text: &str) -> Result<Vec<[usize; 2]>> {
    let mut wells = Vec::new();
    for word in text.split('+') {
        let numbers: Option<Vec<usize>> = word.split('x').map(|t| t.trim().parse().ok()).collect();
        let Some(&[a, b]) = numbers.as_deref() else {
            return Err(Error::input(format!("`reservoir`: `{word}` is not the column of a well"))
                .hint("write `at=HxI` or `at=HxI+HxI`, counted from 1"));
        };
        if !(1..=h).contains(&a) || !(1..=i).contains(&b) {
            return Err(Error::input(format!(
                "`reservoir`: the well `{word}` is outside the grid of {h} x {i} columns"
            )));
        }
        let place = [a - 1, b - 1];
        if wells.contains(&place) {
            return Err(Error::input(format!("`reservoir`: two wells at `{word}`")));
        }
        wells.push(place);
    }
    Ok(wells)
}

fn distance(a: [usize; 2], b: [usize; 2]) -> f64 {
    (a[0].abs_diff(b[0]) as f64).hypot(a[1].abs_diff(b[1]) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_wells_keep_their_distance_and_follow_the_seed() {
        let wells = random([30, 20], 12, 4.0, 5).unwrap();
        assert_eq!(wells.len(), 12);
        for (n, a) in wells.iter().enumerate() {
            assert!(a[0] < 30 && a[1] < 20);
            assert!(wells[..n].iter().all(|&b| distance(*a, b) >= 4.0));
        }
        assert_eq!(wells, random([30, 20], 12, 4.0, 5).unwrap());
        assert_ne!(wells, random([30, 20], 12, 4.0, 6).unwrap());
        // fewer wells are the first ones
        assert_eq!(wells[..5], random([30, 20], 5, 4.0, 5).unwrap());
    }

    #[test]
    fn wells_without_room_are_refused() {
        let error = random([3, 3], 5, 2.0, 1).unwrap_err().to_string();
        let start = "`reservoir`: ";
        assert!(error.starts_with(start), "{error}");
        assert!(error.ends_with("of 5 wells have room on 3 x 3 columns, 2 cells apart"), "{error}");
        let message = |text| listed([4, 5], text).unwrap_err().to_string();
        assert_eq!(
            message("5x1"),
            "`reservoir`: the well `5x1` is outside the grid of 4 x 5 columns"
        );
        assert_eq!(
            message("1x0"),
            "`reservoir`: the well `1x0` is outside the grid of 4 x 5 columns"
        );
        assert_eq!(message("2x3+2x3"), "`reservoir`: two wells at `2x3`");
        assert_eq!(message("2"), "`reservoir`: `2` is not the column of a well");
        assert_eq!(listed([4, 5], "4x5+1x1").unwrap(), [[3, 4], [0, 0]]);
    }
}
