//! Several vectors at once, for which a matrix and factors are read once.

use super::Operations;

/// Most columns of a multivector.
pub const MOST_COLUMNS: usize = 64;

/// What becomes of a multivector that others are added to.
#[derive(Clone, Copy, Debug)]
pub enum Own<'a> {
    /// It stays.
    Kept,
    /// It is overwritten, and not read.
    Zero,
    /// It is multiplied by a small matrix from the right.
    Times(&'a [f64]),
}

/// What becomes of X and P in a step of block CG.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// `X += P add`, before P changes.
    pub add: Option<&'a [f64]>,
    /// What becomes of P, which `Z coef` is added to.
    pub own: Own<'a>,
    /// See `own`.
    pub coef: &'a [f64],
}

/// Operations on multivectors: vectors of a backend that hold n rows of `columns` numbers each, at most
/// [`MOST_COLUMNS`]. Small matrices, of `columns` x `columns`, are on the host, by rows.
pub trait Multivectors<K: Operations> {
    /// As many columns or more, with which operations are the fastest when those beyond `columns` are zero.
    fn width(&self, columns: usize) -> usize;
    /// How often a product or solve of so many columns reads the matrix or the factors.
    fn passes(&self, columns: usize) -> usize;
    /// `Y = A X`, or `Y = B - A X` when B is given.
    fn product(
        &self,
        a: &K::Matrix,
        columns: usize,
        x: &K::Vector,
        b: Option<&K::Vector>,
        y: &mut K::Vector,
    );
    /// `Z = (L D U')^-1 R` with factors in the order of the vectors.
    fn solve(&self, ilu: &K::BlockIlu, columns: usize, r: &K::Vector, z: &mut K::Vector);
    /// `out[i] = basis[i]' W`, one small matrix after the other.
    fn grams(&self, columns: usize, basis: &[&K::Vector], w: &K::Vector, out: &mut [f64]);
    /// `W = own + sum_i basis[i] coef[i]`, where `coef` holds one small matrix after the other.
    fn update(
        &self,
        columns: usize,
        own: Own,
        basis: &[&K::Vector],
        coef: &[f64],
        w: &mut K::Vector,
    );
    /// Copies column j to a vector.
    fn column(&self, columns: usize, j: usize, from: &K::Vector, to: &mut K::Vector);
    /// Copies a vector to column j.
    fn set_column(&self, columns: usize, j: usize, from: &K::Vector, to: &mut K::Vector);
    /// Whether one of several threads does what `directions` and `residuals` do, because that is faster.
    fn joins_on_one(&self) -> bool;
    /// `X += P add`, `P = own + Z coef`, `Z = A P` and `gram = P' Z`, where A is symmetric.
    fn directions(
        &self,
        a: &K::Matrix,
        columns: usize,
        step: Step,
        xpz: [&mut K::Vector; 3],
        gram: &mut [f64],
    );
    /// `W = own + Q coef`, `Q = (L D U')^-1 W` with factors in the order of the vectors, and `grams[0] = Q' W`,
    /// `grams[1] = W' W`. Of symmetric factors, which is the flag, `Q' W` may be taken as `Y' D^-1 Y`, `Y = L^-1 W`.
    fn residuals(
        &self,
        factors: (&K::BlockIlu, bool),
        columns: usize,
        update: (Own, &[f64]),
        wq: [&mut K::Vector; 2],
        grams: &mut [f64],
    );
}
