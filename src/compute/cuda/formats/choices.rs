//! What of the kernels may be chosen: the macros of `kernels/spmv/multiply.cuh`.

use crate::base::choices::Format;
use crate::compute::cuda::sources::{BDIA, FORMATS, Source, Variant};
use crate::compute::tune::descent::Axis;

/// The choices for a format, the usual values first: those that were fastest most often on an H200.
pub(super) fn axes(format: Format, block_size: usize) -> Vec<Axis> {
    let (rows, unroll, resident): (&[usize], &[usize], &[usize]) = match format {
        Format::Sell => (&[1], &[2, 4, 8, 16], &[512, 1024, 1536, 2048]),
        Format::Bdia => (rows(block_size), unroll(block_size), &[1024, 512, 1536, 2048]),
        _ => (&[1, 2, 4], &[4, 2, 8, 16], &[2048, 1536, 1024, 512]),
    };
    let axis = |name, values: &[usize]| Axis { name, values: values.to_vec() };
    vec![
        axis("THREADS", &[256, 128, 512, 64]),
        axis("ROWS", rows),
        axis("UNROLL", unroll),
        axis("RESIDENT", resident),
        axis("LOADS", &[0, 1, 2]),
    ]
}

/// Rows of a lane in Bdia: of one cell, or of several with one unknown.
fn rows(block_size: usize) -> &'static [usize] {
    match block_size {
        1 => &[1, 2, 4],
        b if b % 4 == 0 => &[2, 1, 4],
        b if b % 2 == 0 => &[2, 1],
        _ => &[1],
    }
}

/// Blocks in flight in Bdia.
fn unroll(block_size: usize) -> &'static [usize] {
    match block_size {
        1 | 2 => &[7, 4, 2, 1],
        3 | 4 => &[2, 7, 4, 1],
        _ => &[1, 2, 4, 7],
    }
}

/// The macro by which a format's kernel is compiled without those of others.
pub(super) fn alone(format: Format) -> Option<&'static str> {
    match format {
        Format::Hyb => Some("HYB_ALONE"),
        Format::Sell => Some("SELL_ALONE"),
        Format::Dia => Some("DIA_ALONE"),
        _ => None,
    }
}

/// The kernels of all formats with the usual choices; that of Bdia for every shape of a cell and all
/// rows of a lane, for which the others have too few registers.
pub fn product_variants(block_size: usize) -> Vec<(&'static Source, Variant)> {
    let mut variants = Vec::new();
    for format in [Format::Hyb, Format::Sell, Format::Dia, Format::Bdia] {
        let axes = axes(format, block_size);
        let rows = if format == Format::Bdia { rows(block_size).len() } else { 1 };
        for row in 0..rows {
            let mut variant = Variant::from(block_size);
            variant.defines.extend(alone(format).map(|name| (name, 1)));
            variant.defines.extend(
                axes.iter().map(|axis| {
                    (axis.name, axis.values[if axis.name == "ROWS" { row } else { 0 }])
                }),
            );
            if format == Format::Bdia {
                let shapes = [(7, 0), (7, 1), (5, 0), (3, 0), (1, 0)];
                let fits = shapes
                    .into_iter()
                    .filter(|(_, half)| *half == 0 || block_size.is_multiple_of(2));
                variants.extend(fits.map(|(offsets, half)| {
                    let mut variant = variant.clone();
                    variant.defines.extend([("OFFSETS", offsets), ("HALF_SHIFT", half)]);
                    (&BDIA, variant)
                }));
            } else if block_size == 1 {
                variants.push((&FORMATS, variant));
            }
        }
    }
    variants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_lane_are_of_one_cell() {
        for b in 1..=32 {
            let rows = axes(Format::Bdia, b).into_iter().find(|axis| axis.name == "ROWS").unwrap();
            assert!(rows.values.iter().all(|r| b == 1 || b % r == 0), "{b}: {rows:?}");
        }
    }

    #[test]
    fn every_shape_and_choice_of_rows_is_listed_once() {
        // hyb, sell and dia; bdia of four shapes with 1, 2 and 4 rows
        assert_eq!(product_variants(1).len(), 3 + 3 * 4);
        assert_eq!((product_variants(2).len(), product_variants(3).len()), (2 * 5, 4));
    }
}
