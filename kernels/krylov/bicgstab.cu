// BiCGStab as one kernel: four barriers an iteration, each with all sums that are known by then, and with triangular
// factors one more behind each of the two solves.
#include "krylov/in_kernel.cuh"

struct Solve {
    // first row of each thread block's range, and the end of the last
    const u32* starts;
    const double* b;
    double* x;
    // M^-1 p of this iteration and the last in turns, and M^-1 s
    double* hat[3];
    // where r, v, p, shadow and t lie that do not fit, and between launches all of them; `n` numbers each
    double* home;
    size_t n;
    // vectors in shared memory, x the last of them, and numbers there for each
    u32 on_chip, longest;
    double* parts;
    // whether the solve begins with this launch
    u32 fresh;
    Rules rules;
    History history;
    Report* report;
};

extern "C" __global__ void __launch_bounds__(THREADS, 1) bicgstab(const __grid_constant__ Matrix a, const __grid_constant__ Inverse m, const __grid_constant__ Solve s) {
    extern __shared__ double chip[];
    const Range range(s.starts);
    const auto home = [&](u32 k) { return k < 5 ? s.home + k * s.n + range.first : s.x + range.first; };
    // the more often a vector is used, the rather it is on the chip
    const auto place = [&](u32 k) { return k < s.on_chip ? chip + k * s.longest : home(k); };
    double *r = place(0), *v = place(1), *p = place(2), *shadow = place(3), *t = place(4), *x = place(5);
    double *hat = s.hat[0], *spare = s.hat[1], *const hat_s = s.hat[2];
    // behind the vectors: values of triangular solves
    double* const slots = chip + (size_t)s.on_chip * s.longest;
    Barrier barrier(s.parts);

    double norm[1] = {0.0}, rho = 0.0, initial = 0.0;
    u32 broken_before = 0;
    if (s.fresh) {
        range.each([&](u32 i) {
            r[i] = shadow[i] = p[i] = s.b[range.first + i];
            x[i] = 0.0;
            norm[0] = fma(r[i], r[i], norm[0]);
        });
    } else {
        rho = s.report->carried[0];
        initial = s.report->initial;
        broken_before = s.report->broken;
        for (u32 k = 0; k < s.on_chip; ++k) range.each([&](u32 i) { chip[k * s.longest + i] = home(k)[i]; });
    }
    precondition(range, m, p, hat + range.first);
    barrier.meet(norm);
    u32 done = 0;
    if (s.fresh) {
        rho = norm[0];
        const double size = sqrt(norm[0]);
        initial = size;
        if (!(size > 0.0) || !(size <= 1.7976931348623157e308)) goto end;
    }

    for (;;) {
        solve<false>(range, a, m, hat, slots, barrier);
        // v = A M^-1 p; alpha = rho / (r0, v)
        double rv[1] = {0.0};
        range.product<false>(a, hat, [&](u32 i, double sum) {
            v[i] = sum;
            rv[0] = fma(shadow[i], sum, rv[0]);
        });
        barrier.meet(rv);
        const double alpha = quotient(rho, rv[0]);
        // s = r - alpha v, in the place of r
        double rs[1] = {0.0};
        range.each([&](u32 i) {
            r[i] = fma(-alpha, v[i], r[i]);
            rs[0] = fma(shadow[i], r[i], rs[0]);
        });
        precondition(range, m, r, hat_s + range.first);
        barrier.arrive(rs);
        if (PRECOND != 2) range.prefetch<true>(a);
        barrier.wait(rs);
        solve<true>(range, a, m, hat_s, slots, barrier);
        // t = A M^-1 s; omega = (t, s) / (t, t)
        double with_t[3] = {0.0, 0.0, 0.0};
        range.product<true>(a, hat_s, [&](u32 i, double sum) {
            t[i] = sum;
            with_t[0] = fma(sum, r[i], with_t[0]);
            with_t[1] = fma(sum, sum, with_t[1]);
            with_t[2] = fma(shadow[i], sum, with_t[2]);
        });
        barrier.meet(with_t);
        const double ts = with_t[0], tt = with_t[1], omega = quotient(ts, tt);
        // rho' = (r0, s - omega t): its parts are here already
        const double next = rs[0] - omega * with_t[2];
        const u32 broken = rv[0] == 0.0 ? 1 : ts == 0.0 ? 2 : next == 0.0 ? 3 : 0;
        const double beta = quotient(next * tt, rv[0] * ts);
        // r = s - omega t; p = r + beta (p - omega v), or a new beginning
        norm[0] = 0.0;
        range.each([&](u32 i) {
            r[i] = fma(-omega, t[i], r[i]);
            norm[0] = fma(r[i], r[i], norm[0]);
            p[i] = broken ? r[i] : fma(beta, fma(-omega, v[i], p[i]), r[i]);
            if (broken) shadow[i] = r[i];
        });
        precondition(range, m, p, spare + range.first);
        barrier.arrive(norm);
        if (PRECOND != 2) range.prefetch<false>(a);
        // work for which nobody waits
        range.each([&](u32 i) {
            const u32 row = range.first + i;
            x[i] = fma(omega, hat_s[row], fma(alpha, hat[row], x[i]));
        });
        barrier.wait(norm);
        double* const swap = hat;
        hat = spare;
        spare = swap;
        rho = broken ? norm[0] : next;
        ++done;
        const bool end = ends(s.rules, s.history, done, sqrt(norm[0]), initial, broken, broken_before);
        broken_before = broken;
        if (end) break;
    }
end:
    for (u32 k = 0; k < s.on_chip; ++k) range.each([&](u32 i) { home(k)[i] = chip[k * s.longest + i]; });
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        s.report->initial = initial;
        s.report->carried[0] = rho;
        s.report->iterations = done;
        s.report->broken = broken_before;
    }
}
