// QMR without look-ahead as one kernel: three barriers an iteration. Names are those of `solver/qmr.rs`.
#include "krylov/in_kernel.cuh"

struct Solve {
    // first row of each thread block's range, and the end of the last
    const u32* starts;
    const double* b;
    double* x;
    // directions, which products read
    double *p, *q;
    // where v, w, r, A p, A' q, hat, d and s lie that do not fit, and between launches all of them
    double* home;
    size_t n;
    // vectors in shared memory, x the last of them, and numbers there for each
    u32 on_chip, longest;
    Inverse inverse, transposed_inverse;
    double* parts;
    // whether the solve begins with this launch, and whether M is on the left
    u32 fresh, left;
    Rules rules;
    History history;
    Report* report;
};

// Mirrored by the solver's words for them.
constexpr u32 NO_LANCZOS_VECTOR = 1, NO_DELTA = 2, NO_EPSILON = 3;

extern "C" __global__ void __launch_bounds__(THREADS, 1) qmr(const __grid_constant__ Matrix a, const __grid_constant__ Matrix transposed, const __grid_constant__ Solve s) {
    extern __shared__ double chip[];
    const Range range(s.starts);
    const auto home = [&](u32 k) { return k < 8 ? s.home + k * s.n + range.first : s.x + range.first; };
    const auto place = [&](u32 k) { return k < s.on_chip ? chip + k * s.longest : home(k); };
    double *v = place(0), *w = place(1), *hat = place(2), *ap = place(3), *aq = place(4);
    double *r = place(5), *d = place(6), *ad = place(7), *x = place(8);
    double *const p = s.p + range.first, *const q = s.q + range.first;
    Barrier barrier(s.parts);

    // y = M1^-1 v or z = M2'^-1 w into `hat`, and this thread's part of (y, y), (z, z) and (z, y)
    const auto measure = [&](double& yy, double& zz, double& zy) {
        if (s.left) precondition(range, s.inverse, v, hat);
        else precondition(range, s.transposed_inverse, w, hat);
        range.each([&](u32 i) {
            const double y = s.left ? hat[i] : v[i], z = s.left ? w[i] : hat[i];
            yy = fma(y, y, yy);
            zz = fma(z, z, zz);
            zy = fma(z, y, zy);
        });
    };
    // v and w of the length one; p = M2^-1 y + back_p p, q = M1'^-1 z + back_q q
    const auto directions = [&](double rho, double xi, double back_p, double back_q, bool first) {
        const double by_rho = 1.0 / rho, by_xi = 1.0 / xi;
        range.each([&](u32 i) {
            v[i] *= by_rho;
            w[i] *= by_xi;
        });
        // A' q has been used
        if (s.left) precondition(range, s.transposed_inverse, w, aq);
        else precondition(range, s.inverse, v, aq);
        range.each([&](u32 i) {
            const double of_p = s.left ? by_rho * hat[i] : aq[i], of_q = s.left ? aq[i] : by_xi * hat[i];
            p[i] = first ? of_p : fma(back_p, p[i], of_p);
            q[i] = first ? of_q : fma(back_q, q[i], of_q);
        });
    };
    const auto defect = [](double rho, double xi, double delta) -> u32 {
        return rho == 0.0 || xi == 0.0 ? NO_LANCZOS_VECTOR : delta == 0.0 ? NO_DELTA : 0;
    };

    double initial, rho, xi, delta, gamma = 1.0, eta = -1.0, theta = 0.0;
    u32 done = 0, broken = 0;
    if (s.fresh) {
        double sum[4] = {};
        range.each([&](u32 i) {
            const double b = s.b[range.first + i];
            v[i] = w[i] = r[i] = b;
            d[i] = ad[i] = x[i] = 0.0;
            sum[3] = fma(b, b, sum[3]);
        });
        measure(sum[0], sum[1], sum[2]);
        barrier.meet(sum);
        initial = sqrt(sum[3]);
        rho = sqrt(sum[0]), xi = sqrt(sum[1]), delta = sum[2] / (rho * xi);
        if (!(initial > 0.0) || !(initial <= 1.7976931348623157e308)) goto end;
        broken = defect(rho, xi, delta);
        if (broken) goto end;
        directions(rho, xi, 0.0, 0.0, true);
        double nothing[1] = {0.0};
        barrier.meet(nothing);
    } else {
        const double* carried = s.report->carried;
        initial = s.report->initial;
        rho = carried[0], xi = carried[1], delta = carried[2];
        gamma = carried[3], eta = carried[4], theta = carried[5];
        for (u32 k = 0; k < s.on_chip; ++k) range.each([&](u32 i) { chip[k * s.longest + i] = home(k)[i]; });
        // rows of a range may lie elsewhere for products than for the copy
        __syncthreads();
    }

    for (;;) {
        double epsilon[1] = {0.0};
        range.product<false>(a, s.p, [&](u32 i, double sum) {
            ap[i] = sum;
            epsilon[0] = fma(__ldcg(&q[i]), sum, epsilon[0]);
        });
        range.product<true>(transposed, s.q, [&](u32 i, double sum) { aq[i] = sum; });
        barrier.meet(epsilon);
        if (epsilon[0] == 0.0) {
            broken = NO_EPSILON;
            break;
        }
        const double beta = epsilon[0] / delta;
        range.each([&](u32 i) {
            v[i] = fma(-beta, v[i], ap[i]);
            w[i] = fma(-beta, w[i], aq[i]);
        });
        double sum[3] = {};
        measure(sum[0], sum[1], sum[2]);
        barrier.meet(sum);
        const double next_rho = sqrt(sum[0]), next_xi = sqrt(sum[1]);
        const double next_theta = next_rho / (gamma * fabs(beta));
        const double next_gamma = 1.0 / hypot(1.0, next_theta);
        eta *= -rho * next_gamma * next_gamma / (beta * gamma * gamma);
        const double kept = theta * next_gamma * (theta * next_gamma);
        theta = next_theta, gamma = next_gamma;
        double norm[1] = {0.0};
        range.each([&](u32 i) {
            d[i] = fma(eta, p[i], kept * d[i]);
            ad[i] = fma(eta, ap[i], kept * ad[i]);
            r[i] -= ad[i];
            norm[0] = fma(r[i], r[i], norm[0]);
        });
        rho = next_rho, xi = next_xi, delta = sum[2] / (rho * xi);
        broken = defect(rho, xi, delta);
        if (!broken) directions(rho, xi, -xi * delta / epsilon[0], -rho * delta / epsilon[0], false);
        barrier.arrive(norm);
        // work for which nobody waits
        range.each([&](u32 i) { x[i] += d[i]; });
        barrier.wait(norm);
        ++done;
        if (ends(s.rules, s.history, done, sqrt(norm[0]), initial, broken, broken)) break;
    }
end:
    for (u32 k = 0; k < s.on_chip; ++k) range.each([&](u32 i) { home(k)[i] = chip[k * s.longest + i]; });
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        double* carried = s.report->carried;
        s.report->initial = initial;
        carried[0] = rho, carried[1] = xi, carried[2] = delta;
        carried[3] = gamma, carried[4] = eta, carried[5] = theta;
        s.report->iterations = done;
        s.report->broken = broken;
    }
}
