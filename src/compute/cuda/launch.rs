//! Kernel launches, and the structs that kernels take by value.

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};

use super::layout::shared;
use crate::compute::scalar::{MOST_STEPS, Operation};
use crate::compute::{Coef, Slot, Step};

/// Address on the device; 0 is null.
pub(crate) type Address = u64;

/// Address of a buffer. With one stream and no event tracking, order on the stream is all the
/// protection it needs.
pub(crate) fn address<T>(buffer: &CudaSlice<T>) -> Address {
    let stream: &CudaStream = buffer.stream();
    buffer.device_ptr(stream).0
}

/// Launches `kernel` with `arguments` of exactly the types of its parameters; buffers are given as
/// `CudaSlice` or by their [`address`].
macro_rules! launch {
    ($device:expr, $kernel:expr, $config:expr; $($argument:expr),* $(,)?) => {
        $crate::compute::cuda::launch::launch!(@ launch $device, $kernel, $config; $($argument),*)
    };
    (cooperative $device:expr, $kernel:expr, $config:expr; $($argument:expr),* $(,)?) => {
        $crate::compute::cuda::launch::launch!(
            @ launch_cooperative $device, $kernel, $config; $($argument),*
        )
    };
    (@ $how:ident $device:expr, $kernel:expr, $config:expr; $($argument:expr),*) => {{
        use cudarc::driver::PushKernelArg as _;
        let mut builder = $device.stream().launch_builder($kernel);
        $(
            let argument = &$argument;
            builder.arg(argument);
        )*
        // SAFETY: the launchers of this module give each kernel the parameters it declares, structs as
        // `tests/kernels` compares them, and buffers of the sizes it works on; parity tests run under
        // compute-sanitizer
        #[allow(unsafe_code, reason = "launches of kernels")]
        let launched = unsafe { builder.$how($config) };
        launched.map(|_| ())
    }};
}
pub(crate) use launch;

/// Vectors that one pass over a basis takes.
pub(crate) const MOST: usize = 32;

shared! {
    pub(crate) CoefArg = "Coef" of "common.cuh" { value: f64, kind: u32, a: u16, b: u16 }
    pub(crate) Basis = "Basis" of "vectors/basis.cuh" { v: [Address; MOST] }
    pub(crate) Numbers = "Numbers" of "vectors/basis.cuh" { v: [f64; MOST] }
    pub(crate) Meeting = "Meeting" of "vectors/operations.cu" { partials: Address, arrived: Address }
    pub(crate) SlotList = "Slots" of "vectors/operations.cu" { at: [u16; 8] }
    pub(crate) StepArg = "Step" of "vectors/operations.cu" { a: CoefArg, b: CoefArg, out: u32, operation: u32 }
    pub(crate) StepsArg = "Steps" of "vectors/operations.cu" { at: [StepArg; MOST_STEPS] }
    pub(crate) PatternArg = "Pattern" of "common.cuh" { row_ptr: Address, col_ind: Address }
    pub(crate) FactorsArg = "Factors" of "ilu/rows.cuh" { lower: Address, diagonal: Address, upper: Address }
    pub(crate) MatrixArg = "Matrix" of "ilu/rows.cuh" { val: Address, place: Address, absent: Address, n_absent: u32, shift: f64 }
    pub(crate) RowsArg = "Rows" of "ilu/rows.cuh" { task: Address, count: u32, held: u32, listed: u32, spill: Address }
    pub(crate) SlicesArg = "Slices" of "sptrsv/slices.cu" { order: Address, first: Address, start: Address, length: Address, col_ind: Address, val: Address, gate: Address }
    pub(crate) TilesArg = "Tiles" of "sptrsv/wavefront/geometry.cuh" { nx: i32, ny: i32, nz: i32, tiles: i32, across: i32, steps: i32, tile: Address, warp: Address, place: Address }
    pub(crate) BoxArg = "Box" of "sptrsv/wavefront/tile.cuh" { base: TilesArg, val: Address, exchange: Address, other: Address }
    pub(crate) MarchedArg = "Matrix" of "ilu/stencil/rows.cuh" { row_ptr: Address, val: Address, shift: f64 }
    pub(crate) RecordsArg = "Factors" of "ilu/stencil/entries.cu" { lower: Address, upper: Address, error: Address }
    pub(crate) StencilBlocksArg = "Factors" of "ilu/stencil/exchange.cuh" { lower_pattern: PatternArg, upper_pattern: PatternArg, lower: Address, diagonal: Address, upper: Address, exchange: Address, other: Address, error: Address }
    pub(crate) PartsArg = "Parts" of "sptrsv/parts.cuh" { slices: Address, order: Address, col_ind: Address, val: Address, segments: Address, parts: Address, count: u32, region: u32, slots: u32 }
    pub(crate) GridArg = "Grid" of "fgbilu/grid.cuh" { ni: u32, nj: u32, nk: u32, order: Address, block: Address, d: Address }
    pub(crate) SparseArg = "Sparse" of "setup/sparse.cuh" { rows: u32, row_ptr: Address, col_ind: Address, val: Address }
    pub(crate) RestArg = "Rest" of "spmv/formats.cuh" { near: Address, row: Address, start: Address, col_ind: Address, val: Address, own: Address, owns: u32 }
    pub(crate) HybArg = "Hyb" of "spmv/formats.cuh" { rows: u32, width: u32, col_ind: Address, val: Address, rest: RestArg }
    pub(crate) DiaArg = "Dia" of "spmv/formats.cuh" { rows: u32, count: u32, offsets: Address, val: Address, rest: RestArg }
    pub(crate) SellArg = "Sell" of "spmv/formats.cuh" { rows: u32, slice_ptr: Address, order: Address, col_ind: Address, val: Address }
    pub(crate) WellsArg = "Wells" of "spmv/formats.cuh" { count: u32, near: Address, well: Address, row: Address, column: Address, diagonal: Address }
    pub(crate) BdiaArg = "Bdia" of "spmv/formats.cuh" { rows: u32, at: [i32; 7], val: Address, wells: WellsArg }
    pub(crate) BlocksArg = "Blocks" of "spmv/formats.cuh" { rows: u32, row_ptr: Address, col_ind: Address, val: Address }
    pub(crate) RulesArg = "Rules" of "krylov/in_kernel.cuh" { rtol: f64, diverged: f64, stall: f64, most: u32, before: u32, cycle: u32, stall_cycles: u32 }
    pub(crate) HistoryArg = "History" of "krylov/in_kernel.cuh" { norm: Address, broken: Address, cycles: Address }
    /// With triangular factors.
    pub(crate) FactorsOfKernelArg = "Inverse" of "krylov/in_kernel.cuh" if "PRECOND == 2" { lower: PartsArg, upper: PartsArg, diagonal: Address, right: Address, y: Address }
    pub(crate) BicgstabArg = "Solve" of "krylov/bicgstab.cu" { starts: Address, b: Address, x: Address, hat: [Address; 3], home: Address, n: u64, on_chip: u32, longest: u32, parts: Address, fresh: u32, rules: RulesArg, history: HistoryArg, report: Address }
    pub(crate) QmrArg = "Solve" of "krylov/qmr.cu" { starts: Address, b: Address, x: Address, p: Address, q: Address, home: Address, n: u64, on_chip: u32, longest: u32, inverse: Address, transposed_inverse: Address, parts: Address, fresh: u32, left: u32, rules: RulesArg, history: HistoryArg, report: Address }
    pub(crate) ColourSlicesArg = "Slices" of "sptrsv/colours/slices.cu" { row: Address, first: Address, start: Address, shape: Address, columns: Address, index: Address, val: Address }
    pub(crate) ColourSweepArg = "Sweep" of "sptrsv/colours/slices.cu" { right: Address, x: Address, diagonal: Address, to: Address, out: Address, right_placed: u32, x_placed: u32 }
    pub(crate) ColourStreamArg = "Stream" of "sptrsv/colours/stream.cu" { chunks: Address, starts: Address, arrivals: Address, colours: u32, stages: u32, stage_bytes: u32, stays: u32, r: Address, z: Address }
    pub(crate) ColourRowsArg = "Rows" of "sptrsv/colours/stream.cu" { place: Address, factor_row: Address, first: Address }
    pub(crate) ColourColumnsArg = "Columns" of "sptrsv/colours/stream.cu" { shape: Address, columns: Address, index: Address }
    pub(crate) ColourFactorArg = "Factor" of "sptrsv/colours/stream.cu" { row_ptr: Address, values: Address }
    pub(crate) ColourBoxesArg = "Boxes" of "sptrsv/colours/boxes.cu" { part: Address, steps: Address, rows: Address, val: Address, lists: Address, events: Address, from: Address, to: Address, launches: Address, published: Address, line: u32, plane: u32, pitch: u32, layer: u32, origin: u32, cells: u32, most_steps: u32, listed: u32, handovers: u32, pad: u32, r: Address, z: Address }
    pub(crate) BoxLayoutArg = "Layout" of "sptrsv/colours/boxes.cu" { listed: Address, distances: Address, starts: Address, cell: Address, row: Address, colours: u32, pad: u32 }
    pub(crate) TriangleArg = "Triangle" of "sptrsv/triangle.cuh" { row_ptr: Address, col_ind: Address, val: Address }
    pub(crate) PencilsArg = "Pencils" of "sptrsv/pencils.cuh" { nx: i32, ny: i32, nz: i32, across: i32, down: i32, turns: i32, lower: Address, upper: Address, diagonal: Address, exchange: Address, launches: Address, r: Address, z: Address }
    pub(crate) SolveArg = "Solve" of "sptrsv/slices.cu", "Vectors" of "sptrsv/parts.cuh" { r: Address, diagonal: Address, y: Address, z: Address }
}

impl From<Coef> for CoefArg {
    fn from(c: Coef) -> Self {
        let new = |kind, a: Slot, b: Slot| Self { value: 0.0, kind, a: a.0, b: b.0 };
        match c {
            Coef::Host(value) => Self { value, kind: 0, a: 0, b: 0 },
            Coef::Slot(a) => new(1, a, a),
            Coef::Reciprocal(a) => new(2, a, a),
            Coef::Ratio(a, b) => new(3, a, b),
            Coef::NegRatio(a, b) => new(4, a, b),
        }
    }
}

impl From<&[Step]> for StepsArg {
    fn from(steps: &[Step]) -> Self {
        let mut all = Self::default();
        for (to, from) in all.at.iter_mut().zip(steps) {
            let operation = match from.operation {
                Operation::Sum => 0,
                Operation::Product => 1,
                Operation::Hypot => 2,
            };
            let (a, b) = (from.a.into(), from.b.into());
            *to = StepArg { a, b, out: u32::from(from.out.0), operation };
        }
        all
    }
}

impl From<&[Slot]> for SlotList {
    fn from(slots: &[Slot]) -> Self {
        let mut at = [0; 8];
        for (to, from) in at.iter_mut().zip(slots) {
            *to = from.0;
        }
        Self { at }
    }
}
