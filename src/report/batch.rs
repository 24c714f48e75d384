//! Results together with their experiment: the input of figures and pages.

use std::collections::HashMap;

use itertools::Itertools as _;

use crate::base::error::Result;
use crate::case::Case;
use crate::config::Experiment;
use crate::config::library::Library;
use crate::config::sweep::AXES;
use crate::record::Record;
use crate::record::gather::{Gathered, Rows};
use crate::report::cells::devices;

/// Runs of one file.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Name of the file, without the common prefix of all names.
    pub name: String,
    /// The runs.
    pub records: Vec<Record>,
    /// The experiment that they belong to, with its name `paper/table`.
    pub experiment: Option<(String, Experiment)>,
    /// Whether grids or settings differ from those of the experiment, so that there is no verdict.
    pub not_comparable: Option<&'static str>,
}

/// Runs of obstacle problems of one file.
#[derive(Clone, Debug, Default)]
pub struct ObstacleBatch {
    /// As in [`Batch`].
    pub name: String,
    /// The runs.
    pub records: Vec<crate::record::obstacle::Record>,
    /// The experiment that they are of.
    pub experiment: Option<crate::config::obstacle::Experiment>,
}

/// All runs.
#[derive(Clone, Debug, Default)]
pub struct Batches {
    /// Solves and products.
    pub runs: Vec<Batch>,
    /// Obstacle problems.
    pub obstacle: Vec<ObstacleBatch>,
}

impl Batch {
    /// Its heading: the title of its experiment, or the name of its file.
    pub fn title(&self) -> &str {
        let title = self.experiment.as_ref().and_then(|(_, e)| e.title.as_deref());
        title.unwrap_or(&self.name)
    }

    /// Title and file, where they are not the same.
    pub fn heading(&self) -> String {
        match self.title() {
            title if title == self.name => title.to_owned(),
            title => format!("{title} ({})", self.name),
        }
    }

    /// Where it ran: `cpu: Xeon, 1 thread; cuda: H200`.
    pub fn devices(&self) -> String {
        devices(&self.records).join("; ")
    }
}

impl Batches {
    /// The runs of `gathered`, assigned to experiments of `library`.
    ///
    /// # Errors
    /// When an experiment of the library is not valid.
    pub fn of(gathered: &Gathered, library: &Library) -> Result<Self> {
        let names: Vec<&str> = gathered.sets.iter().map(|set| set.name.as_str()).collect();
        let skip = shared_folder(&names);
        let known = Known::of(library)?;
        let mut batches = Self::default();
        for set in &gathered.sets {
            let name = set.name[skip..].to_owned();
            match &set.rows {
                Rows::Runs(records) => {
                    let (experiment, not_comparable) = known.find(&set.name, records);
                    let records = records.clone();
                    batches.runs.push(Batch { name, records, experiment, not_comparable });
                }
                Rows::Obstacle(records) => {
                    let experiment = obstacle_experiment(&name, records);
                    let records = records.clone();
                    batches.obstacle.push(ObstacleBatch { name, records, experiment });
                }
                Rows::Tuning(_) | Rows::Derived(..) => {}
            }
        }
        Ok(batches)
    }
}

/// Length of the folder that all names begin with.
pub(crate) fn shared_folder(names: &[&str]) -> usize {
    let Some(first) = names.first() else { return 0 };
    let mut length = first.rfind('/').map_or(0, |at| at + 1);
    while length > 0 && !names.iter().all(|name| name.starts_with(&first[..length])) {
        length = first[..length - 1].rfind('/').map_or(0, |at| at + 1);
    }
    length
}

/// The cases of all experiments.
struct Known {
    experiments: Vec<(String, Experiment)>,
    /// Experiments that have a case.
    cases: HashMap<String, Vec<usize>>,
}

/// A case as a key.
pub(crate) fn key(case: &Case) -> String {
    key_without(case, &[])
}

/// The values of all settings but for those of these names, as a key.
pub(crate) fn key_without(case: &Case, names: &[&str]) -> String {
    let own = AXES.iter().filter(|axis| !names.contains(&axis.name));
    own.map(|axis| (axis.text)(case)).join("\u{1f}")
}

impl Known {
    fn of(library: &Library) -> Result<Self> {
        let (mut experiments, mut cases) = (Vec::new(), HashMap::<String, Vec<usize>>::new());
        for entry in library.entries()? {
            let experiment = library.open(&entry)?;
            for case in experiment.cases()?.0 {
                cases.entry(key(&case)).or_default().push(experiments.len());
            }
            experiments.push((format!("{}/{}", entry.paper, entry.table), experiment));
        }
        Ok(Self { experiments, cases })
    }

    /// The experiment that `records` are of: it has all their cases, and where several do, its name is
    /// that of the file. A file that is called as an experiment is of it where some cases are, or where
    /// the paper has a row for each; then what differs is said.
    fn find(
        &self,
        file: &str,
        records: &[Record],
    ) -> (Option<(String, Experiment)>, Option<&'static str>) {
        let mut counts = vec![0; self.experiments.len()];
        for record in records {
            for &i in self.cases.get(&key(&record.case)).into_iter().flatten() {
                counts[i] += 1;
            }
        }
        let named = |name: &str| {
            let (paper, table) = name.split_once('/').unwrap_or_default();
            let mut words = file.rsplit('/');
            words.next().is_some_and(|stem| stem.starts_with(table)) && words.any(|w| w == paper)
        };
        let of = |i: usize| Some(self.experiments[i].clone());
        let called = |&i: &usize| named(&self.experiments[i].0);
        let all = 0..counts.len();
        let has_all = |&i: &usize| !records.is_empty() && counts[i] == records.len();
        let mut whole = all.clone().filter(has_all);
        let found = whole.clone().find(called).or_else(|| whole.by_ref().exactly_one().ok());
        if let Some(i) = found {
            return (of(i), None);
        }
        let Some(i) = all.clone().find(called) else { return (None, None) };
        let published = self.experiments[i].1.published.as_ref();
        let rows = published.is_some_and(|p| records.iter().all(|r| p.find(&r.case).is_some()));
        match (counts[i], rows) {
            (0, false) => (None, None),
            (0, true) => (of(i), Some("settings other than the experiment's")),
            _ => (of(i), None),
        }
    }
}

/// The experiment with the name of the file.
fn obstacle_experiment(
    name: &str,
    records: &[crate::record::obstacle::Record],
) -> Option<crate::config::obstacle::Experiment> {
    let stem = name.rsplit('/').next().unwrap_or(name);
    let known = crate::config::obstacle::names();
    let known = known.iter().find(|known| *known == stem)?;
    let experiment = crate::config::obstacle::Experiment::open(known).ok()?;
    let cases = experiment.cases().ok()?;
    records.iter().any(|r| cases.contains(&r.case)).then_some(experiment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::library::experiment;
    use crate::record::gather::Set;
    use crate::record::samples::record;

    #[test]
    fn files_of_an_experiment_are_found_by_their_cases_and_names() {
        let library = Library::Embedded;
        let cases = experiment("yang/table1").cases().unwrap().0;
        let of = |name: &str, cases: &[Case]| {
            let records = cases.iter().map(|case| record(case.clone(), 9, 1.0)).collect();
            let set = Set { name: name.into(), files: Vec::new(), rows: Rows::Runs(records) };
            let gathered = Gathered { sets: vec![set], ..Gathered::default() };
            let batch = Batches::of(&gathered, &library).unwrap().runs.remove(0);
            (batch.experiment.map(|(name, _)| name), batch.not_comparable)
        };
        let found = |name: &str| Some(name.to_owned());
        assert_eq!(of("mine/any", &cases[..3]), (found("yang/table1"), None));
        let other = Case { rhs: "ones".into(), ..cases[0].clone() };
        assert_eq!(of("mine/any", std::slice::from_ref(&other)), (None, None));
        let why = Some("settings other than the experiment's");
        assert_eq!(of("yang/table1", &[other]), (found("yang/table1"), why));
    }

    #[test]
    fn names_are_without_the_folder_that_all_share() {
        assert_eq!(shared_folder(&["a/b/c", "a/b/d", "a/bx/e"]), 2);
        assert_eq!(shared_folder(&["a/b/c"]), 4);
        assert_eq!(shared_folder(&["a", "a/b"]), 0);
    }
}
