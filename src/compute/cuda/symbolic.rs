//! Patterns of factors, their schedules, and matrices in blocks, made on the device (`kernels/setup/symbolic.cu`).
//!
//! Patterns of a stencil on a box are told by the host, and rows written here. Others are found by the level rule `min`
//! alone: by it the entries of a level follow from those of lower levels, for all rows at a time. By `overwrite` a level
//! depends on the order of all updates before it, so that a row waits for the rows above it, one level of the forward
//! solve after the other; that is left to the host.

use std::rc::Rc;
use std::sync::{Arc, Weak};

use cudarc::driver::{CudaFunction, CudaSlice};

use super::Cuda;
use super::compressed::{Compressed, THREADS, by_threads, fault, lanes, of_lanes, run, starts};
use super::device::{Device, grid};
use super::launch::{Address, SparseArg, address};
use super::layout::shared;
use super::schedules::{Steps, plain};
use super::sources::SYMBOLIC;
use super::storage::{DevicePattern, Triangles};
use crate::base::error::{Error, Result};
use crate::base::measure::spans::span;
use crate::base::threads::Threads;
use crate::matrix::pattern::{Lazy, Pattern, TooLarge};
use crate::matrix::{Csr, WeakPattern};
use crate::symbolic::{BoxFill, FillPattern, Schedule, Stencil};

shared! {
    HalfArg = "Half" of "setup/symbolic.cu" { begin: Address, end: Address, columns: Address }
    LevelArg = "Level" of "setup/symbolic.cu" { lower: HalfArg, upper: HalfArg }
    SearchArg = "Search" of "setup/symbolic.cu" { rows: u32, levels: u32, fills: u32, whole: u32, level: Address, scalar_rows: u32, block_size: u32, row_ptr: Address, col_ind: Address, lower_length: Address, upper_length: Address, lower_ptr: Address, upper_ptr: Address, lower: Address, upper: Address, diagonal: Address, longer: Address }
}

/// Most entries of a triangle: threads count in steps beyond its end, in 32 bits.
const MOST: usize = u32::MAX as usize - 1024;

/// A kernel of `setup/symbolic.cu` for groups of so many threads.
fn kernel(d: &Device, lanes: usize, name: &str) -> Result<CudaFunction> {
    d.kernel(&SYMBOLIC, of_lanes(lanes), name)
}

/// Rows of a pattern on the device.
pub(super) struct Rows {
    pub(super) pattern: Arc<DevicePattern>,
    pub(super) entries: usize,
}

impl Rows {
    /// The same on the host.
    fn host(&self, d: &Device, block_size: usize) -> Result<Pattern<'static>> {
        let p = &*self.pattern;
        let row_ptr = d.host_part(&p.row_ptr, p.row_ptr.len())?;
        let col_ind = d.host_part(&p.col_ind, self.entries)?;
        Ok(Pattern::new(row_ptr, col_ind).in_blocks(block_size))
    }

    fn half(&self) -> HalfArg {
        let start = address(&self.pattern.row_ptr);
        HalfArg { begin: start, end: start + 4, columns: address(&self.pattern.col_ind) }
    }
}

/// Runs `search` for lengths and then for columns: the rows of both parts, or how many entries these would have, where
/// `fits` refuses it.
fn found(
    d: &Device,
    search: SearchArg,
    lanes: usize,
    fits: impl Fn(usize) -> bool,
) -> Result<std::result::Result<[Rows; 2], usize>> {
    let rows = search.rows as usize;
    let (of_lower, of_upper) = (d.alloc::<u32>(rows)?, d.zeros::<u32>(rows)?);
    let longer = d.zeros::<u32>(1 + rows)?;
    let counting = SearchArg {
        lower_length: address(&of_lower),
        upper_length: if search.levels > 0 { address(&of_upper) } else { 0 },
        longer: address(&longer),
        ..search
    };
    let find_rows = kernel(d, lanes, "find_rows")?;
    let config = by_threads(rows * lanes);
    run!(d, &find_rows, config; counting);
    let listed = d.host_part(&longer, 1)?[0] as usize;
    let long = LongRows::new(d, rows, listed)?;
    long.find(d, counting)?;
    let (lower_ptr, in_lower) = starts(d, rows, &of_lower)?;
    let (upper_ptr, in_upper) = starts(d, rows, &of_upper)?;
    if in_lower.max(in_upper) > MOST || !fits(in_lower + in_upper) {
        return Ok(Err(in_lower + in_upper));
    }
    let (lower, upper) = (d.alloc::<u32>(in_lower)?, d.alloc::<u32>(in_upper)?);
    let filling = SearchArg {
        lower_ptr: address(&lower_ptr),
        upper_ptr: address(&upper_ptr),
        lower: address(&lower),
        upper: address(&upper),
        ..counting
    };
    run!(d, &find_rows, config; filling);
    long.find(d, filling)?;
    let rows = |row_ptr, col_ind, entries| Rows {
        pattern: Arc::new(DevicePattern { row_ptr, col_ind }),
        entries,
    };
    Ok(Ok([rows(lower_ptr, lower, in_lower), rows(upper_ptr, upper, in_upper)]))
}

/// Rows that are too long for shared memory.
struct LongRows {
    count: u32,
    /// Words of the bits of a row.
    words: u32,
    bits: CudaSlice<u32>,
    blocks: usize,
}

impl LongRows {
    fn new(d: &Device, columns: usize, count: usize) -> Result<Self> {
        let words = columns.div_ceil(32);
        let mut blocks = 0;
        if count > 0 {
            let room = d.memory()?.free / 4 / (8 * words);
            blocks = count.min(8 * d.multiprocessors() as usize).min(room).max(1);
        }
        let bits = d.zeros(2 * words * blocks)?;
        Ok(Self { count: count as u32, words: words as u32, bits, blocks })
    }

    fn find(&self, d: &Device, search: SearchArg) -> Result<()> {
        if self.count > 0 {
            let (of, config) = (plain(d, "find_long_rows")?, grid(self.blocks, THREADS));
            run!(d, of, config; search, self.count, self.words, self.bits);
        }
        Ok(())
    }
}

/// The block columns of a matrix by scalar rows.
pub(super) fn block_rows(d: &Device, block_size: usize, a: &Compressed) -> Result<Rows> {
    let search = SearchArg {
        rows: a.rows.div_ceil(block_size) as u32,
        scalar_rows: a.rows as u32,
        block_size: block_size as u32,
        row_ptr: address(&a.pattern.row_ptr),
        col_ind: address(&a.pattern.col_ind),
        ..SearchArg::default()
    };
    let each = lanes(a.entries / a.rows.max(1));
    let [rows, _] = found(d, search, each, |_| true)?.map_err(|blocks| {
        Error::memory(format!("{blocks} blocks of a matrix: the limit is {MOST}"))
    })?;
    Ok(rows)
}

/// Puts the numbers of a matrix where they belong in blocks, which are zero elsewhere.
pub(super) fn fill_blocks(
    d: &Device,
    a: SparseArg,
    (block_size, rows): (usize, &DevicePattern),
    val: &CudaSlice<f64>,
) -> Result<()> {
    let (b, config) = (block_size as u32, by_threads(8 * a.rows as usize));
    run!(d, plain(d, "fill_blocks")?, config; a, b, rows.row_ptr, rows.col_ind, *val);
    Ok(())
}

/// The pattern of block ILU(k) factors on the device.
pub(super) struct Filled {
    pub(super) lower: Rows,
    pub(super) upper: Rows,
    no_diagonal: Vec<u32>,
}

impl Filled {
    /// That of a pattern, by the level rule `min`; `limit` bounds the entries of L and U together.
    pub(super) fn new(
        d: &Device,
        a: &Rows,
        fill: usize,
        limit: usize,
    ) -> Result<std::result::Result<Self, TooLarge>> {
        let n = a.pattern.row_ptr.len() - 1;
        let [lower_end, upper_begin, diagonal] =
            [d.alloc::<u32>(n)?, d.alloc::<u32>(n)?, d.alloc::<u32>(n)?];
        let (config, rows) = (by_threads(n), n as u32);
        let DevicePattern { row_ptr, col_ind } = &*a.pattern;
        let cut = plain(d, "cut_rows")?;
        run!(d, cut, config; rows, *row_ptr, *col_ind, lower_end, upper_begin, diagonal);
        let (_, on_diagonal) = starts(d, n, &diagonal)?;
        let whole = a.half();
        let mut levels = vec![LevelArg {
            lower: HalfArg { end: address(&lower_end), ..whole },
            upper: HalfArg { begin: address(&upper_begin), ..whole },
        }];
        let mut higher = Vec::new();
        let mut known = a.entries - on_diagonal;
        let too_large = |entries| TooLarge { row: n.saturating_sub(1), entries };
        for level in 1..=fill.max(1) {
            let last = level == fill.max(1);
            let on_device = d.stream().clone_htod(&levels).map_err(fault)?;
            let search = SearchArg {
                rows,
                levels: level as u32,
                fills: u32::from(fill > 0),
                whole: u32::from(last),
                level: address(&on_device),
                diagonal: address(&diagonal),
                ..SearchArg::default()
            };
            let before = if last { 0 } else { known };
            // about as many again, where there is fill
            let each = lanes(known / n.max(1) * if fill > 0 { 2 } else { 1 });
            let new = match found(d, search, each, |more| before + more <= limit)? {
                Ok(new) => new,
                Err(more) => return Ok(Err(too_large(before + more))),
            };
            if last {
                let [lower, upper] = new;
                let no_diagonal = without_diagonal(d, n, &diagonal)?;
                return Ok(Ok(Self { lower, upper, no_diagonal }));
            }
            known += new[0].entries + new[1].entries;
            levels.push(LevelArg { lower: new[0].half(), upper: new[1].half() });
            higher.push(new);
        }
        unreachable!("the last level returns")
    }

    /// The same on the host.
    pub(super) fn host(&self, d: &Device, block_size: usize) -> Result<FillPattern> {
        let (lower, upper) = (self.lower.host(d, block_size)?, self.upper.host(d, block_size)?);
        Ok(FillPattern::new(lower, upper, self.no_diagonal.clone()))
    }
}

/// The rows whose entry of `diagonal` is 0.
fn without_diagonal(d: &Device, n: usize, diagonal: &CudaSlice<u32>) -> Result<Vec<u32>> {
    let (start, there) = starts(d, n, diagonal)?;
    let (rows, count) = (n as u32, n - there);
    if count == 0 {
        return Ok(Vec::new());
    }
    let list = d.alloc::<u32>(count)?;
    run!(d, plain(d, "list_without")?, by_threads(n); rows, *diagonal, start, list);
    d.host(&list)
}

/// The rows of L (0) or U (1) of a box; `cells` are [those](BoxFill::cells) of the rows.
fn box_rows(d: &Device, told: &BoxFill, cells: &CudaSlice<u16>, at: usize) -> Result<Rows> {
    let (half, entries) = (&told.halves[at], told.entries[at]);
    let (start, apart) = (d.copied(told.small_half(at).row_ptr)?, d.copied(&half.apart)?);
    let (n, length) = (cells.len(), d.alloc::<u32>(cells.len())?);
    let (rows, config) = (n as u32, by_threads(n));
    run!(d, plain(d, "box_lengths")?, config; rows, *cells, start, length);
    let (row_ptr, _) = starts(d, n, &length)?;
    let col_ind = d.alloc::<u32>(entries)?;
    run!(d, plain(d, "box_columns")?, config; rows, *cells, start, apart, row_ptr, col_ind);
    Ok(Rows { pattern: Arc::new(DevicePattern { row_ptr, col_ind }), entries })
}

fn unknown() -> Error {
    Error::run("the device has not made this pattern")
}

/// The factors of a matrix that is a stencil on a box.
#[derive(Clone)]
pub(super) struct Boxed {
    pub(super) told: Arc<BoxFill>,
    /// For each row the cell of the small box whose row is alike.
    pub(super) cells: Arc<Vec<u16>>,
    /// Whether all blocks of the matrix are full.
    pub(super) whole: bool,
    /// Its pattern.
    pub(super) of: WeakPattern,
}

impl Boxed {
    /// Rows of a line, in which each needs the one before, if they do.
    pub(super) fn line(&self) -> Option<usize> {
        self.told.has_lines().then(|| self.told.extents()[0])
    }
}

/// A pattern that the device has made, until factors are prepared on it.
pub(super) struct Known {
    of: Weak<FillPattern>,
    triangles: Triangles,
    boxed: Option<Boxed>,
}

impl Cuda {
    /// The pattern of block ILU(k) of `a` by the level rule `min`, found on the device.
    ///
    /// # Errors
    /// When the device fails or has too little memory; the inner one when `limit` is passed.
    pub fn filled(
        &self,
        a: &Csr,
        fill: usize,
        limit: usize,
    ) -> Result<std::result::Result<Arc<FillPattern>, TooLarge>> {
        let (d, b) = (&*self.device, a.block_size());
        self.pattern.take();
        let pattern = match self.stored.borrow().pattern(a) {
            Some(there) => there,
            None => DevicePattern::copied(d, a.row_ptr(), a.col_ind())?,
        };
        let rows = if b == 1 {
            Rows { pattern, entries: a.nnz() }
        } else {
            let val = Rc::new(d.alloc(0)?);
            let scalar = Compressed { rows: a.rows(), entries: a.nnz(), pattern, val };
            d.span("block rows", || block_rows(d, b, &scalar))?
        };
        let filled = match d.span("pattern", || Filled::new(d, &rows, fill, limit))? {
            Ok(filled) => filled,
            Err(at) => return Ok(Err(at)),
        };
        let pattern = Arc::new(d.span("pattern to the host", || filled.host(d, b))?);
        self.know(&pattern, [filled.lower, filled.upper], None);
        Ok(Ok(pattern))
    }

    /// The pattern of factors of `a` that `told` tells. Its rows are on the device; on the host they are made when
    /// somebody looks at them.
    ///
    /// # Errors
    /// When the device fails or has too little memory.
    pub fn of_box(&self, a: &Csr, told: BoxFill) -> Result<Arc<FillPattern>> {
        let (d, told, block_size) = (&*self.device, Arc::new(told), a.block_size());
        self.pattern.take();
        let cells = Arc::new(told.cells(Threads::Pool));
        let rows = d.span("rows of a box", || {
            let cells = d.copied(&cells)?;
            Ok([box_rows(d, &told, &cells, 0)?, box_rows(d, &told, &cells, 1)?])
        })?;
        let later = |at: usize| {
            let size = [told.rows(), told.entries[at], block_size];
            let told = Arc::clone(&told);
            Lazy::new(size, move |threads| {
                let [half] = span("rows on the host", || told.rows_of(threads, [at], block_size));
                half
            })
        };
        let pattern = FillPattern { lower: later(0), upper: later(1), no_diagonal: Vec::new() };
        let (pattern, of) = (Arc::new(pattern), a.pattern().downgrade());
        let (blocks, rest) = (a.nnz() / block_size.pow(2), a.nnz() % block_size.pow(2));
        let whole = rest == 0 && told.of.is_complete(blocks);
        self.know(&pattern, rows, Some(Boxed { told, cells, whole, of }));
        Ok(pattern)
    }

    /// Keeps what is known of a pattern until factors are prepared on it.
    fn know(&self, pattern: &Arc<FillPattern>, rows: [Rows; 2], boxed: Option<Boxed>) {
        let (of, triangles) = (Arc::downgrade(pattern), rows.map(|rows| rows.pattern));
        self.pattern.replace(Some(Known { of, triangles, boxed }));
    }

    /// The triangles of the last pattern that the device has made, and what is known of them, once.
    pub(super) fn triangles_of(
        &self,
        pattern: &Arc<FillPattern>,
    ) -> Option<(Triangles, Option<Boxed>)> {
        let known = self.pattern.take()?;
        (known.of.as_ptr() == Arc::as_ptr(pattern)).then_some((known.triangles, known.boxed))
    }

    /// L and U of the last pattern that the device has made, as they are there.
    ///
    /// # Errors
    /// When the device fails, or has not made the pattern.
    pub fn rows_made(&self, pattern: &Arc<FillPattern>) -> Result<[Pattern<'static>; 2]> {
        let known = self.pattern.borrow();
        let known = known.as_ref().filter(|known| known.of.as_ptr() == Arc::as_ptr(pattern));
        let [lower, upper] = &known.ok_or_else(unknown)?.triangles;
        let host = |of: &Arc<DevicePattern>, entries| {
            let rows = Rows { pattern: Arc::clone(of), entries };
            rows.host(&self.device, pattern.block_size())
        };
        Ok([host(lower, pattern.lower.entries())?, host(upper, pattern.upper.entries())?])
    }

    /// The schedules of the forward and the backward solve with factors on the last pattern that the device has made,
    /// found there; once, as they are otherwise found when factors are prepared.
    ///
    /// # Errors
    /// When the device fails or has too little memory, or has not made the pattern.
    pub fn schedules(&self, pattern: &Arc<FillPattern>) -> Result<[Schedule; 2]> {
        let ([lower, upper], boxed) = self.triangles_of(pattern).ok_or_else(unknown)?;
        let (d, line) = (&self.device, boxed.and_then(|boxed| boxed.line()));
        let schedule = |p: &DevicePattern, backward| Steps::new(d, p, backward, line)?.schedule(d);
        Ok([schedule(&lower, false)?, schedule(&upper, true)?])
    }

    /// The cells of a box by the steps of the shortest march over a strictly lower triangle with this stencil.
    ///
    /// # Errors
    /// When the device fails or has too little memory.
    pub fn order_of_march(&self, stencil: &Stencil) -> Result<Schedule> {
        Steps::of_march(&self.device, stencil)?.schedule(&self.device)
    }
}

/// Where [`Cuda`] makes patterns, schedules and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On the host.
    Host,
    /// On the device, but for patterns and steps of few rows.
    Best,
    /// On the device.
    Device,
}

/// Rows below which the host makes a pattern, or finds its steps, as fast as a device.
const FEW_ROWS: usize = 1 << 14;

impl Place {
    /// Whether the device makes patterns of so many rows, and finds their steps.
    pub(super) fn on_device(self, rows: usize) -> bool {
        match self {
            Self::Host => false,
            Self::Best => rows >= FEW_ROWS,
            Self::Device => true,
        }
    }
}

/// Environment variable with the [`Place`]: `host` or `device`; unset, what is best.
const SETUP: &str = "BILU_BENCH_SETUP";

/// What [`SETUP`] says.
///
/// # Errors
/// When it is neither.
pub(super) fn place() -> Result<Place> {
    named(&std::env::var_os(SETUP).unwrap_or_default().to_string_lossy())
}

fn named(text: &str) -> Result<Place> {
    match text {
        "" => Ok(Place::Best),
        "host" => Ok(Place::Host),
        "device" => Ok(Place::Device),
        other => Err(Error::input(format!("`{other}` is neither `host` nor `device`"))
            .in_file(SETUP)
            .hint("it is where the backend `cuda` makes patterns, schedules and blocks")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setup_is_where_the_variable_says() {
        let places = [Place::Best, Place::Host, Place::Device].map(Ok);
        assert_eq!(["", "host", "device"].map(named), places);
        let error = named("gpu").unwrap_err();
        assert_eq!(error.to_string(), "BILU_BENCH_SETUP: `gpu` is neither `host` nor `device`");
        assert_eq!(error.exit_code(), 2);
    }
}
