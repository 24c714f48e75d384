//! In what the places differ where two records were measured: machines, programs.

use itertools::Itertools as _;

use crate::record::Record;

/// A field of the environment as text; empty where it is not known.
type Field = fn(&Record) -> String;

/// What is compared.
const PLACES: [(&str, Field); 6] = [
    ("processor", |r| r.environment.cpu.clone()),
    ("device", |r| r.environment.device.clone()),
    ("threads", |r| match r.environment.threads {
        0 => String::new(),
        threads => threads.to_string(),
    }),
    ("system", |r| r.environment.os.clone()),
    ("compiler", |r| r.environment.compiler.clone()),
    ("revision", |r| r.environment.revision.clone()),
];

/// What differs between the records of one pair: name, old and new.
fn of_pair(old: &Record, new: &Record) -> Vec<(&'static str, String, String)> {
    // the device of a backend of the host is its processor
    let on_host = |r: &Record| r.environment.device == r.environment.cpu;
    let both_on_host = on_host(old) && on_host(new);
    PLACES
        .iter()
        .filter(|(name, _)| *name != "device" || !both_on_host)
        .map(|(name, of)| (*name, of(old), of(new)))
        .filter(|(_, old, new)| old != new && !old.is_empty() && !new.is_empty())
        .collect()
}

/// What differs between two records: `processor: A -> B; revision: C -> D`; nothing where nothing does.
pub fn difference(old: &Record, new: &Record) -> Option<String> {
    let found = of_pair(old, new);
    let texts = found.iter().map(|(name, old, new)| format!("{name}: {old} -> {new}"));
    (!found.is_empty()).then(|| texts.collect::<Vec<_>>().join("; "))
}

/// What differs between the records of any pair, each once: `processor: A (old), B (new)`.
pub fn differences(pairs: &[(&Record, &Record)]) -> Vec<String> {
    let place = |name: &str| PLACES.iter().position(|(own, _)| *own == name);
    let found = pairs.iter().flat_map(|(old, new)| of_pair(old, new)).unique();
    let found = found.sorted_by_key(|(name, ..)| place(name));
    found.map(|(name, old, new)| format!("{name}: {old} (old), {new} (new)")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;
    use crate::record::samples::record;
    use crate::record::schema::Environment;

    fn on(cpu: &str, device: &str, threads: usize, revision: &str) -> Record {
        let own = |text: &str| text.to_owned();
        let environment = Environment {
            cpu: own(cpu),
            device: own(device),
            threads,
            revision: own(revision),
            ..Environment::default()
        };
        Record { environment, ..record(Case::default(), 5, 1.0) }
    }

    #[test]
    fn what_differs_is_named_once() {
        let (a, b) = (on("Xeon", "Xeon", 1, "1"), on("EPYC", "EPYC", 8, "2"));
        assert_eq!(
            differences(&[(&a, &b), (&a, &a), (&a, &b)]),
            [
                "processor: Xeon (old), EPYC (new)",
                "threads: 1 (old), 8 (new)",
                "revision: 1 (old), 2 (new)"
            ]
        );
        assert_eq!(
            difference(&a, &b).unwrap(),
            "processor: Xeon -> EPYC; threads: 1 -> 8; revision: 1 -> 2"
        );
        assert_eq!((difference(&a, &a), differences(&[(&a, &a)]).len()), (None, 0));
    }

    #[test]
    fn a_gpu_is_a_device_and_what_is_not_known_does_not_differ() {
        let (a, b) = (on("Xeon", "H100", 1, "1"), on("Xeon", "H200", 1, ""));
        assert_eq!(difference(&a, &b).unwrap(), "device: H100 -> H200");
        assert_eq!(difference(&a, &on("Xeon", "Xeon", 0, "1")).unwrap(), "device: H100 -> Xeon");
    }
}
