//! Files that one process reads for others: each assembles the rows that are its own, and none has all.

use std::ops::Range;
use std::path::Path;

use crate::base::choices::ReadAs;
use crate::base::error::{Error, Result};
use crate::base::input::Opened;
use crate::matrix::Csr;
use crate::matrix::assemble::{Assembled, Assembly, Entry, MANY, Part, Plan, Ranges, infinite};

use super::blocks::Text;
use super::entries::{self, Chunk, Read};
use super::header::{self, Header, Layout};
use super::{Matrix, Symmetry, dense};

/// Bytes of an entry on its way.
const OF_AN_ENTRY: usize = 16;

/// Blocks of text that are parsed at a time.
const BLOCKS: usize = 4;

/// Reads a file for several owners of rows.
pub struct Dealer {
    from: From,
    read_as: ReadAs,
}

/// What is dealt.
enum From {
    /// The lines of a coordinate file, as they are read.
    Lines(Text, Header),
    /// A matrix that this process has.
    Whole(Matrix),
}

impl Dealer {
    /// Opens a file and reads its first lines, for as many owners. An array file is read as a whole.
    ///
    /// # Errors
    /// Those of the lines, and when the entries that these declare cannot be in the memory of each owner.
    pub fn open(path: &Path, read_as: ReadAs, owners: usize) -> Result<Self> {
        Self::of_text(Text::open(path)?, read_as, owners)
    }

    /// The same for a file that is open.
    pub(crate) fn of_file(file: Opened, read_as: ReadAs, owners: usize) -> Result<Self> {
        Self::of_text(Text::of(file)?, read_as, owners)
    }

    fn of_text(mut text: Text, read_as: ReadAs, owners: usize) -> Result<Self> {
        text.limit(BLOCKS);
        let header = header::read(&mut text)?;
        if header.layout == Layout::Array {
            return Ok(Self::of_matrix(dense::after(text, &header, read_as)?));
        }
        let mirrored = entries::rules(&header, read_as).1;
        entries::check_declared(&text, &header, mirrored, owners)
            .map_err(|e| e.at(text.name(), header.line, None))?;
        Ok(Self { from: From::Lines(text, header), read_as })
    }

    /// Deals the rows of a matrix that this process has.
    pub(crate) fn of_matrix(matrix: Matrix) -> Self {
        Self { from: From::Whole(matrix), read_as: ReadAs::Expanded }
    }

    /// Rows and columns.
    pub fn size(&self) -> [usize; 2] {
        match &self.from {
            From::Lines(_, header) => [header.rows, header.cols],
            From::Whole(read) => [read.matrix.rows(), read.matrix.cols()],
        }
    }

    /// What the header declares.
    pub fn symmetry(&self) -> Symmetry {
        match &self.from {
            From::Lines(_, header) => header.symmetry,
            From::Whole(read) => read.symmetry,
        }
    }

    /// Whether entries above the diagonal are added that are not in the file.
    pub fn mirrored(&self) -> bool {
        match &self.from {
            From::Lines(_, header) => entries::rules(header, self.read_as).1,
            From::Whole(_) => false,
        }
    }

    /// What a reader of the results has to know of a matrix that was read as a whole.
    pub(crate) fn remarks(&self) -> &[String] {
        match &self.from {
            From::Lines(..) => &[],
            From::Whole(read) => &read.remarks,
        }
    }

    /// Reads the entries. Whenever there are `piece` bytes of them, `deal` gets those of each owner, whose rows begin
    /// at `starts`; it empties them.
    ///
    /// # Errors
    /// Names line and column of the first thing the format does not allow.
    pub fn read(
        &mut self,
        starts: &[usize],
        piece: usize,
        mut deal: impl FnMut(&mut [Vec<u8>]),
    ) -> Result<()> {
        let mut hands = vec![Vec::new(); starts.len()];
        let mut filled = 0;
        let mut hand_out = |entry: &Entry| {
            let owner = starts.partition_point(|&start| start <= entry.row as usize) - 1;
            let hand: &mut Vec<u8> = &mut hands[owner];
            hand.extend_from_slice(&entry.row.to_ne_bytes());
            hand.extend_from_slice(&entry.col.to_ne_bytes());
            hand.extend_from_slice(&entry.value.to_ne_bytes());
            filled += OF_AN_ENTRY;
            if filled >= piece {
                deal(&mut hands);
                filled = 0;
            }
        };
        match &mut self.from {
            From::Lines(text, header) => {
                let (rules, mirrored) = entries::rules(header, self.read_as);
                // one range: nothing is sorted
                let ranges = Ranges::new(header.rows, 0);
                let parse =
                    |block: &[u8], limit| entries::parse(block, &rules, mirrored, ranges, limit);
                text.parse(header.entries, parse, |chunk: Chunk| {
                    chunk.entries().iter().for_each(&mut hand_out);
                    Ok(())
                })?;
            }
            From::Whole(read) => {
                for row in 0..read.matrix.rows() {
                    let (cols, values) = read.matrix.row(row);
                    let entry = |(&col, &value)| Entry { row: row as u32, col, value };
                    cols.iter().zip(values).map(entry).for_each(|entry| hand_out(&entry));
                }
            }
        }
        deal(&mut hands);
        Ok(())
    }

    /// Refuses a matrix whose rows are nearly all empty, of so many entries.
    ///
    /// # Errors
    /// When it is one.
    pub(crate) fn check_entries(&self, entries: usize) -> Result<()> {
        match &self.from {
            From::Lines(text, header) => entries::check_nearly_empty(text, header, entries),
            From::Whole(_) => Ok(()),
        }
    }

    /// The error of entries of one place whose sum is not finite, at the line that makes it so.
    pub(crate) fn too_large(path: &Path, read_as: ReadAs, place: [u32; 2]) -> Error {
        let open = || Text::open(path);
        match entries::finished(Read::TooLarge(place), &open, read_as) {
            Err(error) => error,
            Ok(_) => unreachable!("a sum that is too large is an error"),
        }
    }
}

/// The rows of one owner.
pub struct Dealt {
    assembly: Assembly,
    ranges: Ranges,
    first: u32,
}

/// Rows as they were dealt.
pub struct DealtRows {
    /// With the columns of the whole matrix.
    pub matrix: Csr,
    /// Entries of the file that were added to earlier ones of the same place.
    pub summed: usize,
    /// Row and column, from 0, of a sum that is not finite.
    pub too_large: Option<[u32; 2]>,
}

impl Dealt {
    /// No entries yet, of `rows` of a matrix with so many columns.
    ///
    /// # Errors
    /// Without memory.
    pub fn new(rows: Range<usize>, cols: usize, mirrored: bool) -> Result<Self> {
        let (first, count) = (rows.start as u32, rows.len());
        // many ranges: how many entries will come is not known
        let ranges = Ranges::new(count.max(1), 32 * count);
        let size = [count, cols];
        let plan = Plan { size, first, ranges, capacity: 0, mirrored, most: None, many: MANY };
        Ok(Self { assembly: Assembly::new(plan)?, ranges, first })
    }

    /// Takes entries as [`Dealer::read`] deals them.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn take(&mut self, bytes: &[u8]) -> Result<()> {
        let word = |of: &[u8]| u32::from_ne_bytes(of.try_into().expect("four bytes"));
        let entry = |bytes: &[u8]| Entry {
            row: word(&bytes[..4]) - self.first,
            col: word(&bytes[4..8]),
            value: f64::from_ne_bytes(bytes[8..].try_into().expect("eight bytes")),
        };
        let entries = bytes.chunks_exact(OF_AN_ENTRY).map(entry).collect();
        self.assembly.add(Part::new(entries, self.ranges))
    }

    /// Entries so far.
    pub fn entries(&self) -> usize {
        self.assembly.entries()
    }

    /// The rows.
    ///
    /// # Errors
    /// Without memory.
    pub fn finish(self) -> Result<DealtRows> {
        let Assembled::Matrix(matrix, summed) = self.assembly.finish()? else {
            unreachable!("nothing is too much")
        };
        let too_large = infinite(&matrix)
            .filter(|_| summed > 0)
            .map(|[row, column]| [row + self.first, column]);
        Ok(DealtRows { matrix, summed, too_large })
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::matrix::market;

    /// The rows of `owners`, one behind the other.
    fn dealt(path: &Path, read_as: ReadAs, owners: usize, piece: usize) -> (Csr, usize) {
        let mut dealer = Dealer::open(path, read_as, owners).unwrap();
        let [rows, cols] = dealer.size();
        let starts: Vec<usize> = (0..owners).map(|owner| owner * rows / owners).collect();
        let end = |owner: usize| starts.get(owner + 1).copied().unwrap_or(rows);
        let mirrored = dealer.mirrored();
        let all = |owner: usize| Dealt::new(starts[owner]..end(owner), cols, mirrored).unwrap();
        let mut all: Vec<Dealt> = (0..owners).map(all).collect();
        let mut deals = 0;
        let deal = |hands: &mut [Vec<u8>]| {
            assert!(hands.iter().map(Vec::len).sum::<usize>() <= piece);
            deals += 1;
            for (owner, hand) in all.iter_mut().zip(hands) {
                owner.take(hand).unwrap();
                hand.clear();
            }
        };
        dealer.read(&starts, piece, deal).unwrap();
        assert!(deals > 10);
        let (mut row_ptr, mut col_ind, mut values, mut summed) =
            (vec![0], Vec::new(), Vec::new(), 0);
        for owner in all {
            let rows = owner.finish().unwrap();
            assert_eq!(rows.too_large, None);
            summed += rows.summed;
            for i in 0..rows.matrix.rows() {
                let (columns, of_row) = rows.matrix.row(i);
                col_ind.extend_from_slice(columns);
                values.extend_from_slice(of_row);
                row_ptr.push(col_ind.len() as u32);
            }
        }
        (Csr::new(rows, cols, row_ptr, col_ind, values).unwrap(), summed)
    }

    #[test]
    fn rows_of_any_owners_are_those_of_one_reader() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mtx");
        for (symmetry, sorted) in
            [("general", false), ("general", true), ("symmetric", false), ("skew-symmetric", false)]
        {
            let mut text =
                format!("%%MatrixMarket matrix coordinate real {symmetry}\n700 700 9000\n");
            for e in 0..9000_u64 {
                let (i, j) = if sorted {
                    (e * 700 / 9000, e * 104_729 % 699)
                } else {
                    (e * 7919 % 700, e * 104_729 % 699)
                };
                let (i, j) = if symmetry == "general" { (i, j) } else { (i.max(j), i.min(j)) };
                let i = if symmetry == "skew-symmetric" && i == j { i + 1 } else { i };
                // sums that depend on the order of the terms
                _ = writeln!(text, "{} {} {}", i + 1, j + 1, 0.1 + e as f64 * 1e-7);
                if e % 1000 == 0 && e > 0 {
                    text.push('\n');
                }
            }
            std::fs::write(&path, text).unwrap();
            let whole = market::read_matrix(&path, ReadAs::Expanded).unwrap();
            for owners in [1, 3, 7] {
                let (matrix, summed) = dealt(&path, ReadAs::Expanded, owners, 8192);
                assert_eq!(matrix, whole.matrix, "{symmetry} on {owners}");
                assert_eq!(whole.remarks.is_empty(), summed == 0);
                let said = format!("{summed} duplicate ");
                assert!(whole.remarks.iter().all(|remark| remark.starts_with(&said)), "{symmetry}");
            }
        }
    }

    #[test]
    fn sums_beyond_float64_are_found_by_their_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mtx");
        let text =
            "%%MatrixMarket matrix coordinate real general\n3 3 3\n3 1 1e308\n1 1 1\n3 1 1e308\n";
        std::fs::write(&path, text).unwrap();
        let mut owner = Dealt::new(2..3, 3, false).unwrap();
        let mut dealer = Dealer::open(&path, ReadAs::Expanded, 2).unwrap();
        dealer.read(&[0, 2], 1 << 20, |hands| owner.take(&hands[1]).unwrap()).unwrap();
        let place = owner.finish().unwrap().too_large.unwrap();
        assert_eq!(place, [2, 0]);
        let error = Dealer::too_large(&path, ReadAs::Expanded, place);
        assert_eq!(error, market::read_matrix(&path, ReadAs::Expanded).unwrap_err());
    }
}
