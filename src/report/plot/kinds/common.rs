//! What several kinds of figures need.

use itertools::Itertools as _;

use super::Plot;
use crate::base::units::plural;
use crate::case::Case;
use crate::config::marks::{Marks, Spacing};
use crate::config::sweep::Axis as Setting;
use crate::record::Record;
use crate::record::schema::{SampleInterval, Times};
use crate::report::batch::Batch;
pub(super) use crate::report::batch::key_without;
use crate::report::cells::varying;
pub(super) use crate::report::cells::{by_key, geometric_mean};
use crate::report::plot::{Figure, Names, Panel, too_wide};

/// Most characters of a name in a figure.
pub(super) const LONGEST_NAME: usize = 44;

/// `text`, cut in the middle where it is too long.
pub(super) fn short(text: &str) -> String {
    let count = text.chars().count();
    if count <= LONGEST_NAME {
        return text.to_owned();
    }
    let half = (LONGEST_NAME - 1) / 2;
    let front: String = text.chars().take(half).collect();
    let back: String = text.chars().skip(count - half).collect();
    format!("{front}…{back}")
}

/// The settings in which `records` differ.
pub(super) fn differing<'a>(
    records: impl IntoIterator<Item = &'a Record, IntoIter: Clone>,
) -> Vec<&'static Setting> {
    varying(records.into_iter().map(|r| &r.case))
}

/// The values of `settings` in a case, as a name: `b 4, k 1`. A name that is a word stands for itself,
/// a file for the end of its path in `names`; what changes nothing in the case is left out.
pub(super) fn name(case: &Case, settings: &[&Setting], names: &Names) -> String {
    let word = |setting: &&Setting| {
        let text = (setting.text)(case);
        match setting.name {
            "matrix" | "rhs" => Some(names.get(&text).to_owned()),
            "fill" if !case.names_fill() => None,
            "level-rule" | "shift" | "restart" if !case.uses_named(setting.name) => None,
            "threads" if case.threads == 0 => None,
            "threads" => Some(plural(case.threads, "thread")),
            "block-size" => Some(format!("b {text}")),
            "fill" => Some(format!("k {text}")),
            "deflation" if text == "none" => None,
            "trisolve" | "fgbilu-style" | "matrix-format" if text == "auto" => None,
            "execution" if text == "fused" => None,
            // a limit is no choice
            "max-iterations" => None,
            "restart" | "rtol" | "shift" | "zeros" | "level-rule" => {
                Some(format!("{} {text}", setting.name))
            }
            _ => Some(text),
        }
    };
    settings.iter().filter_map(word).join(", ")
}

/// Settings but for those of these names.
pub(super) fn without(settings: &[&'static Setting], names: &[&str]) -> Vec<&'static Setting> {
    settings.iter().copied().filter(|s| !names.contains(&s.name)).collect()
}

/// 95 % interval of the median solve; `None` where the solves were too few for one.
pub(super) fn solve_interval(record: &Record) -> Option<(f64, f64)> {
    record.times.solve()?.interval()
}

/// How often medians were taken of, in words: `medians of 3 to 10 solves`.
pub(super) fn repetitions<'a>(records: impl IntoIterator<Item = &'a Record>) -> String {
    let times = records.into_iter().map(|r| &r.times).collect_vec();
    let by_rounds = |t: &&Times| t.solve_interval.is_some_and(SampleInterval::of_rounds);
    let samples = if times.iter().any(by_rounds) { "rounds" } else { "timed solves" };
    let ends = times.iter().map(|t| t.repetitions).minmax().into_option();
    let text = match ends {
        None | Some((0, 0)) => return "single measurements".into(),
        Some((1, 1)) => return "one timed solve each".into(),
        Some((least, most)) if least == most => format!("medians of {least} {samples}"),
        Some((least, most)) => format!("medians of {least} to {most} {samples}"),
    };
    // a point without whiskers is not an exact one
    match ends {
        Some((_, most)) if most < 6 => format!("{text}, too few for whiskers"),
        Some((least, _)) if least < 6 => format!("{text}, whiskers from six on"),
        _ => text,
    }
}

/// A figure of a file's runs, called `what: its title`.
pub(super) fn of_batch(batch: &Batch, what: &str, figure: Figure, caption: String) -> Plot {
    let title = format!("{what}: {}", batch.title());
    Plot { figure: Figure { title, source: vec![batch.devices()], ..figure }, caption }
}

/// A figure of a machine, whose caption stands below it, too.
pub(super) fn of_machine(title: String, figure: Figure, caption: String) -> Plot {
    Plot { figure: Figure { title, source: vec![caption.clone()], ..figure }, caption }
}

/// Those of `items` beyond the first `most`, which stay.
pub(super) fn beyond<T>(items: &mut Vec<T>, most: usize) -> Vec<T> {
    items.split_off(most.min(items.len()))
}

/// The name of a case of the same settings, short: its backend where nothing else differs.
pub(super) fn called(case: &Case, settings: &[&Setting], names: &Names) -> String {
    let name = name(case, settings, names);
    short(if name.is_empty() { &case.backend } else { &name })
}

/// The same, but for its matrix where nothing else differs.
pub(super) fn or_matrix(case: &Case, settings: &[&Setting], names: &Names) -> String {
    let name = name(case, settings, names);
    short(if name.is_empty() { names.get(&case.matrix) } else { &name })
}

/// The same figure with its bars below each other, where they have no room beside each other.
pub(super) fn fitted(figure: Figure) -> Figure {
    if figure.marks != Marks::Bars || !too_wide(&figure) {
        return figure;
    }
    let turned = |panel: Panel| Panel::new(panel.title, panel.y, panel.x, panel.series);
    let panels = figure.panels.into_iter().map(turned).collect();
    Figure { marks: Marks::Rows, panels, ..figure }
}

/// Linear, or logarithmic where the values reach over more than a factor of twenty.
pub(super) fn spacing(values: impl IntoIterator<Item = f64>) -> Spacing {
    let ends = values.into_iter().filter(|v| v.is_finite() && *v > 0.0);
    let (low, high) = ends.fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
    if high > 20.0 * low { Spacing::Log } else { Spacing::Linear }
}

/// What a generated matrix is called without its grid.
pub(super) fn family(matrix: &str) -> Option<String> {
    let (name, arguments) = matrix.split_once(':')?;
    let mut words = arguments.split(',');
    let grid = words.next()?;
    let numbers = grid.split('x').all(|edge| edge.parse::<u32>().is_ok());
    numbers.then(|| std::iter::once(name).chain(words).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_in_the_middle() {
        assert_eq!(short("poisson3d:60"), "poisson3d:60");
        let cut = short(&"é".repeat(100));
        assert_eq!((cut.chars().count(), cut.chars().nth(21)), (43, Some('…')));
    }

    #[test]
    fn names_say_what_numbers_are() {
        let case = Case { block_size: 4, fill: 1, restart: 30, ..Case::default() };
        let settings = differing(&[
            crate::record::samples::record(case.clone(), 1, 1.0),
            crate::record::samples::record(Case::default(), 1, 1.0),
        ]);
        assert_eq!(name(&case, &settings, &Names::default()), "b 4, k 1, restart 30");
        assert_eq!(
            name(&case, &without(&settings, &["fill"]), &Names::default()),
            "b 4, restart 30"
        );
    }

    #[test]
    fn captions_say_where_whiskers_are_none() {
        use crate::base::measure::median;
        let of = |count: usize, of_rounds| {
            let mut r = crate::record::samples::record(Case::default(), 1, 1.0);
            let samples: Vec<f64> = (1..=count).map(|i| i as f64).collect();
            r.times.set_solve(&median(&samples).unwrap(), of_rounds);
            r
        };
        let text = |records: &[Record]| repetitions(records);
        assert_eq!(text(&[of(1, false)]), "one timed solve each");
        assert_eq!(
            text(&[of(3, false), of(5, false)]),
            "medians of 3 to 5 timed solves, too few for whiskers"
        );
        assert_eq!(
            text(&[of(3, false), of(8, false)]),
            "medians of 3 to 8 timed solves, whiskers from six on"
        );
        assert_eq!(text(&[of(7, true)]), "medians of 7 rounds");
        assert_eq!(solve_interval(&of(5, false)), None);
        assert_eq!(solve_interval(&of(6, false)), Some((1.0, 6.0)));
    }

    #[test]
    fn means_and_spacings() {
        assert_eq!(geometric_mean(&[2.0, 8.0]), Some(4.0));
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(spacing([1.0, 30.0, f64::NAN]), Spacing::Log);
        assert_eq!(spacing([2.0, 30.0, 0.0]), Spacing::Linear);
    }

    #[test]
    fn families_are_generators_without_their_grid() {
        assert_eq!(
            family("reservoir:20x30x4,k=2,wells=50").as_deref(),
            Some("reservoir,k=2,wells=50")
        );
        assert_eq!(family("poisson3d:60").as_deref(), Some("poisson3d"));
        assert_eq!(family("fem-p1:parabolic_fem"), None);
        assert_eq!(family("a/b.mtx"), None);
    }
}
