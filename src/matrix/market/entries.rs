//! Coordinate entries: the fast path over the lines of a block.

// the functions are a few instructions each and run for every number of a file
#![allow(clippy::inline_always)]

use std::cell::Cell;
use std::path::Path;

use crate::base::choices::ReadAs;
use crate::base::error::Result;
use crate::base::input::{Opened, is_stdin};
use crate::base::measure::check_memory;
use crate::matrix::Csr;
use crate::matrix::assemble::{
    self, Assembled, Assembly, Counted, Entry, MANY, OF_AN_ENTRY, Plan, Ranges, infinite, too_large,
};

use super::blocks::{Fault, Part, Text};
use super::field::{Field, Symmetry};
use super::header::{self, Header, Layout};
use super::line::{self, Rules};
use super::{Matrix, dense, number};

/// The entries of one block.
#[derive(Debug)]
pub(super) struct Chunk {
    part: assemble::Part,
    /// Entries without the mirrored ones.
    stored: usize,
    lines: usize,
}

impl Chunk {
    /// The entries, in the order of the file where there is one range.
    pub(super) fn entries(&self) -> &[Entry] {
        self.part.entries()
    }
}

impl Part for Chunk {
    fn stored(&self) -> usize {
        self.stored
    }

    fn lines(&self) -> usize {
        self.lines
    }
}

/// Row and column from 0, value.
type Triple = (u32, u32, f64);

/// Entries out of order that wait in memory at most, where a file can be read twice: 128 MiB.
const MOST_WAITING: usize = 8 << 20;

/// Reads the file at `path`, which is open; twice, where it has very many entries out of order.
pub(super) fn read_file(path: &Path, file: Opened, read_as: ReadAs) -> Result<Matrix> {
    if !path.is_file() && !is_stdin(path) {
        // nor can a pipe be read again
        return read(Text::of(file)?, read_as);
    }
    let first = Cell::new(Some(file));
    let open = || match first.take() {
        Some(file) => Text::of(file),
        None => Text::open(path),
    };
    read_twice(&open, read_as, [MOST_WAITING, MANY])
}

/// Reads the coordinate file that `open` opens, once or twice: beyond `most` entries out of order it is only
/// counted the first time, and beyond `many` duplicates are added up on the way.
fn read_twice(
    open: &dyn Fn() -> Result<Text>,
    read_as: ReadAs,
    [most, many]: [usize; 2],
) -> Result<Matrix> {
    let counted = match begin(open()?, read_as, Some(most), many)? {
        Read::Counted(counted) => counted,
        read => return finished(read, open, read_as),
    };
    let mut text = open()?;
    let header = header::read(&mut text)?;
    let same = (counted.rows, counted.entries) == (header.rows, header.entries);
    if same && let Some(read) = again(&mut text, &header, read_as, counted.places)? {
        return finished(read, open, read_as);
    }
    Err(text.error_here("the file was changed while it was read"))
}

/// The matrix, or an error at the line whose entry makes a sum too large.
pub(super) fn finished(
    read: Read,
    open: &dyn Fn() -> Result<Text>,
    read_as: ReadAs,
) -> Result<Matrix> {
    let place = match read {
        Read::Whole(matrix) => return Ok(matrix),
        Read::TooLarge(place) => place,
        Read::Counted(_) => unreachable!("read twice by now"),
    };
    let mut text = open()?;
    let header = header::read(&mut text)?;
    let (rules, mirror) = rules(&header, read_as);
    let mut sum = 0.0;
    while let Some(line) = text.line()? {
        let entry = line::entry(&line, &rules).map_err(|f| text.error_at_last(f))?;
        let Some((row, col, value)) = entry else { continue };
        if [row, col] == place || mirror && [col, row] == place {
            sum += value;
            if !f64::is_finite(sum) {
                return Err(too_large(place).at(text.name(), text.lines(), None));
            }
        }
    }
    Err(too_large(place).in_file(text.name()))
}

/// What one reading of a file yields.
pub(super) enum Read {
    Whole(Matrix),
    /// Row and column, from 0, of entries whose sum is not finite.
    TooLarge([u32; 2]),
    Counted(FirstReading),
}

/// The sizes of a file and the entries of its rows.
pub(super) struct FirstReading {
    rows: usize,
    entries: usize,
    places: Counted,
}

/// Puts the entries where they belong; nothing when they are not those that were counted.
fn again(
    text: &mut Text,
    header: &Header,
    read_as: ReadAs,
    mut places: Counted,
) -> Result<Option<Read>> {
    let (rules, mirrored) = rules(header, read_as);
    // one range: nothing is sorted
    let ranges = Ranges::new(header.rows, 0);
    let parse = |block: &[u8], limit| parse(block, &rules, mirrored, ranges, limit);
    let mut same = true;
    text.parse(header.entries, parse, |chunk: Chunk| {
        same = same && places.add(&chunk.part);
        Ok(())
    })?;
    if !same {
        return Ok(None);
    }
    let found = places.finish()?;
    Ok(found.map(|(matrix, summed)| whole(matrix, header.symmetry, summed)))
}

/// Reads a coordinate file.
pub(super) fn read(text: Text, read_as: ReadAs) -> Result<Matrix> {
    let name = text.name().to_owned();
    read_once(begin(text, read_as, None, MANY)?, &name)
}

/// The matrix of a file that cannot be read again.
fn read_once(read: Read, name: &str) -> Result<Matrix> {
    match read {
        Read::Whole(matrix) => Ok(matrix),
        Read::TooLarge(place) => Err(too_large(place).in_file(name)),
        Read::Counted(_) => unreachable!("nothing is too much"),
    }
}

fn begin(mut text: Text, read_as: ReadAs, most: Option<usize>, many: usize) -> Result<Read> {
    let header = header::read(&mut text)?;
    if header.layout == Layout::Array {
        return dense::after(text, &header, read_as).map(Read::Whole);
    }
    once(text, &header, read_as, most, many)
}

/// Reads what follows the header of a coordinate file.
pub(super) fn after(text: Text, header: &Header, read_as: ReadAs) -> Result<Matrix> {
    let name = text.name().to_owned();
    read_once(once(text, header, read_as, None, MANY)?, &name)
}

/// The rules of a file's lines, and whether entries are mirrored.
pub(super) fn rules(header: &Header, read_as: ReadAs) -> (Rules, bool) {
    let rules = Rules {
        rows: header.rows as u32,
        cols: header.cols as u32,
        field: header.field,
        symmetry: header.symmetry,
    };
    (rules, read_as == ReadAs::Expanded && header.symmetry != Symmetry::General)
}

/// Reads the lines, as [`read_twice`] does the first time; without `most` all entries are kept.
fn once(
    mut text: Text,
    header: &Header,
    read_as: ReadAs,
    most: Option<usize>,
    many: usize,
) -> Result<Read> {
    let (rules, mirrored) = rules(header, read_as);
    let size = [header.rows, header.cols];
    check_declared(&text, header, mirrored, 1).map_err(|e| e.at(text.name(), header.line, None))?;
    let ranges = Ranges::new(header.rows, header.entries * (1 + usize::from(mirrored)));
    let capacity = text.backed(header.entries);
    let plan = Plan { size, first: 0, ranges, capacity, mirrored, most, many };
    let mut assembly = Assembly::new(plan).map_err(|e| e.in_file(text.name()))?;
    let parse = |block: &[u8], limit| parse(block, &rules, mirrored, ranges, limit);
    text.parse(header.entries, parse, |chunk: Chunk| assembly.add(chunk.part))?;
    check_nearly_empty(&text, header, assembly.entries())?;
    check_memory(4 * header.rows).map_err(|e| e.in_file(text.name()))?;
    // what follows is not stopped by Ctrl-C
    text.check_stopped()?;
    Ok(match assembly.finish().map_err(|e| e.in_file(text.name()))? {
        Assembled::Matrix(matrix, summed) => whole(matrix, header.symmetry, summed),
        Assembled::Counted(places) => {
            Read::Counted(FirstReading { rows: header.rows, entries: header.entries, places })
        }
    })
}

/// Refuses a matrix whose row pointers would take far more memory than so many entries.
pub(super) fn check_nearly_empty(text: &Text, header: &Header, entries: usize) -> Result<()> {
    assemble::check_nearly_empty(header.rows, entries)
        .map_err(|e| e.at(text.name(), header.line, None))
}

/// Refuses a matrix whose entries cannot be in memory all at once, that of as many `owners`: as many as the header
/// says, the file can hold and there are places for.
pub(super) fn check_declared(
    text: &Text,
    header: &Header,
    mirrored: bool,
    owners: usize,
) -> Result<()> {
    let places = header.rows.saturating_mul(header.cols);
    let entries = (text.at_most(header.entries) * (1 + usize::from(mirrored))).min(places);
    check_memory(OF_AN_ENTRY.saturating_mul(entries) / owners).map_err(|e| {
        let declared = header.entries;
        e.hint(format!("the size line declares {declared} entries; is that right?"))
    })
}

/// A matrix with the word about entries that were added to others.
fn whole(matrix: Csr, symmetry: Symmetry, summed: usize) -> Read {
    // each entry is finite
    match infinite(&matrix) {
        Some(place) if summed > 0 => Read::TooLarge(place),
        _ => {
            let remarks = assemble::summed(summed).into_iter().collect();
            Read::Whole(Matrix { matrix, symmetry, remarks })
        }
    }
}

/// Parses whole lines; faults at the first line that breaks the rules or holds an entry beyond
/// `limit`.
pub(super) fn parse(
    block: &[u8],
    rules: &Rules,
    mirror: bool,
    ranges: Ranges,
    limit: usize,
) -> Result<Chunk, Fault> {
    let mut entries = Vec::with_capacity(estimate(block) * (1 + usize::from(mirror)));
    let (mut at, mut stored, mut lines) = (0, 0, 0);
    let sign = if rules.symmetry == Symmetry::SkewSymmetric { -1.0 } else { 1.0 };
    while at < block.len() {
        let (entry, next) = match fast(block, at, rules) {
            Some((entry, next)) => (Some(entry), next),
            None => slow(block, at, rules).map_err(|f| f.down(lines))?,
        };
        if let Some((row, col, value)) = entry {
            if stored == limit {
                return Err(Fault::surplus().down(lines));
            }
            stored += 1;
            entries.push(Entry { row, col, value });
            if mirror && row != col {
                entries.push(Entry { row: col, col: row, value: sign * value });
            }
        }
        lines += 1;
        at = next;
    }
    Ok(Chunk { part: assemble::Part::new(entries, ranges), stored, lines })
}

/// Lines of `block`, judged by the length of the first.
fn estimate(block: &[u8]) -> usize {
    let first = memchr::memchr(b'\n', block).unwrap_or(block.len()) + 1;
    block.len() / first.max(4) * 9 / 8 + 16
}

/// The entry on the line at `at` and the start of the next line, when the line is of the common
/// form; anything else is left to [`slow`].
#[inline(always)]
fn fast(block: &[u8], at: usize, rules: &Rules) -> Option<(Triple, usize)> {
    let (row, end) = number::index(block, skip_spaces(block, at))?;
    let (col, end) = number::index(block, gap(block, end)?)?;
    let (value, end) = match rules.field {
        Field::Real => number::real(block, gap(block, end)?)?,
        Field::Integer => integer(block, gap(block, end)?)?,
        Field::Pattern => (1.0, end),
    };
    let mut end = skip_spaces(block, end);
    if block.get(end) == Some(&b'\r') {
        end += 1;
    }
    let inside = row.wrapping_sub(1) < u64::from(rules.rows)
        && col.wrapping_sub(1) < u64::from(rules.cols)
        && match rules.symmetry {
            Symmetry::General => true,
            Symmetry::Symmetric => row >= col,
            Symmetry::SkewSymmetric => row > col,
        };
    let good = block.get(end) == Some(&b'\n') && inside && value.is_finite();
    good.then(|| ((row as u32 - 1, col as u32 - 1, value), end + 1))
}

/// A signed integer of few digits.
#[inline(always)]
fn integer(block: &[u8], at: usize) -> Option<(f64, usize)> {
    let negative = block.get(at) == Some(&b'-');
    let (value, end) = number::index(block, at + usize::from(negative))?;
    let value = value as f64;
    Some((if negative { -value } else { value }, end))
}

#[inline(always)]
fn skip_spaces(block: &[u8], mut at: usize) -> usize {
    while matches!(block.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

/// Skips at least one space.
#[inline(always)]
fn gap(block: &[u8], at: usize) -> Option<usize> {
    let end = skip_spaces(block, at);
    (end > at).then_some(end)
}

/// A line as [`line::entry`] reads it and the start of the next line.
#[cold]
#[inline(never)]
fn slow(block: &[u8], at: usize, rules: &Rules) -> Result<(Option<Triple>, usize), Fault> {
    let end = memchr::memchr(b'\n', &block[at..]).map_or(block.len(), |e| at + e);
    Ok((line::entry(&block[at..end], rules)?, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lines that are nearly or wholly entries.
    fn line() -> impl Strategy<Value = String> {
        let space = prop::sample::select(vec!["", " ", "\t", "  ", "\r"]);
        let index = prop_oneof![
            (0_u64..12).prop_map(|i| i.to_string()),
            any::<u64>().prop_map(|i| i.to_string()),
            "[+-]?[0-9x.]{0,3}",
        ];
        let value = prop_oneof![
            any::<f64>().prop_map(|v| v.to_string()),
            any::<f64>().prop_map(|v| format!("{v:E}")),
            any::<i32>().prop_map(|v| v.to_string()),
            "[+-]?[0-9]{0,25}[.]?[0-9]{0,5}([eEdD][+-]?[0-9]{0,3})?",
            "(nan|inf|%|)",
        ];
        let words =
            (space.clone(), index.clone(), space.clone(), index, space.clone(), value, space);
        words.prop_map(|(a, i, b, j, c, v, d)| format!("{a}{i}{b}{j}{c}{v}{d}"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn the_fast_path_takes_nothing_that_the_grammar_refuses(
            line in line(),
            field in prop::sample::select(vec![Field::Real, Field::Integer, Field::Pattern]),
            symmetry in prop::sample::select(vec![
                Symmetry::General,
                Symmetry::Symmetric,
                Symmetry::SkewSymmetric,
            ]),
        ) {
            let rules = Rules { rows: 10, cols: 10, field, symmetry };
            let text = format!("{line}\n");
            if let Some((entry, end)) = fast(text.as_bytes(), 0, &rules) {
                prop_assert_eq!(end, text.len());
                let (i, j, v) = line::entry(line.as_bytes(), &rules).unwrap().unwrap();
                prop_assert_eq!((i, j, v.to_bits()), (entry.0, entry.1, entry.2.to_bits()));
            }
        }
    }

    #[test]
    fn a_file_that_is_read_twice_gives_the_same_matrix() {
        use std::fmt::Write as _;
        for (symmetry, read_as) in [
            ("general", ReadAs::Expanded),
            ("symmetric", ReadAs::Expanded),
            ("symmetric", ReadAs::AsStored),
            ("skew-symmetric", ReadAs::Expanded),
        ] {
            let mut text =
                format!("%%MatrixMarket matrix coordinate real {symmetry}\n700 700 9000\n");
            for e in 0..9000_u64 {
                // the last ten repeat the first
                let place = e % 8990;
                let (i, j) = (place * 7919 % 700, place * 104_729 % 699);
                let (i, j) = if symmetry == "general" { (i, j) } else { (i.max(j), i.min(j)) };
                let i = if symmetry == "skew-symmetric" && i == j { i + 1 } else { i };
                _ = writeln!(text, "{} {} {}", i + 1, j + 1, e as f64 / 8.0);
            }
            let open = || {
                let reader = std::io::Cursor::new(text.clone().into_bytes());
                Text::new("a.mtx", Box::new(reader))
            };
            let once = read(open().unwrap(), read_as).unwrap();
            let twice = read_twice(&open, read_as, [1000, MANY]).unwrap();
            assert_eq!(once.remarks.len(), 1, "duplicates");
            assert_eq!(twice, once, "{symmetry}");
        }
    }

    #[test]
    fn duplicates_that_are_added_up_on_the_way_give_the_same_sums() {
        use std::fmt::Write as _;
        const LINES: u64 = 400_000;
        for (symmetry, in_order) in
            [("general", true), ("general", false), ("symmetric", true), ("symmetric", false)]
        {
            let mut text =
                format!("%%MatrixMarket matrix coordinate real {symmetry}\n900 900 {LINES}\n");
            for e in 0..LINES {
                let i = if in_order { e * 900 / LINES } else { e * 7919 % 900 };
                let j = e * 104_729 % (i + 1) % 5;
                // sums that depend on the order of the terms
                _ = writeln!(text, "{} {} {}", i + 1, j + 1, 0.1 + e as f64 * 1e-7);
            }
            // several blocks
            assert!(text.len() > 6 << 20);
            let open = || {
                let reader = std::io::Cursor::new(text.clone().into_bytes());
                Text::new("a.mtx", Box::new(reader))
            };
            let once = read(open().unwrap(), ReadAs::Expanded).unwrap();
            let condensed = read_twice(&open, ReadAs::Expanded, [usize::MAX, 1000]).unwrap();
            assert!(once.matrix.nnz() < 10_000 && once.remarks.len() == 1, "{:?}", once.remarks);
            assert!(condensed == once, "{symmetry} {in_order}: {:?}", condensed.remarks);
            // counted at the first decrease, unless something has been added up by then
            let both = read_twice(&open, ReadAs::Expanded, [1000, 1000]).unwrap();
            assert!(both == once, "{symmetry} {in_order}: {:?}", both.remarks);
        }
    }

    #[test]
    fn a_file_that_changes_between_two_readings_is_refused() {
        let text = |last: &str| {
            format!(
                "%%MatrixMarket matrix coordinate real general\n3 3 3\n3 1 1\n2 1 1\n{last} 1 1\n"
            )
        };
        let turn = std::cell::Cell::new(0);
        let open = || {
            turn.set(turn.get() + 1);
            let text = text(if turn.get() == 1 { "1" } else { "2" });
            Text::new("a.mtx", Box::new(std::io::Cursor::new(text.into_bytes())))
        };
        let error = read_twice(&open, ReadAs::Expanded, [1, MANY]).unwrap_err();
        assert_eq!(error.message(), "the file was changed while it was read");
    }

    #[test]
    fn common_lines_take_the_fast_path() {
        let rules = Rules { rows: 10, cols: 10, field: Field::Real, symmetry: Symmetry::General };
        for line in
            ["1 2 3\n", " 10\t10  -1.5e-3\r\n", "3 4 1.0D+00 \n", "1 1 .1234567890123456789\n"]
        {
            assert!(fast(line.as_bytes(), 0, &rules).is_some(), "{line}");
        }
    }
}
