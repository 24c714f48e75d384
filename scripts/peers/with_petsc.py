"""A peer: PETSc by petsc4py, on one rank or, under mpirun, with a subdomain on each."""

import glob
import os
import sys

from exchange import Breakdown, Unsupported, main, say, timed


# Preconditioners with factors in one matrix; over ranks there is one of each subdomain.
FACTORS = ("ilu", "icc", "lu", "cholesky")


def find_library():
    """PETSC_DIR for the binding; Debian installs one folder per version and scalar type."""
    if os.environ.get("PETSC_DIR"):
        return
    for pattern in ["/usr/lib/petscdir/petsc*/*-real", "/usr/lib/petscdir/*/*-real"]:
        found = [d for d in glob.glob(pattern) if glob.glob(d + "/lib/python3/dist-packages/petsc4py")]
        if found:
            os.environ["PETSC_DIR"] = sorted(found)[-1]
            sys.path.insert(0, os.environ["PETSC_DIR"] + "/lib/python3/dist-packages")
            return


def hello():
    find_library()
    import petsc4py

    petsc4py.init(["peer"])
    from petsc4py import PETSc

    world = PETSc.COMM_WORLD
    if world.getRank() > 0:
        return None
    version = "PETSc " + ".".join(map(str, PETSc.Sys.getVersion()))
    return {"version": version, "threads": 1, "ranks": world.getSize() if world.getSize() > 1 else None}


def matrix(case, PETSc, numpy):
    """This rank's rows, in the format for blocks where there are blocks."""
    n, block, world = case["n"], case["block-size"], PETSc.COMM_WORLD
    ranks, rank = world.getSize(), world.getRank()
    blocks = n // block
    first, last = (block * (blocks * r // ranks) for r in (rank, rank + 1))
    indptr = case.array("indptr", mapped=True)[first : last + 1].astype(PETSc.IntType)
    part = slice(int(indptr[0]), int(indptr[-1]))
    columns = case.array("indices", mapped=True)[part].astype(PETSc.IntType)
    values = numpy.array(case.array("values", mapped=True)[part])
    indptr -= indptr[0]
    size = ((last - first, n), (last - first, n))
    A = PETSc.Mat().create(comm=world)
    A.setSizes(size)
    if block == 1:
        A.setType("aij")
        A.setPreallocationCSR((indptr, columns, values))
    else:
        A.setType("baij")
        A.setBlockSize(block)
        # blocks of each row of blocks, on the diagonal of this rank and off it
        rows = numpy.repeat(numpy.arange(last - first) // block, numpy.diff(indptr)).astype(numpy.int64)
        keys = numpy.unique(rows * blocks + columns // block)
        of, column = keys // blocks, keys % blocks
        own = (column >= first // block) & (column < last // block)
        count = (last - first) // block
        nnz = [numpy.bincount(of[chosen], minlength=count).astype(PETSc.IntType) for chosen in (own, ~own)]
        A.setPreallocationNNZ(nnz[0] if ranks == 1 else tuple(nnz))
        A.setValuesCSR(indptr, columns, values)
    A.assemble()
    return A, (first, last)


def on_subdomains(case, options, name):
    """Factors of each subdomain's matrix."""
    options["sub_pc_type"] = name
    if name in ("ilu", "icc"):
        options["sub_pc_factor_levels"] = case["fill"]
        options["sub_pc_factor_mat_ordering_type"] = "natural"


def precondition(case, PETSc, ksp):
    """Chooses the preconditioner; on ranks ILU(k) and exact factors are those of the subdomains."""
    pc, name, options = ksp.getPC(), case["precond"], PETSc.Options()
    ranks = PETSc.COMM_WORLD.getSize()
    if name in FACTORS and ranks == 1:
        pc.setType(name)
        if name in ("ilu", "icc"):
            pc.setFactorLevels(case["fill"])
            pc.setFactorOrdering("natural")
    elif name in FACTORS:
        pc.setType("bjacobi")
        on_subdomains(case, options, name)
    elif name == "asm":
        # restricted, with a layer of the neighbours' rows
        pc.setType(name)
        pc.setASMOverlap(1)
        on_subdomains(case, options, "ilu")
    elif name == "mumps":
        pc.setType("lu")
        pc.setFactorSolverType(name)
    elif name in ("boomeramg", "euclid"):
        try:
            pc.setType("hypre")
            pc.setHYPREType(name)
        except PETSc.Error as error:
            raise Unsupported("PETSc was built without hypre") from error
        if name == "euclid":
            options["pc_hypre_euclid_level"] = case["fill"]
    else:
        pc.setType(name)
    return pc


def prepare(case, PETSc, A):
    """A solver with its preconditioner, not set up."""
    options = PETSc.Options()
    ksp = PETSc.KSP().create(comm=PETSc.COMM_WORLD)
    ksp.setOperators(A)
    ksp.setType(case["solver"])
    ksp.setTolerances(rtol=case["rtol"], atol=0.0, divtol=1e30, max_it=case["max-iterations"])
    if case["solver"] == "gmres":
        ksp.setGMRESRestart(case["restart"])
        ksp.setPCSide({"left": PETSc.PC.Side.LEFT, "right": PETSc.PC.Side.RIGHT}[case["side"]])
        if case["orthogonalisation"] == "modified":
            options["ksp_gmres_modifiedgramschmidt"] = True
        elif case["orthogonalisation"] in ("ifneeded", "always"):
            options["ksp_gmres_cgs_refinement_type"] = "refine_" + case["orthogonalisation"]
    elif case["solver"] == "bcgs":
        # as ours
        ksp.setPCSide(PETSc.PC.Side.RIGHT)
    elif case["solver"] == "cg":
        ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
    pc = precondition(case, PETSc, ksp)
    ksp.setFromOptions()
    # the first is that of x = 0
    ksp.setConvergenceHistory(length=min(case["max-iterations"] + 1, 100_000), reset=True)
    return ksp, pc


def factor_entries(case, pc):
    """Entries of the factors, where there is one matrix of them."""
    if case["precond"] not in FACTORS or pc.getType() == "bjacobi":
        return None
    return int(pc.getFactorMatrix().getInfo()["nz_used"])


def setup(case, PETSc, pc, A):
    """Sets up and tells of it: first, and again with values that count as new, which is the numeric phase alone."""

    def both():
        # the second sets up the subdomains
        pc.setUp()
        pc.setUpOnBlocks()

    whole, _ = timed(both)
    if factor_entries(case, pc) is None:
        # what others keep of a first setup is not known
        return {"seconds": whole}
    numeric = []
    while not numeric or case.another(numeric):
        A.stateIncrease()
        seconds, _ = timed(both)
        numeric.append(seconds)
    middle = sorted(numeric)[len(numeric) // 2]
    return {"symbolic": max(whole - middle, 0.0), "numeric": middle, "factor_entries": factor_entries(case, pc)}


ENDS = {"DIVERGED_ITS": "iteration-limit", "DIVERGED_DTOL": "diverged", "DIVERGED_NANORINF": "diverged"}


def run(case):
    import numpy
    from petsc4py import PETSc

    world = PETSc.COMM_WORLD
    tell = say if world.getRank() == 0 else (lambda *_, **__: None)
    seconds, (A, (first, last)) = timed(lambda: matrix(case, PETSc, numpy))
    b, x = A.createVecLeft(), A.createVecRight()
    b.setArray(numpy.array(case.array("b", mapped=True)[first:last]))
    try:
        ksp, pc = prepare(case, PETSc, A)
        told = setup(case, PETSc, pc, A)
        ksp.setUp()
    except PETSc.Error as error:
        # MAT_LU_ZRPVT, and what PETSc says when a library fails
        if error.ierr in (71, 76, 77):
            raise Breakdown(str(error).replace("\n", " ")) from error
        raise
    tell("setup", matrix=seconds, **told)

    def solve():
        x.set(0.0)
        ksp.solve(b, x)

    for seconds, _ in solves(case, PETSc, solve):
        tell("solve", seconds=seconds)
    scatter, all_of_x = PETSc.Scatter.toZero(x)
    scatter.scatter(x, all_of_x)
    if world.getRank() > 0:
        return
    reason, norms = ksp.getConvergedReason(), ksp.getConvergenceHistory()
    names = {value: name for name, value in vars(PETSc.KSP.ConvergedReason).items() if isinstance(value, int)}
    name = names.get(reason, str(reason))
    status = "converged" if reason > 0 else ENDS.get(name, "breakdown")
    case.write_solution(all_of_x.getArray())
    residual = float(norms[-1] / norms[0]) if len(norms) > 1 and norms[0] > 0.0 else None
    told = {"iterations": max(ksp.getIterationNumber(), 0), "residual": residual}
    say("end", status=status, reason=None if reason > 0 else name, **told)


def solves(case, PETSc, solve):
    """Timed solves: of all ranks as many, since the first decides."""
    world = PETSc.COMM_WORLD
    if world.getSize() == 1:
        yield from case.timed_solves(solve)
        return
    word = PETSc.Vec().createMPI((1, world.getSize()), comm=world)
    samples = []
    timed(solve)
    while True:
        word.setArray([float(world.getRank() == 0 and (not samples or case.another(samples)))])
        # all ranks wait for the sum
        if word.sum() == 0.0:
            return
        seconds, _ = timed(solve)
        samples.append(seconds)
        yield seconds, None


if __name__ == "__main__":
    sys.exit(main(hello, run))
