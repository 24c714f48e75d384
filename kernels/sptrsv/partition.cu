// Plans of triangular solves in parts (sptrsv/parts.cuh): who solves which rows, in which order, and where each row finds
// its operands. All arrays are those that compute/cuda/sptrsv/partition/host.rs makes.
#include "setup/scan.cuh"
#include "sptrsv/partition.cuh"

// The part of each row; runs of rows that begin at `start` have one each.
extern "C" __global__ void __launch_bounds__(THREADS)
part_of_rows(u32 rows, u32 runs, const u32* __restrict__ start, const u32* __restrict__ of_run, u32* __restrict__ part) {
    const u32 i = thread();
    if (i >= rows) return;
    u32 from = 0, to = runs;
    while (to - from > 1) {
        const u32 middle = from + (to - from) / 2;
        if (start[middle] <= i) from = middle;
        else to = middle;
    }
    part[i] = of_run[from];
}

// How many operands rows find in other parts.
extern "C" __global__ void __launch_bounds__(THREADS)
count_far(u32 rows, const u32* __restrict__ row_ptr, const u32* __restrict__ col_ind, const u32* __restrict__ part,
          u32* far) {
    const u32 i = thread();
    u64 own = 0, all;
    for (u32 e = i < rows ? row_ptr[i] : 0; i < rows && e < row_ptr[i + 1]; ++e) own += part[col_ind[e]] != part[i];
    before(own, all);
    if (threadIdx.x == 0) atomicAdd(far, (u32)all);
}

// Rows from the last to the first.
extern "C" __global__ void __launch_bounds__(THREADS) turn_rows(u32 rows, u32* __restrict__ turned) {
    const u32 i = thread();
    if (i < rows) turned[i] = rows - 1 - i;
}

// Entries of each row and of the longest.
extern "C" __global__ void __launch_bounds__(THREADS)
find_lengths(u32 rows, const u32* __restrict__ row_ptr, u32* __restrict__ length, u32* longest) {
    __shared__ u32 most;
    if (threadIdx.x == 0) most = 0;
    __syncthreads();
    const u32 i = thread();
    if (i < rows) {
        length[i] = row_ptr[i + 1] - row_ptr[i];
        atomicMax(&most, length[i]);
    }
    __syncthreads();
    if (threadIdx.x == 0) atomicMax(longest, most);
}

// Rows sorted by part, time and length.
struct Sorted {
    u32 rows;
    // Lanes of a warp over the rows of a block, those that share a row at least and at most, and blocks of a lane beyond
    // which more do; 0 where they never do.
    u32 lanes, split, most, each;
    const u32* order;
    // of each row
    const u32* part;
    const u32* time;
    const u32* length;

    // Lanes that share row i.
    __device__ u32 sharing(u32 i) const {
        u32 sharing = split;
        if (each)
            while (sharing < most && sharing * each < length[i]) sharing *= 2;
        return sharing;
    }

    // Whether rows may be in one slice.
    __device__ bool alike(u32 i, u32 j) const {
        return part[i] == part[j] && time[i] == time[j] && sharing(i) == sharing(j);
    }
};

// Marks the places where rows are not like those before them.
extern "C" __global__ void __launch_bounds__(THREADS) mark_groups(Sorted s, u32* __restrict__ mark) {
    const u32 at = thread();
    if (at < s.rows) mark[at] = at == 0 || !s.alike(s.order[at - 1], s.order[at]);
}

// The marked places, of which there are `before[at]` before place `at`, and one past the last place.
extern "C" __global__ void __launch_bounds__(THREADS)
list_marked(u32 n, const u32* __restrict__ mark, const u32* __restrict__ before, u32* __restrict__ list) {
    const u32 at = thread();
    if (at < n && mark[at]) list[before[at]] = at;
    if (at == 0) list[before[n]] = n;
}

// Marks the places where slices begin: as many rows of a group as a warp holds.
extern "C" __global__ void __launch_bounds__(THREADS)
mark_slices(Sorted s, const u32* __restrict__ first, const u32* __restrict__ mark, const u32* __restrict__ before,
            u32* __restrict__ of_slices) {
    const u32 at = thread();
    if (at >= s.rows) return;
    const u32 rows = max(s.lanes / s.sharing(s.order[at]), 1u);
    of_slices[at] = (at - first[before[at] + mark[at] - 1]) % rows == 0;
}

// Slices but for their starts and slots, their blocks and parts. `first` has their first places.
extern "C" __global__ void __launch_bounds__(THREADS)
describe_slices(Sorted s, u32 count, const u32* __restrict__ first, Slice* __restrict__ slices, u32* __restrict__ blocks,
                u32* __restrict__ part) {
    const u32 number = thread();
    if (number >= count) return;
    const u32 from = first[number], rows = first[number + 1] - from;
    const u32 i = s.order[from], longest = s.length[s.order[from + rows - 1]], sharing = s.sharing(i);
    Slice slice;
    slice.first = from;
    slice.start = slice.slot = 0;
    slice.shape = rows | (s.each ? (__ffs(sharing) - 1) << 8 : 0);
    slice.length = (longest + sharing - 1) / sharing;
    slices[number] = slice;
    blocks[number] = slice.length * rows * sharing;
    part[number] = s.part[i];
}

// Blocks of the longest row of each slice, and those of the slice. `first` has their first places.
extern "C" __global__ void __launch_bounds__(THREADS)
measure_slices(Sorted s, u32 count, const u32* __restrict__ first, u32* __restrict__ longest, u32* __restrict__ blocks) {
    const u32 number = thread();
    if (number >= count) return;
    const u32 from = first[number], to = first[number + 1], length = s.length[s.order[to - 1]];
    longest[number] = length;
    blocks[number] = length * (to - from);
}

// Parts that are cut into segments.
struct Cut {
    u32 parts;
    // Slots of a region; 0 when each part is one segment.
    u32 region;
    // First slices of the parts, and one past the last slice.
    const u32* first;
    Slice* slices;
    // First blocks of the slices.
    const u32* start;
    // Segments of each part, which are counted while `segments` is null; then the first of each part.
    u32* count;
    const u32* first_segment;
    // First slices of the segments, and one past the last slice.
    u32* segments;
    // Of each slice in its part.
    u32* segment;
};

// Cuts parts into segments whose rows fit a region, and gives slices their slots and starts. A warp for each part.
extern "C" __global__ void __launch_bounds__(THREADS) cut_segments(Cut c) {
    const u32 part = thread() / WARP, lane = threadIdx.x % WARP;
    if (part >= c.parts) return;
    const u32 begin = c.first[part], end = c.first[part + 1];
    u32 segment = 0, used = 0;
    if (c.segments && lane == 0) {
        c.segments[c.first_segment[part]] = begin;
        if (part + 1 == c.parts) c.segments[c.first_segment[c.parts]] = end;
    }
    for (u32 from = begin; from < end; from += WARP) {
        const u32 own = from + lane, rows_of_own = own < end ? c.slices[own].shape & 0xff : 0;
        u32 of_own = 0, slot = 0;
        for (u32 other = 0; other < WARP && from + other < end; ++other) {
            const u32 rows = __shfl_sync(FULL, rows_of_own, other);
            if (c.region && used + rows > c.region) {
                ++segment;
                used = 0;
                if (c.segments && lane == 0) c.segments[c.first_segment[part] + segment] = from + other;
            }
            if (lane == other) of_own = segment, slot = 1 + segment % REGIONS * c.region + used;
            used += rows;
        }
        if (c.segments && own < end) {
            c.slices[own].slot = slot;
            c.slices[own].start = c.start[own];
            c.segment[own] = of_own;
        }
    }
    if (!c.segments && lane == 0) c.count[part] = segment + 1;
}

// Where a row is held: its part, its segment in it, and its slot.
struct Held {
    u32 part, segment, slot, none;
};

extern "C" __global__ void __launch_bounds__(THREADS)
place_rows(Sorted s, const Slice* __restrict__ slices, const u32* __restrict__ segment, const u32* __restrict__ mark,
           const u32* __restrict__ before, Held* __restrict__ held) {
    const u32 at = thread();
    if (at >= s.rows) return;
    const u32 i = s.order[at], number = before[at] + mark[at] - 1;
    held[i] = Held{s.part[i], segment[number], slices[number].slot + at - slices[number].first, 0};
}

// Where rows find their operands: block n of a row is block n / sharing of its lanes n % sharing. A row ends with its
// block nearest to the diagonal; shorter rows begin with zeros. A warp for each slice.
extern "C" __global__ void __launch_bounds__(THREADS)
fill_columns(Sorted s, u32 count, const Slice* __restrict__ slices, const u32* __restrict__ row_ptr,
             const u32* __restrict__ col_ind, u32 backward, const Held* __restrict__ held, u32* __restrict__ columns) {
    const u32 number = thread() / WARP, lane = threadIdx.x % WARP;
    if (number >= count) return;
    const Slice slice = slices[number];
    const u32 sharing = s.sharing(s.order[slice.first]), groups = (slice.shape & 0xff) * sharing;
    for (u32 word = lane; word < slice.length * groups; word += WARP) {
        const u32 group = word % groups, n = word / groups * sharing + group % sharing;
        const u32 i = s.order[slice.first + group / sharing], begin = row_ptr[i], entries = row_ptr[i + 1] - begin;
        const u32 back = slice.length * sharing - 1 - n;
        u32 column = LOCAL;
        if (back < entries) {
            column = col_ind[begin + (backward ? back : entries - 1 - back)];
            const Held own = held[i], of = held[column];
            if (of.part == own.part && own.segment - of.segment <= REGIONS - 2) column = LOCAL | of.slot;
        }
        columns[slice.start + word] = column;
    }
}
