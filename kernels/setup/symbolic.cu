// The symbolic phase of block ILU(k) by the level rule `min`, schedules of its factors, and matrices in blocks.
//
// The level of (i, j) is s where the shortest path from i to j through vertices below both has s + 1 edges (Rose
// and Tarjan 1978; Hysom and Pothen 2002). Its largest inner vertex p cuts it in two such paths: (i, p) is an entry
// of L of a level t and (p, j) one of U of level s - 1 - t. So the entries of level s follow from those of lower
// levels, and all rows are found at the same time: one pass for each level.
#include "setup/scan.cuh"

constexpr u32 WARPS = THREADS / WARP;

// Places in the table of a group, and columns that it holds: half of them.
constexpr u32 SLOTS = 16 * LANES, MOST = 8 * LANES;

// Rows of a part of a pattern: columns from begin[i] to end[i].
struct Half {
    const u32* begin;
    const u32* end;
    const u32* columns;
};

// What lies left and right of the diagonal.
struct Level {
    Half lower, upper;
};

// Rows that are looked for: those of the level above `levels`, with all lower levels if `whole`, or these alone
// unless it `fills`. Without levels the block columns of a matrix by scalar rows, which go to `lower`.
struct Search {
    u32 rows, levels, fills, whole;
    const Level* level;
    u32 scalar_rows, block_size;
    const u32* row_ptr;
    const u32* col_ind;
    // lengths, found while `lower` is null, and starts, which are needed from then on
    u32* lower_length;
    u32* upper_length;
    const u32* lower_ptr;
    const u32* upper_ptr;
    u32* lower;
    u32* upper;
    // 1 for each row with a diagonal
    u32* diagonal;
    // how many rows are too long for a table, and which
    u32* longer;

    // Columns below it are those of `lower`.
    __device__ u32 split(u32 i) const { return levels ? i : NONE; }

    __device__ void tell(u32 i, u32 below, u32 all) const {
        lower_length[i] = below;
        if (upper_length) upper_length[i] = all - below;
    }

    // Column j is number `at` of its row.
    __device__ void put(u32 i, u32 at, u32 j) const {
        const u32 start = lower_ptr[i], below = lower_ptr[i + 1] - start;
        if (at < below) lower[start + at] = j;
        else upper[upper_ptr[i] + at - below] = j;
    }
};

// What a thread has of lists that many work on: every `lists`-th from `list` on, of which every `entries`-th entry.
struct Share {
    u32 list, lists, entry, entries;
};

// Gives `set` the columns of row i: first those of lower levels, then, after `sync`, those that may be new.
template <typename Set, typename Sync>
__device__ void gather(const Search& s, u32 i, const Share& share, Set& set, Sync sync) {
    if (s.levels == 0) {
        const u32 first = i * s.block_size, end = min(first + s.block_size, s.scalar_rows);
        for (u32 row = first + share.list; row < end && !set.full(); row += share.lists)
            for (u32 e = s.row_ptr[row] + share.entry; e < s.row_ptr[row + 1]; e += share.entries)
                set.add(s.col_ind[e] / s.block_size, true);
        // the padding of the last block
        if (first + s.block_size > s.scalar_rows && share.list + share.entry == 0) set.add(i, true);
        return;
    }
    const u32 own = share.list * share.entries + share.entry, all = share.lists * share.entries;
    for (u32 t = 0; t < s.levels; ++t) {
        const Level level = s.level[t];
        for (u32 e = level.lower.begin[i] + own; e < level.lower.end[i]; e += all)
            set.add(level.lower.columns[e], s.whole);
        for (u32 e = level.upper.begin[i] + own; e < level.upper.end[i]; e += all)
            set.add(level.upper.columns[e], s.whole);
    }
    sync();
    for (u32 t = 0; s.fills && t < s.levels; ++t) {
        const Half of_i = s.level[t].lower, of_p = s.level[s.levels - 1 - t].upper;
        for (u32 e = of_i.begin[i] + share.list; e < of_i.end[i] && !set.full(); e += share.lists) {
            const u32 p = of_i.columns[e], end = of_p.end[p];
            for (u32 f = of_p.begin[p] + share.entry; f < end; f += share.entries) {
                const u32 j = of_p.columns[f];
                if (j == i) s.diagonal[i] = 1;
                else set.add(j, true);
            }
        }
    }
}

// The columns of a row in shared memory: a hash table, and a list of those that are wanted.
struct Table {
    u32* slot;
    u32* list;
    // columns, wanted ones, and those of them below `split`
    u32* count;
    u32 split;

    // Each thread adds one column at most after the last that there is room for.
    __device__ bool full() const { return *(const volatile u32*)count > MOST; }

    __device__ bool enter(u32 j) {
        for (u32 at = j * 2654435769u >> 16;; ++at) {
            const u32 there = atomicCAS(&slot[at % SLOTS], NONE, j);
            if (there == NONE) return true;
            if (there == j) return false;
        }
    }

    __device__ void add(u32 j, bool wanted) {
        if (full() || !enter(j)) return;
        atomicAdd(&count[0], 1);
        if (!wanted) return;
        const u32 at = atomicAdd(&count[1], 1);
        if (at < MOST) list[at] = j;
        if (j < split) atomicAdd(&count[2], 1);
    }
};

// Sorts the `count` numbers of a list with room for MOST: Batcher's bitonic merges of a power of two.
__device__ void sort(const Group& g, u32* list, u32 count) {
    u32 size = 1;
    while (size < count) size *= 2;
    for (u32 at = count + g.lane; at < size; at += LANES) list[at] = NONE;
    g.sync();
    for (u32 run = 2; run <= size; run *= 2)
        for (u32 apart = run / 2; apart; apart /= 2) {
            for (u32 e = g.lane; e < size / 2; e += LANES) {
                const u32 a = 2 * e - e % apart, b = a + apart;
                const u32 of_a = list[a], of_b = list[b];
                const bool rises = (a & run) == 0;
                if ((of_a > of_b) == rises) list[a] = of_b, list[b] = of_a;
            }
            g.sync();
        }
}

// Lengths of rows or the rows, columns in increasing order; those that are too long are listed instead.
extern "C" __global__ void __launch_bounds__(THREADS, 6) find_rows(Search s) {
    __shared__ u32 slots[THREADS / LANES][SLOTS], lists[THREADS / LANES][MOST], counts[THREADS / LANES][3];
    const Group g;
    const u32 i = g.number, own = threadIdx.x / LANES;
    if (i >= s.rows) return;
    Table table{slots[own], lists[own], counts[own], s.split(i)};
    for (u32 at = g.lane; at < SLOTS; at += LANES) table.slot[at] = NONE;
    if (g.lane < 3) table.count[g.lane] = 0;
    g.sync();
    const Share share = s.levels ? Share{g.lane, LANES, 0, 1} : Share{0, 1, g.lane, LANES};
    gather(s, i, share, table, [&] { g.sync(); });
    g.sync();
    const u32 all = table.count[1];
    if (table.full()) {
        if (!s.lower && g.lane == 0) s.longer[1 + atomicAdd(s.longer, 1)] = i;
        return;
    }
    if (!s.lower) {
        if (g.lane == 0) s.tell(i, table.count[2], all);
        return;
    }
    sort(g, table.list, all);
    for (u32 at = g.lane; at < all; at += LANES) s.put(i, at, table.list[at]);
}

// The columns of a row as bits in memory, those of no interest apart.
struct Bits {
    u32* known;
    u32* wanted;
    // words with bits
    u32 first, last;

    __device__ bool full() const { return false; }

    __device__ void add(u32 j, bool is_wanted) {
        const u32 word = j / 32, bit = 1u << j % 32;
        first = min(first, word);
        last = max(last, word);
        if (!is_wanted) atomicOr(&known[word], bit);
        else if (!(known[word] & bit)) atomicOr(&wanted[word], bit);
    }
};

// The same for the rows that were listed, with a thread block and twice `words` zeros in `bits` for each.
extern "C" __global__ void __launch_bounds__(THREADS) find_long_rows(Search s, u32 count, u32 words, u32* bits) {
    __shared__ u32 first_word, last_word;
    u32 *known = bits + (size_t)blockIdx.x * 2 * words, *wanted = known + words;
    for (u32 number = blockIdx.x; number < count; number += gridDim.x) {
        const u32 i = s.longer[1 + number], split = s.split(i);
        if (threadIdx.x == 0) first_word = NONE, last_word = 0;
        __syncthreads();
        Bits set{known, wanted, NONE, 0};
        const Share share{threadIdx.x / WARP, WARPS, threadIdx.x % WARP, WARP};
        gather(s, i, share, set, [] { __syncthreads(); });
        if (set.first != NONE) atomicMin(&first_word, set.first), atomicMax(&last_word, set.last);
        __syncthreads();
        // the first thread begins the next row while others may be here
        const u32 last = last_word;
        // columns before, and in the upper half those of them below `split`
        u64 start = 0;
        for (u32 words_before = first_word; words_before <= last; words_before += THREADS) {
            const u32 word = words_before + threadIdx.x;
            u32 left = word <= last ? wanted[word] : 0;
            const u32 mask = word < split / 32 ? FULL : word == split / 32 ? (1u << split % 32) - 1 : 0;
            u64 all;
            const u64 at = start + before((u64)__popc(left & mask) << 32 | __popc(left), all);
            start += all;
            if (s.lower)
                for (u32 next = (u32)at; left; left &= left - 1) s.put(i, next++, 32 * word + __ffs(left) - 1);
            if (word <= last) known[word] = wanted[word] = 0;
        }
        if (!s.lower && threadIdx.x == 0) s.tell(i, (u32)(start >> 32), (u32)start);
    }
}

// Where the part of each row below the diagonal ends and that above begins, and whether there is a diagonal.
extern "C" __global__ void __launch_bounds__(THREADS)
cut_rows(u32 rows, const u32* __restrict__ row_ptr, const u32* __restrict__ col_ind, u32* __restrict__ lower_end,
         u32* __restrict__ upper_begin, u32* __restrict__ diagonal) {
    const u32 i = thread();
    if (i >= rows) return;
    const u32 end = row_ptr[i + 1];
    u32 from = row_ptr[i], to = end;
    while (from < to) {
        const u32 middle = from + (to - from) / 2;
        if (col_ind[middle] < i) from = middle + 1;
        else to = middle;
    }
    const u32 there = from < end && col_ind[from] == i;
    lower_end[i] = from;
    upper_begin[i] = from + there;
    diagonal[i] = there;
}

// Rows without a diagonal; `start` counts the diagonals before each row.
extern "C" __global__ void __launch_bounds__(THREADS)
list_without(u32 rows, const u32* __restrict__ diagonal, const u32* __restrict__ start, u32* __restrict__ list) {
    const u32 i = thread();
    if (i < rows && !diagonal[i]) list[i - start[i]] = i;
}

// Entries of each row of a box, whose cell of a small box has a row that is alike, from `start` on.
extern "C" __global__ void __launch_bounds__(THREADS)
box_lengths(u32 rows, const unsigned short* __restrict__ cell, const u32* __restrict__ start, u32* __restrict__ length) {
    const u32 i = thread();
    if (i < rows) length[i] = start[cell[i] + 1] - start[cell[i]];
}

// Their columns: `apart` has the distances from a row to them.
extern "C" __global__ void __launch_bounds__(THREADS)
box_columns(u32 rows, const unsigned short* __restrict__ cell, const u32* __restrict__ start, const int* __restrict__ apart,
            const u32* __restrict__ row_ptr, u32* __restrict__ columns) {
    const u32 i = thread();
    if (i >= rows) return;
    const u32 first = start[cell[i]], length = start[cell[i] + 1] - first, to = row_ptr[i];
    for (u32 e = 0; e < length; ++e) columns[to + e] = i + apart[first + e];
}

// Gives the thread block its number in the order of the solve: blocks take numbers as they begin, so that none waits for
// one that has not. `taken` is 0; `most`, of the block, becomes 0.
__device__ inline void take_block(u32* taken, u32& block, u32& most) {
    if (threadIdx.x == 0) block = atomicAdd(taken, 1), most = 0;
    __syncthreads();
}

// Raises the number of levels to that of the block.
__device__ inline void raise_levels(const u32& most, u32* levels) {
    __syncthreads();
    if (threadIdx.x == 0) atomicMax(levels, most);
}

// Threads that look at what a row needs, and numbers that each of them holds. More threads a row keep fewer rows in
// work, and a matrix in natural order is then gone through window by window.
constexpr u32 LOOKING = 4, HELD = 4;

// Level of each row in a solve, one above the highest that it needs, or `crossing` above one of another part, where
// there are parts; a level that is not there yet is NONE. Rows of a warp may need each other.
extern "C" __global__ void __launch_bounds__(THREADS)
find_levels(u32 rows, const u32* __restrict__ row_ptr, const u32* __restrict__ col_ind, u32 backward,
            const u32* __restrict__ part, u32 crossing, u32* level, u32* taken, u32* levels) {
    __shared__ u32 block, most;
    take_block(taken, block, most);
    const u32 lane = threadIdx.x % LOOKING, number = block * (THREADS / LOOKING) + threadIdx.x / LOOKING;
    const u32 looking = ((1u << LOOKING) - 1) << threadIdx.x % WARP / LOOKING * LOOKING;
    const u32 i = number >= rows ? rows : backward ? rows - 1 - number : number;
    const u32 begin = i < rows ? row_ptr[i] : 0, length = i < rows ? row_ptr[i + 1] - begin : 0;
    const u32 own_part = part && i < rows ? part[i] : 0;
    u32 own = 0, next = lane, row[HELD], steps[HELD];
#pragma unroll
    for (u32 h = 0; h < HELD; ++h) row[h] = NONE, steps[h] = 0;
    bool waits = false, done = i >= rows;
    do {
        // the nearest rows are done last: they come last
        if (!waits)
#pragma unroll
            for (u32 h = 0; h < HELD; ++h, next += LOOKING)
                if (next < length) {
                    row[h] = col_ind[begin + (backward ? length - 1 - next : next)];
                    steps[h] = part && part[row[h]] != own_part ? crossing : 1;
                }
        u32 needed[HELD];
#pragma unroll
        for (u32 h = 0; h < HELD; ++h) needed[h] = row[h] != NONE ? load_relaxed(&level[row[h]]) : 0;
        waits = false;
#pragma unroll
        for (u32 h = 0; h < HELD; ++h) {
            if (needed[h] == NONE) waits = true;
            else if (row[h] != NONE) own = max(own, needed[h] + steps[h]), row[h] = NONE;
        }
        const bool more = !waits && next < length;
        const u32 left = __ballot_sync(FULL, waits || more) & looking;
        if (!left && !done) {
            for (u32 offset = LOOKING / 2; offset; offset /= 2)
                own = max(own, __shfl_xor_sync(looking, own, offset));
            if (lane == 0) {
                store_relaxed(&level[i], own);
                atomicMax(&most, own + 1);
            }
            done = true;
        }
        // rows that wait for much do not keep memory from the others
        const bool soon = __any_sync(FULL, left && __popc(left) <= LOOKING / 2);
        if (!__any_sync(FULL, more)) __nanosleep(soon ? 20 : 300);
    } while (__any_sync(FULL, !done));
    raise_levels(most, levels);
}

// The same of lines of `length` rows, each of which but the first needs the one before it, so that what else a row needs
// of its line is there by then. A warp has a line, which makes it wait for other lines alone.
extern "C" __global__ void __launch_bounds__(THREADS)
find_levels_of_lines(u32 rows, u32 length, const u32* __restrict__ row_ptr, const u32* __restrict__ col_ind, u32 backward,
                     const u32* __restrict__ part, u32 crossing, u32* level, u32* taken, u32* levels) {
    __shared__ u32 block, most;
    take_block(taken, block, most);
    const u32 lane = threadIdx.x % WARP, line = block * WARPS + threadIdx.x / WARP;
    const u32 begin = line < rows / length ? line * length : rows, end = begin < rows ? begin + length : rows;
    int last = 0;
    for (u32 from = begin; from < end; from += WARP) {
        const u32 place = from + lane, i = backward ? rows - 1 - place : place;
        // what the row needs of other lines, and steps after the row before
        int own = 0, steps = 0;
        if (place < end) {
            const u32 own_part = part ? part[i] : 0, first = row_ptr[i], past = row_ptr[i + 1];
            if (place > begin) steps = part && part[backward ? i + 1 : i - 1] != own_part ? crossing : 1;
            for (u32 n = 0; first + n < past; n += EACH) {
                bool there;
                do {
                    there = true;
#pragma unroll
                    for (u32 e = n; e < n + EACH; ++e) {
                        if (first + e >= past) break;
                        const u32 column = col_ind[backward ? past - 1 - e : first + e];
                        if ((backward ? rows - 1 - column : column) >= begin) continue;
                        const u32 needed = load_relaxed(&level[column]);
                        if (needed == NONE) there = false;
                        else own = max(own, (int)(needed + (part && part[column] != own_part ? crossing : 1)));
                    }
                } while (!there);
            }
        }
        __syncwarp();
        // the later of that and of what follows from the rows before
        for (u32 offset = 1; offset < WARP; offset *= 2) {
            const int before = __shfl_up_sync(FULL, own, offset), more = __shfl_up_sync(FULL, steps, offset);
            if (lane >= offset) own = max(own, before + steps), steps += more;
        }
        if (from > begin) own = max(own, last + steps);
        if (place < end) store_relaxed(&level[i], (u32)own);
        last = __shfl_sync(FULL, own, WARP - 1);
    }
    if (begin < rows && lane == 0) atomicMax(&most, (u32)last + 1);
    raise_levels(most, levels);
}

// Numbers of 8 bits by which lists are sorted, the lowest first.
constexpr u32 DIGITS = 256;
static_assert(DIGITS == THREADS, "a thread for each digit");

// When each row of a box is solved for in a march that begins each line of `length` rows at its own step.
extern "C" __global__ void __launch_bounds__(THREADS)
find_steps_of_march(u32 rows, u32 length, const u32* __restrict__ first, u32* __restrict__ time) {
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i < rows) time[i] = first[i / length] + i % length;
}

// Rows step by step, where `start` says that each begins, to where `to` says.
extern "C" __global__ void __launch_bounds__(THREADS)
spread_steps(u32 rows, const u32* __restrict__ order, const u32* __restrict__ time, const u32* __restrict__ start,
             const u32* __restrict__ to, u32* __restrict__ spread) {
    const u32 at = blockIdx.x * THREADS + threadIdx.x;
    if (at >= rows) return;
    const u32 i = order[at], step = time[i];
    spread[to[step] + at - start[step]] = i;
}

__device__ inline u32 listed(const u32* order, u32 at) { return order ? order[at] : at; }

// How often each digit occurs in each part of a list, digit by digit. Without `order` the list is 0, 1, 2 and so on.
extern "C" __global__ void __launch_bounds__(THREADS)
count_digits(u32 n, const u32* __restrict__ key, const u32* __restrict__ order, u32 shift, u32* __restrict__ count) {
    __shared__ u32 of_digit[DIGITS];
    of_digit[threadIdx.x] = 0;
    __syncthreads();
    for (u32 e = 0; e < EACH; ++e) {
        const u32 at = blockIdx.x * PART + e * THREADS + threadIdx.x;
        if (at < n) atomicAdd(&of_digit[key[listed(order, at)] >> shift & 255], 1);
    }
    __syncthreads();
    count[threadIdx.x * gridDim.x + blockIdx.x] = of_digit[threadIdx.x];
}

// Moves the list to where `start` says that the digits of each part begin; the order among equals is kept.
extern "C" __global__ void __launch_bounds__(THREADS)
move_by_digits(u32 n, const u32* __restrict__ key, const u32* __restrict__ order, u32 shift,
               const u32* __restrict__ start, u32* __restrict__ moved) {
    __shared__ u32 of_warp[WARPS][DIGITS];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    u32 next = start[threadIdx.x * gridDim.x + blockIdx.x];
    for (u32 e = 0; e < EACH; ++e) {
        for (u32 w = 0; w < WARPS; ++w) of_warp[w][threadIdx.x] = 0;
        __syncthreads();
        const u32 at = blockIdx.x * PART + e * THREADS + threadIdx.x, item = at < n ? listed(order, at) : NONE;
        const u32 digit = at < n ? key[item] >> shift & 255 : NONE;
        const u32 same = __match_any_sync(FULL, digit), rank = __popc(same & ((1u << lane) - 1));
        if (at < n && rank == 0) of_warp[warp][digit] = __popc(same);
        __syncthreads();
        for (u32 w = 0; w < WARPS; ++w) {
            const u32 count = of_warp[w][threadIdx.x];
            of_warp[w][threadIdx.x] = next;
            next += count;
        }
        __syncthreads();
        if (at < n) moved[of_warp[warp][digit] + rank] = item;
        __syncthreads();
    }
}

// The numbers of a matrix by scalar rows in their places in blocks, column by column, which are zero before.
extern "C" __global__ void __launch_bounds__(THREADS)
fill_blocks(Sparse a, u32 block_size, const u32* __restrict__ row_ptr, const u32* __restrict__ col_ind,
            double* __restrict__ val) {
    const Group g;
    if (g.number >= a.rows) return;
    const u32 i = g.number / block_size, within = g.number % block_size;
    for (u32 e = a.row_ptr[g.number] + g.lane; e < a.row_ptr[g.number + 1]; e += LANES) {
        const u32 j = a.col_ind[e], block = find(col_ind, row_ptr[i], row_ptr[i + 1], j / block_size);
        val[((size_t)block * block_size + j % block_size) * block_size + within] = a.val[e];
    }
}
