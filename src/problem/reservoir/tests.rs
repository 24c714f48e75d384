use super::*;
use crate::base::choices::ReadAs;
use crate::matrix::bsr::pad;
use crate::matrix::{Bdia, Csr};
use crate::problem::load;
use crate::problem::samples;

fn generated(spec: &str) -> (Csr, Vec<f64>) {
    let made = samples::generated(&GENERATOR, spec).unwrap();
    (made.matrix, made.rhs.unwrap())
}

fn error(spec: &str) -> String {
    samples::refused(&GENERATOR, spec)
}

const PLAIN: Arrangement = Arrangement { half_bias: false, without_wells: false };

/// Every entry of the matrix beside the central difference of the residuals.
fn differences<const N: usize>(k: usize) {
    let rock = Rock::new([3, 3, 2], "lognormal", 1.0, 5, 0..18).unwrap();
    let new = || {
        let flow = Flow::<N> { k, rock: &rock, days: 2.0 };
        System::new(flow, &[[0, 1], [2, 0]], 5, 0..18)
    };
    let (a, _) = assemble(&new(), PLAIN, Piece::WHOLE).unwrap();
    let (cells, n) = (18, 18 * k + 2);
    assert_eq!(a.rows(), n);
    // scale of each row
    let scale: Vec<f64> =
        (0..n).map(|i| a.row(i).1.iter().fold(0.0, |m: f64, v| m.max(v.abs()))).collect();
    for column in 0..n {
        let size = if column >= cells * k || column % k == 0 { 1e-3 } else { 1e-6 };
        let rhs = |step: f64| {
            let mut system = new();
            match column.checked_sub(cells * k) {
                Some(w) => system.wells[w].pressure += step,
                None => system.now[column / k][column % k] += step,
            }
            assemble(&system, PLAIN, Piece::WHOLE).unwrap().1
        };
        let (above, below) = (rhs(size), rhs(-size));
        for i in 0..n {
            let want = (below[i] - above[i]) / (2.0 * size);
            let got = a.get(i, column).unwrap_or(0.0);
            let close = (got - want).abs() <= 2e-6 * scale[i];
            assert!(close, "k {k}, row {i}, column {column}: {got} beside {want}");
        }
    }
}

#[test]
fn the_matrix_is_the_derivative_of_the_residuals() {
    differences::<2>(1);
    differences::<4>(2);
    differences::<6>(3);
    differences::<8>(4);
    differences::<16>(8);
}

#[test]
fn what_leaves_a_cell_enters_its_neighbour() {
    let rock = Rock::new([4, 3, 5], "layered", 1.0, 3, 0..60).unwrap();
    let flow = Flow::<6> { k: 3, rock: &rock, days: 0.5 };
    let system = System::new(flow, &[], 3, 0..60);
    let (a, rhs) = assemble(&system, PLAIN, Piece::WHOLE).unwrap();
    // summed over all cells, only the mass within a cell is left in each column
    for cell in 0..60 {
        let mass = system.flow.mass(cell, &system.now[cell]);
        for (e, u) in (0..3).flat_map(|e| (0..3).map(move |u| (e, u))) {
            let column = (0..60).filter_map(|m| a.get(3 * m + e, 3 * cell + u));
            let (mut sum, mut size) = (0.0, 0.0);
            column.for_each(|v| (sum, size) = (sum + v, size + v.abs()));
            let want = mass[e].by[u];
            assert!((sum - want).abs() <= 1e-13 * size, "{cell} {e} {u}: {sum} beside {want}");
        }
    }
    // and on the right the mass that has come since the beginning of the step
    let gained: f64 = rhs.iter().step_by(3).sum();
    let oil = |states: &dyn Fn(usize) -> f64| (0..60).map(states).sum::<f64>();
    let now = oil(&|c| system.flow.mass(c, &system.now[c])[0].value);
    let direct: f64 = (0..60).map(|c| system.cell(c).rhs[0]).sum();
    assert!((gained - direct).abs() < 1e-9 * now, "{gained} beside {direct}");
    assert!(gained != 0.0 && gained.abs() < 0.2 * now, "{gained} of {now}");
}

#[test]
fn what_leaves_a_well_enters_its_cells() {
    for k in [1, 2, 4] {
        let (a, _) = generated(&format!("4x6x5,k={k},wells=4,spacing=2,seed=9"));
        let scalars = 120 * k;
        assert_eq!(a.rows(), scalars + 4);
        for w in 0..4 {
            let diagonal = a.get(scalars + w, scalars + w).unwrap();
            // all oil and water; the components are parts of the oil
            let phases = k.min(2);
            let column: f64 = (0..120)
                .flat_map(|cell| (0..phases).map(move |e| cell * k + e))
                .filter_map(|i| a.get(i, scalars + w))
                .sum();
            assert!(diagonal > 0.0 && (column + diagonal).abs() < 1e-12 * diagonal);
            // four cells with k entries each, and the diagonal
            assert_eq!(a.row(scalars + w).0.len(), 4 * k + 1);
        }
    }
}

#[test]
fn the_papers_small_example_has_its_order_and_entries() {
    // figure 5: 2 x 3 x 3 cells, two wells, k = 2
    let (a, rhs) = generated("2x3x3,k=2,wells=2");
    assert_eq!((a.rows(), rhs.len()), (38, 38));
    let (j, h, i, k, w) = (2, 3, 3, 2, 2);
    let blocks = 7 * j * h * i - 2 * h * j - 2 * i * j - 2 * i * h;
    assert_eq!(a.nnz(), blocks * k * k + w * (2 * j * k + 1));
    for (spec, j, h, i, k) in [("7x5x4,k=3,wells=0", 7, 5, 4, 3), ("5x1x6,k=8,wells=0", 5, 1, 6, 8)]
    {
        let blocks = 7 * j * h * i - 2 * h * j - 2 * i * j - 2 * i * h;
        assert_eq!(generated(spec).0.nnz(), blocks * k * k, "{spec}");
    }
}

/// Figure 8: cells, rows, stored numbers and nonzeros of the paper's grids.
#[test]
fn the_papers_grids_have_their_counts() {
    let text = include_str!("../../../configs/almouhamed/published/grids-derived.csv");
    let mut generated = 0;
    for line in text.lines().skip(1) {
        let numbers: Vec<&str> = line.split(',').collect();
        let whole = |i: usize| numbers[i].parse::<usize>().unwrap();
        let (v, k) = (whole(0), whole(1));
        assert_eq!((whole(2), whole(3)), (v * v * v, v * v * v * k), "{line}");
        assert_eq!((whole(5), whole(6)), (7 * v * v * v * k * k, (7 * v - 6) * v * v * k * k));
        if v == 20 {
            let (a, _) = self::generated(&format!("{v},k={k},wells=50"));
            // each well has two runs of V cells and a diagonal
            let wells = 50 * (2 * v * k + 1);
            assert_eq!((a.rows(), a.nnz()), (whole(3) + 50, whole(6) + wells), "{line}");
            let bdia = Bdia::from_csr(&pad(&a, k)).unwrap();
            assert_eq!(bdia.values().len(), whole(5), "{line}");
            generated += 1;
        }
    }
    assert_eq!(generated, 3);
}

#[test]
fn bdia_finds_the_box_the_wells_and_the_shift() {
    for (spec, k, half, stored) in [
        ("6x5x4,k=2,wells=3", 2, false, 120 * 7 * 4 + 3 * (2 * 12 + 1)),
        ("6x5x4,k=4,wells=3,bias=half", 4, true, 120 * 7 * 16 + 3 * (2 * 24 + 1)),
        ("6x5x4,k=1,wells=4", 1, false, 120 * 7 + 4 * (2 * 6 + 1)),
    ] {
        let (a, _) = generated(spec);
        let b = Bdia::from_csr(&pad(&a, k)).unwrap();
        assert_eq!((b.hepta().cells, b.hepta().half_shift), (120, half), "{spec}");
        // a row of padding is a well without cells
        let padding = b.wells().count() - 3 - usize::from(k == 1);
        assert_eq!(crate::matrix::Storage::stored(&b), stored + padding, "{spec}");
    }
    let (a, _) = generated("6x5x4,k=2,wells=2,rows=eliminated");
    let refused = Bdia::from_csr(&a.in_blocks(2)).err().unwrap().to_string();
    assert!(refused.contains("couples to the block at offset +2, not one of 0, +-1, +-6, +-30"));
}

#[test]
fn half_bias_moves_the_rows_of_every_other_cell() {
    let (a, rhs) = generated("3x4x3,k=4,wells=2");
    let (b, same) = generated("3x4x3,k=4,wells=2,bias=half");
    assert_eq!(rhs, same);
    let scalars = 36 * 4;
    for i in 0..a.rows() {
        let shift = if i < scalars && i / 4 % 2 == 1 { 2 } else { 0 };
        let moved = |(j, v): (&u32, &f64)| {
            let j = *j as usize;
            let to = if j < scalars { j + shift } else { j };
            (j >= scalars || to < scalars).then_some((to, *v))
        };
        let (cols, values) = a.row(i);
        let want: Vec<(usize, f64)> = cols.iter().zip(values).filter_map(moved).collect();
        let (cols, values) = b.row(i);
        let got: Vec<(usize, f64)> =
            cols.iter().map(|&j| j as usize).zip(values.iter().copied()).collect();
        assert_eq!(got, want, "row {i}");
    }
}

#[test]
fn without_wells_the_cells_have_the_same_solution() {
    let (a, b) = generated("4x3x3,k=2,wells=2,seed=4");
    let (c, d) = generated("4x3x3,k=2,wells=2,seed=4,rows=eliminated");
    assert_eq!((a.rows(), c.rows()), (74, 72));
    let (x, y) = (solved(&a, b), solved(&c, d));
    let largest = y.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    assert!(largest > 0.1);
    for (x, y) in x.iter().zip(&y) {
        assert!((x - y).abs() < 1e-9 * largest, "{x} beside {y}");
    }
}

/// Gauss elimination with row pivoting.
fn solved(a: &Csr, mut b: Vec<f64>) -> Vec<f64> {
    let n = a.rows();
    let mut m: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| a.get(i, j).unwrap_or(0.0)).collect()).collect();
    for p in 0..n {
        let best = (p..n).max_by(|&i, &j| m[i][p].abs().total_cmp(&m[j][p].abs())).unwrap();
        m.swap(p, best);
        b.swap(p, best);
        for i in p + 1..n {
            let f = m[i][p] / m[p][p];
            for j in p..n {
                m[i][j] -= f * m[p][j];
            }
            b[i] -= f * b[p];
        }
    }
    for p in (0..n).rev() {
        let known: f64 = (p + 1..n).map(|j| m[p][j] * b[j]).sum();
        b[p] = (b[p] - known) / m[p][p];
    }
    b
}

/// A step is the one before with its solution added, saturations within their range.
#[test]
fn a_time_step_goes_on_from_the_solution_of_the_last() {
    let rock = Rock::new([3, 3, 2], "lognormal", 1.0, 5, 0..18).unwrap();
    let flow = Flow::<4> { k: 2, rock: &rock, days: 90.0 };
    let mut system = System::new(flow, &[[0, 1], [2, 0]], 5, 0..18);
    let spec = |step: usize| format!("3x3x2,k=2,at=1x2+3x1,seed=5,days=90,step={step}");
    let pattern = |a: &Csr| (a.row_ptr().to_vec(), a.col_ind().to_vec());
    let (first, _) = generated(&spec(1));
    let mut limited = false;
    for step in 1..=6 {
        let (a, b) = assemble(&system, PLAIN, Piece::WHOLE).unwrap();
        let (c, d) = generated(&spec(step));
        assert_eq!(pattern(&first), pattern(&c), "step {step}");
        assert!(step == 1 || c.values() != first.values());
        let close = |x: &[f64], y: &[f64]| {
            let size = y.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
            x.iter().zip(y).all(|(x, y)| (x - y).abs() <= 1e-6 * size)
        };
        assert!(close(c.values(), a.values()) && close(&d, &b), "step {step}");
        let x = solved(&a, b);
        for (cell, state) in system.now.iter_mut().enumerate() {
            state[0] += x[2 * cell];
            let moved = state[1] + x[2 * cell + 1];
            state[1] = moved.clamp(0.2, 0.8);
            limited |= moved != state[1];
        }
        system.wells.iter_mut().zip(&x[36..]).for_each(|(well, d)| well.pressure += d);
        system.before = system.now.clone();
    }
    // the water has come that far
    assert!(limited);
}

#[test]
fn time_steps_do_not_depend_on_what_was_made_before() {
    let of = |step: usize, seed: usize| generated(&format!("4x3x3,k=3,seed={seed},step={step}"));
    let (two, four) = (of(2, 1), of(4, 1));
    // in another order, with another reservoir between
    assert_eq!(of(4, 1), four);
    assert_ne!(of(4, 2).0.values(), four.0.values());
    assert_eq!(of(2, 1), two);
    assert_eq!(of(4, 1), four);
    assert_eq!(of(1, 1), generated("4x3x3,k=3"));
    // from the second step on there is no mass to come: what flows in flows out
    let (a, b) = generated("4x3x3,k=1,wells=0,step=2");
    let (sum, size) = b.iter().fold((0.0, 0.0), |(s, m): (f64, f64), v| (s + v, m + v.abs()));
    assert!(a.rows() == 36 && size > 0.0 && sum.abs() < 1e-12 * size, "{sum} of {size}");
}

#[test]
fn seeds_and_fields_decide_the_values() {
    assert_eq!(generated("4,k=2"), generated("4x4x4,k=2,seed=1,field=lognormal"));
    assert_ne!(generated("4,k=2").0, generated("4,k=2,seed=2").0);
    assert_ne!(generated("4,k=2").0, generated("4,k=2,field=layered").0);
    let rock = Rock::new([5, 4, 3], "layered", 1.5, 7, 0..60).unwrap();
    for cell in 0..60 {
        assert_eq!(rock.permeability(cell), rock.permeability(cell % 5));
    }
    assert_ne!(rock.permeability(0), rock.permeability(1));
    // between equal cells of 100 mD: 20 m of 4 x 20 m; in depth a tenth, 4 m of 20 x 20 m
    let even = Rock::new([2, 2, 1], "uniform", 1.0, 1, 0..4).unwrap();
    assert_eq!(even.face(1, [0, 2]), 100.0 * 80.0 / 20.0);
    assert!((even.face(0, [0, 1]) - 10.0 * 400.0 / 4.0).abs() < 1e-9);
    assert_eq!(even.pore_volume(0), 1600.0 * 0.2);
}

#[test]
fn permeability_comes_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("field.csv");
    let spec = |size: &str| format!("{size},wells=0,field={}", path.display());
    // 2 x 3 cells along two layers, depth last
    let text = "# a comment\nactnum,permx,poro\n1,10,0.1\n1,20,0.2\n1,30,0.3\n1,40,0.1\n1,50,0.1\n\
                1,60,0.1\n1,11,0.1\n0,21,0.1\n1,31,0.1\n1,41,0.1\n1,51,0.1\n1,61,0.1\n";
    std::fs::write(&path, text).unwrap();
    let rock = Rock::new([2, 2, 3], path.to_str().unwrap(), 1.0, 1, 0..12).unwrap();
    let permeability: Vec<f64> = (0..12).map(|c| rock.permeability(c)).collect();
    assert_eq!(permeability, [10., 11., 20., 0., 30., 31., 40., 41., 50., 51., 60., 61.]);
    assert_eq!(rock.pore_volume(4), 1600.0 * 0.3);
    assert_eq!(generated(&spec("2x2x3")).0.rows(), 24);
    let name = path.display();
    assert_eq!(
        error(&spec("3x2x3")),
        format!("{name}: 12 cells in the file, 3x2x3 = 18 in the grid")
    );
    assert_eq!(
        error(&spec("1x2x3")),
        format!("{name}: 12 cells in the file, 1x2x3 = 6 in the grid")
    );
    std::fs::write(&path, text.replace("41", "-41")).unwrap();
    assert_eq!(error(&spec("2x2x3")), format!("{name}:12:2: `-41` is not a number from 0 on"));
    std::fs::write(&path, "perm\n1\n").unwrap();
    assert_eq!(error(&spec("1")), format!("{name}: there is no column `permx`"));
    assert_eq!(error("4,field=nowhere"), "unknown permeability field `nowhere`");
}

#[test]
fn bad_arguments_are_named() {
    let of = |what: &str| format!("`reservoir`: {what}");
    assert_eq!(error("4,k=5"), of("`k=5` is not one of 1, 2, 3, 4, 8"));
    assert_eq!(error("4,k=9"), of("`k=9` is not a whole number from 1 to 8"));
    assert_eq!(error("4,at=5x1"), of("the well `5x1` is outside the grid of 4 x 4 columns"));
    assert_eq!(error("4,at=2x1+2x1"), of("two wells at `2x1`"));
    assert_eq!(error("4,k=3,bias=half"), of("`bias=half` needs an even k and `rows=kept`"));
    assert_eq!(error("4,step=0"), of("`step=0` is not a whole number from 1 to 10000"));
    assert_eq!(error("4,step=2,bias=half"), of("`bias=half` has no further time steps"));
    assert_eq!(error("4,bias=skew"), "unknown `bias` of `reservoir` `skew`");
    assert_eq!(error("4,days=0"), of("`days=0` is outside 0.000001 to 1000000"));
    assert_eq!(error("4,well=3"), "unknown parameter of `reservoir` `well`");
    assert_eq!(error("1600,k=2"), "8192000000 unknowns: the limit is 4294967295");
    assert!(
        error("2x2x2,wells=5").ends_with("of 5 wells have room on 2 x 2 columns, 2 cells apart")
    );
    let lower = load("reservoir:4", ReadAs::AsStored).unwrap_err().to_string();
    assert_eq!(lower, "`reservoir:4` is not symmetric: nothing to read as stored");
}
