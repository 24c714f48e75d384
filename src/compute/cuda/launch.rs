//! Kernel launches, and the structs that kernels take by value.

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DeviceRepr};

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
        // SAFETY: the launchers of this module give each kernel the parameters it declares, and
        // buffers of the sizes it works on; parity tests run under compute-sanitizer
        #[allow(unsafe_code, reason = "launches of kernels")]
        let launched = unsafe { builder.$how($config) };
        launched.map(|_| ())
    }};
}
pub(crate) use launch;

/// Declares structs that kernels take by value.
macro_rules! by_value {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Default)]
        pub(crate) struct $name { $(pub(crate) $field: $type),* }

        // SAFETY: plain numbers in C layout, as the kernels declare them
        #[allow(unsafe_code, reason = "parameters of kernels")]
        unsafe impl DeviceRepr for $name {}
    )*};
}

/// Vectors that one pass over a basis takes.
pub(crate) const MOST: usize = 32;

by_value! {
    /// `Coef` of `common.cuh`.
    CoefArg { value: f64, kind: u32, a: u16, b: u16 }
    /// `Basis` of `vectors/operations.cu`.
    Basis { v: [Address; MOST] }
    /// `Numbers` of `vectors/operations.cu`.
    Numbers { v: [f64; MOST] }
    /// `Meeting` of `vectors/operations.cu`.
    Meeting { partials: Address, arrived: Address }
    /// `Slots` of `vectors/operations.cu`.
    SlotList { at: [u16; 8] }
    /// `Step` of `vectors/operations.cu`.
    StepArg { a: CoefArg, b: CoefArg, out: u32, operation: u32 }
    /// `Steps` of `vectors/operations.cu`.
    StepsArg { at: [StepArg; MOST_STEPS] }
    /// `Pattern` of `ilu/rows.cu`.
    PatternArg { row_ptr: Address, col_ind: Address }
    /// `Factors` of `ilu/rows.cu`.
    FactorsArg { lower: Address, diagonal: Address, upper: Address }
    /// `Matrix` of `ilu/rows.cu`.
    MatrixArg { val: Address, place: Address, absent: Address, n_absent: u32, shift: f64 }
    /// `Rows` of `ilu/rows.cu`.
    RowsArg { task: Address, count: u32, held: u32, listed: u32, spill: Address }
    /// `Slices` of `sptrsv/slices.cu`.
    SlicesArg { order: Address, first: Address, start: Address, length: Address, col_ind: Address, val: Address, gate: Address }
    /// `Tiles` of `sptrsv/wavefront/geometry.cuh`.
    TilesArg { nx: i32, ny: i32, nz: i32, tiles: i32, across: i32, steps: i32, tile: Address, warp: Address, place: Address }
    /// `Box` of `sptrsv/wavefront.cu`.
    BoxArg { tiles: TilesArg, val: Address, exchange: Address, other: Address }
    /// `Matrix` of `ilu/stencil/rows.cuh`.
    MarchedArg { row_ptr: Address, val: Address, shift: f64 }
    /// `Factors` of `ilu/stencil/entries.cu`.
    RecordsArg { lower: Address, upper: Address, error: Address }
    /// `Factors` of `ilu/stencil/blocks.cu` and of `ilu/stencil/long.cu`.
    StencilBlocksArg { lower_pattern: PatternArg, upper_pattern: PatternArg, lower: Address, diagonal: Address, upper: Address, exchange: Address, other: Address, error: Address }
    /// `Parts` of `sptrsv/parts.cuh`.
    PartsArg { slices: Address, order: Address, col_ind: Address, val: Address, segments: Address, parts: Address, count: u32, region: u32, slots: u32 }
    /// `Grid` of `fgbilu/grid.cuh`.
    GridArg { ni: u32, nj: u32, nk: u32, order: Address, block: Address, d: Address }
    /// `Sparse` of `setup/sparse.cuh`.
    SparseArg { rows: u32, row_ptr: Address, col_ind: Address, val: Address }
    /// `Rest` of `spmv/formats.cuh`.
    RestArg { near: Address, row: Address, start: Address, col_ind: Address, val: Address, own: Address, owns: u32 }
    /// `Hyb` of `spmv/formats.cuh`.
    HybArg { rows: u32, width: u32, col_ind: Address, val: Address, rest: RestArg }
    /// `Dia` of `spmv/formats.cuh`.
    DiaArg { rows: u32, count: u32, offsets: Address, val: Address, rest: RestArg }
    /// `Sell` of `spmv/formats.cuh`.
    SellArg { rows: u32, slice_ptr: Address, order: Address, col_ind: Address, val: Address }
    /// `Wells` of `spmv/formats.cuh`.
    WellsArg { count: u32, near: Address, well: Address, row: Address, column: Address, diagonal: Address }
    /// `Bdia` of `spmv/formats.cuh`.
    BdiaArg { rows: u32, at: [i32; 7], val: Address, wells: WellsArg }
    /// `Blocks` of `spmv/formats.cuh`.
    BlocksArg { rows: u32, row_ptr: Address, col_ind: Address, val: Address }
    /// `Rules` of `krylov/in_kernel.cuh`.
    RulesArg { rtol: f64, diverged: f64, stall: f64, most: u32, before: u32, cycle: u32, stall_cycles: u32 }
    /// `History` of `krylov/in_kernel.cuh`.
    HistoryArg { norm: Address, broken: Address, cycles: Address }
    /// `Inverse` of `krylov/in_kernel.cuh` for triangular factors.
    FactorsOfKernelArg { lower: PartsArg, upper: PartsArg, diagonal: Address, right: Address, y: Address }
    /// `Solve` of `krylov/bicgstab.cu`.
    BicgstabArg { starts: Address, b: Address, x: Address, hat: [Address; 3], home: Address, n: u64, on_chip: u32, longest: u32, parts: Address, fresh: u32, rules: RulesArg, history: HistoryArg, report: Address }
    /// `Solve` of `krylov/qmr.cu`.
    QmrArg { starts: Address, b: Address, x: Address, p: Address, q: Address, home: Address, n: u64, on_chip: u32, longest: u32, inverse: Address, transposed_inverse: Address, parts: Address, fresh: u32, left: u32, rules: RulesArg, history: HistoryArg, report: Address }
    /// `Slices` of `sptrsv/colours/slices.cu`.
    ColourSlicesArg { row: Address, first: Address, start: Address, shape: Address, columns: Address, index: Address, val: Address }
    /// `Sweep` of `sptrsv/colours/slices.cu`.
    ColourSweepArg { right: Address, x: Address, diagonal: Address, to: Address, out: Address, right_placed: u32, x_placed: u32 }
    /// `Stream` of `sptrsv/colours/stream.cu`.
    ColourStreamArg { chunks: Address, starts: Address, arrivals: Address, colours: u32, stages: u32, stage_bytes: u32, stays: u32, r: Address, z: Address }
    /// `Rows` of `sptrsv/colours/stream.cu`.
    ColourRowsArg { place: Address, factor_row: Address, first: Address }
    /// `Columns` of `sptrsv/colours/stream.cu`.
    ColourColumnsArg { shape: Address, columns: Address, index: Address }
    /// `Factor` of `sptrsv/colours/stream.cu`.
    ColourFactorArg { row_ptr: Address, values: Address }
    /// `Boxes` of `sptrsv/colours/boxes.cu`.
    ColourBoxesArg { part: Address, steps: Address, rows: Address, val: Address, lists: Address, events: Address, from: Address, to: Address, launches: Address, published: Address, line: u32, plane: u32, pitch: u32, layer: u32, origin: u32, cells: u32, most_steps: u32, listed: u32, handovers: u32, pad: u32, r: Address, z: Address }
    /// `Layout` of `sptrsv/colours/boxes.cu`.
    BoxLayoutArg { listed: Address, distances: Address, starts: Address, cell: Address, row: Address, colours: u32, pad: u32 }
    /// `Triangle` of `sptrsv/colours/boxes.cu` and of `sptrsv/pencils.cu`.
    TriangleArg { row_ptr: Address, col_ind: Address, val: Address }
    /// `Pencils` of `sptrsv/pencils.cuh`.
    PencilsArg { nx: i32, ny: i32, nz: i32, across: i32, down: i32, turns: i32, lower: Address, upper: Address, diagonal: Address, exchange: Address, launches: Address, r: Address, z: Address }
    /// `Solve` of `sptrsv/slices.cu`.
    SolveArg { r: Address, diagonal: Address, y: Address, z: Address }
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
