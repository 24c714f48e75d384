"""A peer: SciPy; with --pyamg its Krylov solvers with the multigrid of PyAMG."""

import sys

from exchange import Breakdown, Unsupported, main, say, timed


def hello():
    import scipy
    import scipy.sparse.linalg  # found with the library

    version = "SciPy " + scipy.__version__
    if "--pyamg" in sys.argv:
        import pyamg

        version = f"PyAMG {pyamg.__version__}, {version}"
    return {"version": version, "threads": 1}


def precondition(name, A):
    """The action of a preconditioner's inverse, and the entries of its factors."""
    from scipy.sparse import linalg

    if name == "none":
        return None, None
    if name == "jacobi":
        diagonal = A.diagonal()
        if not diagonal.all():
            raise Breakdown("a diagonal entry is zero")
        inverse = 1.0 / diagonal
        return (lambda r: inverse * r), A.shape[0]
    if name in ("sa", "rs"):
        import pyamg

        set_up = {"sa": pyamg.smoothed_aggregation_solver, "rs": pyamg.ruge_stuben_solver}[name]
        hierarchy = set_up(A)
        return hierarchy.aspreconditioner().matvec, sum(level.A.nnz for level in hierarchy.levels)
    try:
        # its input is by columns
        factors = {"spilu": linalg.spilu, "splu": linalg.splu}[name](A.tocsc())
    except RuntimeError as error:
        raise Breakdown(str(error)) from error
    return factors.solve, int(factors.nnz)


def krylov(case, A, b, apply):
    """A solve: x, iterations, whether it converged."""
    import scipy
    from scipy.sparse import linalg

    version = tuple(int(part) for part in scipy.__version__.split(".")[:2])
    M = None if apply is None else linalg.LinearOperator(A.shape, apply)
    limit, steps = case["max-iterations"], []
    options = {"M": M, "atol": 0.0, "rtol" if version >= (1, 12) else "tol": case["rtol"]}
    if case["solver"] == "gmres":
        restart = min(case["restart"], limit)
        options.update(restart=restart, callback=steps.append, callback_type="pr_norm")
        # a limit of cycles
        x, failed = linalg.gmres(A, b, maxiter=-(-limit // restart), **options)
    else:
        method = {"cg": linalg.cg, "bicgstab": linalg.bicgstab}[case["solver"]]
        x, failed = method(A, b, maxiter=limit, callback=lambda _: steps.append(None), **options)
    if failed < 0:
        raise Breakdown(f"{case['solver']} ended with {failed}")
    return x, len(steps), failed == 0


def run(case):
    from scipy.sparse import csr_matrix

    direct = case["solver"] == "splu"
    if direct and case["precond"] != "none":
        raise Unsupported("exact factors take no preconditioner")
    b = case.array("b")
    seconds, A = timed(lambda: csr_matrix((case.array("values"), case.array("indices"), case.array("indptr"))))
    setups = []
    while not setups or case.another(setups):
        numeric, (apply, entries) = timed(lambda: precondition("splu" if direct else case["precond"], A))
        setups.append(numeric)
        say("setup", matrix=seconds, seconds=numeric, factor_entries=entries)
    solve = (lambda: (apply(b), 1, True)) if direct else (lambda: krylov(case, A, b, apply))
    for seconds, (x, iterations, converged) in case.timed_solves(solve):
        say("solve", seconds=seconds)
    case.write_solution(x)
    say("end", status="converged" if converged else "iteration-limit", iterations=iterations)


if __name__ == "__main__":
    sys.exit(main(hello, run))
