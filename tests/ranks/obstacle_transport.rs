//! Failures of direct stores into neighbours' memory, one at each step: `mpirun` runs this program with nodes
//! on cores that claim to have shared memory. `cargo test --features mpi`.

use std::process::Command;
use std::sync::atomic::AtomicUsize;

use bilu_bench::base::error::{Error, Result};
use bilu_bench::compute::distributed::communicator::HANDLE;
use bilu_bench::obstacle::field::{Extent, Layout};
use bilu_bench::obstacle::mpi::{self, Direct, Ranked};
use bilu_bench::obstacle::node::Node;
use bilu_bench::obstacle::part::{Face, Region};
use bilu_bench::obstacle::solve::{Limits, Monitored, Relaxation};
use bilu_bench::obstacle::{Case, Problem, Split, threads};

/// Failures of the direct stores of the middle one of three ranks.
const FAULTS: [(&str, &str); 5] = [
    ("offer", "memory of the GPU cannot be opened"),
    ("open", "cannot open memory of another process"),
    // only one side of each pair
    ("half", "do not reach each other"),
    ("signal", "cannot write memory of another process"),
    ("deaf", "do not reach each other"),
];

/// What says to this program that it is a rank, and which fault to have.
const FAULT: &str = "BILU_BENCH_TEST_FAULT";

struct Claiming<'a> {
    node: Node<'a>,
    /// The fault, on the rank that has it.
    fault: Option<String>,
    opened: Vec<Face>,
    messages: bool,
}

impl Claiming<'_> {
    fn has(&self, fault: &str) -> bool {
        self.fault.as_deref() == Some(fault)
    }
}

impl Direct for Claiming<'_> {
    fn offer(&mut self) -> Result<[u8; HANDLE]> {
        if self.has("offer") {
            return Err(Error::run("memory of the GPU cannot be opened"));
        }
        Ok([1; HANDLE])
    }

    fn open(&mut self, face: Face, of: &[u8; HANDLE], layout: Layout) -> Result<()> {
        assert_eq!((of, layout.nx), (&[1; HANDLE], self.node.layout().nx));
        if self.has("open") {
            return Err(Error::run("cannot open memory of another process"));
        }
        self.opened.push(face);
        Ok(())
    }

    fn close(&mut self, face: Face) {
        assert!(self.opened.contains(&face), "{face:?} was not open");
        self.opened.retain(|open| *open != face);
    }

    fn signal(&mut self) -> Result<()> {
        if self.has("signal") {
            return Err(Error::run("cannot write memory of another process"));
        }
        Ok(())
    }

    fn signalled(&self, _: Face) -> Result<bool> {
        if self.has("deaf") {
            return Err(Error::run("cannot read"));
        }
        Ok(!self.has("half"))
    }

    fn settle(&mut self, messages: bool) {
        self.messages = messages;
    }
}

impl Relaxation for Claiming<'_> {
    fn begin_step(&mut self) {
        // nothing may be left open
        assert!(self.messages && self.opened.is_empty(), "{:?}", self.opened);
        self.node.begin_step();
    }

    fn passes(&self) -> usize {
        self.node.passes()
    }

    fn begin_sweep(&mut self, monitored: Monitored) {
        self.node.begin_sweep(monitored);
    }

    fn jacobi(&mut self, region: Region) {
        self.node.jacobi(region);
    }

    fn swap(&mut self) {
        self.node.swap();
    }

    fn colour(&mut self, colour: usize) {
        self.node.colour(colour);
    }

    fn squared(&self) -> &[f64] {
        self.node.squared()
    }

    fn complementarity(&self) -> f64 {
        self.node.complementarity()
    }

    fn look(&mut self) {
        self.node.look();
    }

    fn verify(&mut self) -> (f64, u64, u64) {
        self.node.verify()
    }

    fn layout(&self) -> Layout {
        self.node.layout()
    }

    fn read_face(&mut self, face: Face, to: &mut [f64]) {
        self.node.read_face(face, to);
    }

    fn write_ghost(&mut self, face: Face, from: &[f64]) {
        self.node.write_ghost(face, from);
    }
}

impl Ranked for Claiming<'_> {
    type Message = Box<[f64]>;

    fn message(&self, len: usize) -> Self::Message {
        self.node.message(len)
    }

    fn direct(&mut self) -> Option<&mut dyn Direct> {
        Some(self)
    }
}

/// One rank, when it is started by the test below.
#[test]
#[ignore = "a rank of the other test"]
fn rank() {
    let fault = std::env::var(FAULT).expect("started by the other test");
    let case = Case { m: 13, epsilon: 1e-6, backend: "mpi-cuda".into(), ..Case::default() };
    let problem = Problem::new(&case).unwrap();
    let interrupts = AtomicUsize::new(0);
    let limits = Limits { interrupts: &interrupts, deadline: None };
    let world = mpi::world().unwrap();
    let split = Split { y: 1, z: world.size() };
    let node = |extent: Extent| {
        let fault = (world.rank() == 1).then_some(fault);
        let node = Node::new(&case, &problem, extent).unwrap();
        Ok(Claiming { node, fault, opened: Vec::new(), messages: false })
    };
    let (ran, used) = mpi::run(&case, split, limits, node).unwrap();
    let alone = threads::run(&case, &problem, Split::WHOLE, limits, false).unwrap();
    assert_eq!((world.size(), used), (3, Some("messages")));
    assert_eq!(ran.outcome.fingerprint, alone.outcome.fingerprint);
    assert_eq!(ran.outcome.sweeps, alone.outcome.sweeps);
}

#[test]
fn failing_stores_become_messages_and_a_note_says_why() {
    for (fault, why) in FAULTS {
        let mut command = Command::new("mpirun");
        command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "3"]);
        command.arg(std::env::current_exe().unwrap());
        command.args([
            "obstacle_transport::rank",
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads",
            "1",
        ]);
        command.env(FAULT, fault).env("OMPI_MCA_mpi_yield_when_idle", "1");
        let output = command.output().expect("mpirun is there");
        let [stdout, stderr] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(output.status.success(), "{fault}: {stdout}{stderr}");
        assert_eq!(stdout.matches("1 passed").count(), 3, "{fault}: {stdout}");
        let note = "note: halos go as messages between ranks: ";
        let notes: Vec<&str> = stderr.lines().filter(|line| line.starts_with(note)).collect();
        assert_eq!(notes.len(), 1, "{fault}: {stderr}");
        assert!(notes[0].contains(why), "{fault}: {}", notes[0]);
    }
}
