//! What a division among subdomains costs: couplings that are cut, halos and balance.

use serde::Serialize;

use crate::base::threads::Threads;
use crate::matrix::Csr;
use crate::matrix::pattern::block_pattern_on;
use crate::symbolic::partition::Divided;
use crate::symbolic::symmetrised;

/// A matrix that is divided among subdomains.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Division {
    /// Unknowns per block.
    pub block_size: usize,
    /// Number of subdomains.
    pub subdomains: usize,
    /// Stored blocks that couple two subdomains.
    pub cut: usize,
    /// These over all stored blocks.
    pub cut_share: f64,
    /// Block rows of others whose values a product needs, summed over the subdomains.
    pub halo: usize,
    /// The same of the subdomain that needs most.
    pub largest_halo: usize,
    /// Subdomains whose values one needs, on average.
    pub mean_neighbours: f64,
    /// The same of the subdomain that has most.
    pub most_neighbours: usize,
    /// Stored entries of the subdomain that has most over the mean.
    pub imbalance: f64,
    /// Block rows of the smallest subdomain.
    pub fewest_rows: usize,
    /// Block rows of the largest.
    pub most_rows: usize,
    /// Block rows that are coupled, in either direction, with another subdomain.
    pub interface_rows: usize,
}

/// Counts what `divided` cuts of a matrix.
pub fn division(a: &Csr, divided: &Divided) -> Division {
    let pattern = block_pattern_on(Threads::Pool, a);
    let graph = symmetrised(Threads::Pool, &pattern);
    let (of, b) = (divided.subdomains(), a.block_size());
    let outside = |row: usize, j: &u32| of[*j as usize] != of[row];
    let count = divided.starts.len() - 1;
    let mut halos = vec![0; count];
    let mut neighbours = vec![0; count];
    let mut entries = vec![0; count];
    let mut cut = 0;
    // of which subdomain a row, and all rows of a subdomain, were last a neighbour
    let (mut row_of, mut subdomain_of) = (vec![u32::MAX; of.len()], vec![u32::MAX; count]);
    for s in 0..count {
        for row in divided.rows(s) {
            for &j in pattern.row(row).iter().filter(|j| outside(row, j)) {
                let mark =
                    |seen: &mut u32| usize::from(std::mem::replace(seen, s as u32) != s as u32);
                cut += 1;
                halos[s] += mark(&mut row_of[j as usize]);
                neighbours[s] += mark(&mut subdomain_of[of[j as usize] as usize]);
            }
            let end = ((row + 1) * b).min(a.rows());
            entries[s] += (a.row_ptr()[end] - a.row_ptr()[row * b]) as usize;
        }
    }
    let rows = || divided.starts.windows(2).map(|w| w[1] - w[0]);
    let most = |of: &[usize]| of.iter().copied().max().unwrap_or(0);
    let mean = |of: &[usize]| of.iter().sum::<usize>() as f64 / count as f64;
    let at_interface = |row: &usize| graph.row(*row).iter().any(|j| outside(*row, j));
    Division {
        block_size: b,
        subdomains: count,
        cut,
        cut_share: cut as f64 / pattern.entries().max(1) as f64,
        halo: halos.iter().sum(),
        largest_halo: most(&halos),
        mean_neighbours: mean(&neighbours),
        most_neighbours: most(&neighbours),
        imbalance: most(&entries) as f64 / mean(&entries).max(f64::MIN_POSITIVE),
        fewest_rows: rows().min().unwrap_or(0),
        most_rows: rows().max().unwrap_or(0),
        interface_rows: (0..graph.rows()).filter(at_interface).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::Partition;
    use crate::problem::samples::problem;
    use crate::symbolic::partition::divide;

    fn of(spec: &str, block_size: usize, how: Partition, count: usize) -> Division {
        let problem = problem(spec);
        let a = problem.matrix.in_blocks(block_size);
        division(&a, &divide(&a, how, problem.grid, count, false).unwrap())
    }

    #[test]
    fn a_small_box_by_hand() {
        // 4 x 4 x 2 in four boxes of 2 x 2 x 2: each has two neighbours, and a face of four couplings with each
        let found = of("poisson3d:4x4x2", 1, Partition::Boxes, 4);
        let expected = Division {
            block_size: 1,
            subdomains: 4,
            cut: 4 * 2 * 4,
            // 32 diagonals, 24 + 24 + 16 couplings in both directions
            cut_share: 32.0 / 160.0,
            halo: 4 * 8,
            largest_halo: 8,
            mean_neighbours: 2.0,
            most_neighbours: 2,
            imbalance: 1.0,
            fewest_rows: 8,
            most_rows: 8,
            // all but the four columns of two points in the corners
            interface_rows: 32 - 8,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn ranges_of_a_line_by_hand() {
        // 13 entries, in ranges of 3 and 2 rows with 8 and 5
        let found = of("poisson3d:5x1x1", 1, Partition::Rows, 2);
        assert_eq!((found.cut, found.cut_share), (2, 2.0 / 13.0));
        assert_eq!((found.halo, found.largest_halo, found.most_neighbours), (2, 1, 1));
        assert_eq!((found.fewest_rows, found.most_rows, found.interface_rows), (2, 3, 2));
        assert_eq!(found.imbalance, 8.0 / 6.5);
    }

    #[test]
    fn blocks_are_counted_and_one_direction_is_a_coupling() {
        // pairs of a line of six: blocks (0, 1), (1, 0), (1, 2), (2, 1)
        let found = of("poisson3d:6x1x1", 2, Partition::Rows, 3);
        assert_eq!((found.block_size, found.cut, found.halo), (2, 4, 4));
        assert_eq!((found.mean_neighbours, found.most_neighbours), (4.0 / 3.0, 2));
        assert_eq!(found.interface_rows, 3);
        // rows 0 and 2 need row 1, which needs none
        let a = Csr::new(3, 3, vec![0, 2, 3, 5], vec![0, 1, 1, 1, 2], vec![1.0; 5]).unwrap();
        let found = division(&a, &divide(&a, Partition::Rows, None, 3, false).unwrap());
        assert_eq!((found.cut, found.halo, found.interface_rows), (2, 2, 3));
        assert_eq!((found.mean_neighbours, found.most_neighbours), (2.0 / 3.0, 1));
    }
}
