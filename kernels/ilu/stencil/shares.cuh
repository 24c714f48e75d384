// Rows of a factorisation that are spread over a group of lanes: which lane has which entries, and what each takes of
// what other rows hand on. All of it is the same for every row and known when the kernel is compiled. See ilu/stencil/long.cu.
#pragma once
#include "ilu/stencil/rows.cuh"

// Lanes that share a row.
constexpr int GROUP = 32 / PATCH;
static_assert(GROUP * PATCH == 32, "every lane has a part of a row");
// Parts of a row: entries of L, and D with U', that a lane has.
constexpr int PARTS_L = (N + GROUP - 1) / GROUP, PARTS_U = (HANDED + GROUP - 1) / GROUP, PARTS = PARTS_L + PARTS_U;
// Numbers that a cell hands on lie in natural order, D first; what follows them is always zero.
constexpr int CELL = (HANDED + 8) / 8 * 8;

// Kinds of lines that have an entry which leads into the box, as bits, for each offset of the march and its opposite:
// the first line of the first plane, its others, first lines of the other planes, all others.
struct KindsOfLines {
    unsigned char lower[N], upper[N];
};
__device__ constexpr KindsOfLines LINES_WITH = {{LOWER_AT}, {UPPER_AT}};
constexpr int EVERY = 15;

// What is the same for all rows, known when the kernel is compiled.
struct Shares {
    // natural order of the offsets; part and lane that have the entry
    unsigned char order[N], part[ENTRIES], lane[ENTRIES];
    // whether offset p changes anything in a part, and the number of U'_p that it takes for a lane there
    bool changes[N][PARTS];
    unsigned char number[N][PARTS][GROUP];
    // last offset that changes the entry at offset p, or -1
    signed char last[N];
    // entry of A in a part of a lane, by its order in a row of A, or -1; whether a part has any
    signed char given_in[PARTS][GROUP];
    bool any_given[PARTS];
    // whether rows at the faces lack entries of a part
    bool lacking[PARTS];
    // where the numbers lie that are handed on, by their order in the march
    unsigned char place[HANDED];
    __device__ constexpr Shares()
        : order(), part(), lane(), changes(), number(), last(), given_in(), any_given(), lacking(), place() {
        for (int p = 0; p < N; ++p) order[p] = (unsigned char)rank(p);
        for (int e = 0; e < ENTRIES; ++e) {
            const int spot = e < N ? order[e] : PARTS_L * GROUP + (e == N ? 0 : N - order[e - N - 1]);
            part[e] = (unsigned char)(spot / GROUP);
            lane[e] = (unsigned char)(spot % GROUP);
        }
        for (int p = 0; p < N; ++p) {
            last[p] = -1;
            place[1 + p] = (unsigned char)(N - order[p]);
            if (LINES_WITH.upper[p] != EVERY) lacking[part[N + 1 + p]] = true;
            for (int m = 0; m < PARTS; ++m)
                for (int g = 0; g < GROUP; ++g) number[p][m][g] = HANDED;
        }
        for (int p = 0; p < N; ++p)
            for (int q = 0; q < N; ++q) {
                const int e = entry_at(offset(p, 0) - offset(q, 0), offset(p, 1) - offset(q, 1),
                                       offset(p, 2) - offset(q, 2));
                if (e < 0) continue;
                changes[p][part[e]] = true;
                number[p][part[e]][lane[e]] = place[1 + q];
                if (e < N) last[e] = (signed char)p;
            }
        for (int m = 0; m < PARTS; ++m)
            for (int g = 0; g < GROUP; ++g) given_in[m][g] = -1;
        for (int g = 0; g < OF_A; ++g) {
            given_in[part[given(g)]][lane[given(g)]] = (signed char)g;
            any_given[part[given(g)]] = true;
        }
    }
};
__device__ constexpr Shares SHARES{};

static_assert(OF_A <= 32 && N <= 32, "a row has more entries than a word has bits");
// Entries of A, by their order, at dx columns' distance along x.
__device__ constexpr u32 given_at(int dx) {
    u32 bits = 0;
    for (int g = 0; g < OF_A; ++g)
        if (step(given(g), 0) == dx) bits |= 1u << g;
    return bits;
}
