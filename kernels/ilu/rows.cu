// Block ILU on a filled pattern: factors L D U' (Yang et al., Algorithms 4 and 5, equation 5).
// L holds strictly lower blocks, U' = D^-1 U strictly upper ones, D the inverses of the diagonal blocks.
//
// Row i, for p < i in the row: A_ij -= A_ip U'_pj for j > p. Then D_i = A_ii^-1, U'_ij = D_i A_ij and
// L_ip = A_ip D_p. Other rows need U'_i alone, so L, for which D_p is needed, comes last.
//
// A row is worked on by a team: a part of a warp, a warp or a thread block. It is held in shared memory
// from A's values to the finished blocks, which are written once. Teams take rows level by level, so
// that a row depends only on rows begun before; all thread blocks must be resident. U' and D are filled
// with ABSENT beforehand: the values are their own flags.
#include "common.cuh"
#include "ilu/jobs.cuh"
#include "ilu/rows.cuh"
#include "ilu/tasks.cuh"

#if SEARCHED
#include "ilu/large.cuh"
#elif BS == 1
#include "ilu/point.cuh"
#else
#include "ilu/blocks.cuh"
#endif

// How `factor` is launched: threads, rows in work at a time, rows of a group, numbers of a block in
// work, bytes of shared memory that a thread block needs besides, updates of a job.
extern "C" __constant__ u32 factor_launch[6] = {THREADS, TEAMS, TEAMS_OF_WARP, BLOCK, (SCRATCH + 15) / 16 * 16, WIDTH};
