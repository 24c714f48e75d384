//! From records to the figure that an experiment declares.

use itertools::Itertools as _;

use crate::base::units::plural;
use crate::case::Case;
use crate::config::FigureSpec;
use crate::config::marks::Marks;
use crate::config::quantity::Quantity;
use crate::config::sweep::Axis as Setting;
use crate::record::Record;
use crate::report::cells::{by_key, devices, varying};
use crate::report::plot::{Axis, Figure, Names, Origin, Panel, Points, Series};

/// The figure of `records`, of which those that failed are left out. `remark` is said below it.
pub fn figure(
    spec: &FigureSpec,
    title: Option<&str>,
    records: &[Record],
    remark: Option<&str>,
) -> Figure {
    let shown: Vec<&Record> = records.iter().filter(|r| r.status.succeeded()).collect();
    let cases: Vec<&Case> = shown.iter().map(|r| &r.case).collect();
    let varying = varying(cases.iter().copied());
    let names = Names::of(shown.iter().copied());
    let sketch = Sketch { spec, parameters: Parameters::of(&cases, &names), names, varying };
    let mut figure = Figure {
        title: title.unwrap_or_default().to_owned(),
        marks: spec.marks,
        panels: sketch.panels(&shown),
        source: source(&shown),
        ..Figure::default()
    };
    if !spec.published.is_empty() && !spec.citation.is_empty() {
        figure.source.push(format!("published: {}", spec.citation));
    }
    let failed = records.len() - shown.len();
    if failed > 0 {
        figure.source.push(format!("not shown: {} that failed", plural(failed, "case")));
    }
    figure.source.extend(remark.map(str::to_owned));
    figure
}

/// Devices, revisions and days of the records.
fn source(records: &[&Record]) -> Vec<String> {
    let environments = || records.iter().map(|r| &r.environment);
    let devices = devices(records.iter().copied()).join("; ");
    let revisions = environments().map(|e| e.revision.as_str());
    let revisions = revisions.filter(|revision| !revision.is_empty()).unique().join(", ");
    // RFC 3339: the day comes first
    let days = environments().filter_map(|e| e.date.split('T').next());
    let days = days.filter(|day| !day.is_empty()).sorted_unstable().dedup().join(", ");
    let measured = (!devices.is_empty()).then(|| format!("measured on {devices}"));
    let program = (!revisions.is_empty()).then(|| format!("bilu-bench {revisions}, {days}"));
    measured.into_iter().chain(program).collect()
}

/// What panels and series are made from.
struct Sketch<'a> {
    spec: &'a FigureSpec,
    parameters: Parameters,
    names: Names,
    /// Settings that vary.
    varying: Vec<&'static Setting>,
}

impl Sketch<'_> {
    fn panels(&self, records: &[&Record]) -> Vec<Panel> {
        // by the first setting of the list, then by the next
        let values = records.iter().map(|r| self.panel_values(&r.case)).collect_vec();
        let first = |(setting, value): (usize, &String)| {
            values.iter().position(|of_record| of_record[setting] == *value)
        };
        let place = |key: &Vec<String>| key.iter().enumerate().map(first).collect_vec();
        let groups = by_key(records.iter().zip(&values), |(_, key)| *key);
        let categories = self.categories(records);
        let mut panels = Vec::new();
        for (key, own) in groups.into_iter().sorted_by_key(|(key, _)| place(key)) {
            let own = own.into_iter().map(|(record, _)| *record).collect_vec();
            panels.extend(self.spec.y.iter().map(|y| self.panel(key, y, &own, &categories)));
        }
        panels
    }

    fn panel(
        &self,
        key: &[String],
        y: &Quantity,
        records: &[&Record],
        categories: &[f64],
    ) -> Panel {
        let mut series = self.measured(y, records, categories);
        series.extend(self.published(y));
        let several = self.spec.y.len() > 1;
        let what = several.then(|| y.name.replace('-', " "));
        let key = key.iter().filter(|word| !word.is_empty()).cloned();
        let words: Vec<String> = what.into_iter().chain(key).collect();
        Panel {
            title: words.join(", "),
            x: Axis {
                label: self.spec.x.label.to_owned(),
                spacing: self.spec.x_spacing,
                categories: categories.iter().map(f64::to_string).collect(),
            },
            y: Axis {
                label: y.label.to_owned(),
                spacing: self.spec.y_spacing,
                categories: Vec::new(),
            },
            series,
        }
    }

    /// Values of x that have bars, increasing; none where lines are drawn.
    fn categories(&self, records: &[&Record]) -> Vec<f64> {
        if self.spec.marks != Marks::Bars {
            return Vec::new();
        }
        let mut values: Vec<f64> = records.iter().filter_map(|r| (self.spec.x.value)(r)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    }

    /// A series for each combination of the settings that vary and are not in panels.
    fn measured(&self, y: &Quantity, records: &[&Record], categories: &[f64]) -> Vec<Series> {
        let place = |x: f64| match self.spec.marks {
            Marks::Bars => categories.iter().position(|c| *c == x).unwrap_or(0) as f64,
            _ => x,
        };
        let points = records.iter().filter_map(|record| {
            let point = (place((self.spec.x.value)(record)?), (y.value)(record)?);
            Some((self.series_name(&record.case), point))
        });
        let groups = by_key(points, |(name, _)| name.clone()).into_iter();
        let series = groups.map(|(name, own)| {
            let points = own.into_iter().map(|(_, point)| point);
            let points = points.sorted_by(|a, b| a.0.total_cmp(&b.0)).collect();
            Series { name, points: Points::Pairs(points), ..Series::default() }
        });
        series.collect()
    }

    fn published(&self, y: &Quantity) -> Vec<Series> {
        let own = self.spec.published.iter().filter(|point| point.quantity == y);
        // a level is a series of its own
        let groups = by_key(own, |p| (&p.series, p.x.is_none().then_some(p.y.to_bits())));
        let series = groups.into_iter().map(|((name, level), own)| Series {
            name: name.clone(),
            origin: Origin::Published,
            points: match level {
                Some(_) => Points::Level(own[0].y),
                None => Points::Pairs(own.iter().filter_map(|p| Some((p.x?, p.y))).collect()),
            },
            ..Series::default()
        });
        series.collect()
    }

    /// Values of the settings that have panels, in words.
    fn panel_values(&self, case: &Case) -> Vec<String> {
        let word = |setting: &&'static Setting| match setting.name {
            "matrix" => self.parameters.of_case(case, &self.names),
            "block-size" => format!("block size {}", case.block_size),
            "rhs" => self.names.get(&case.rhs).to_owned(),
            _ => (setting.text)(case),
        };
        self.spec.panels.iter().map(word).collect()
    }

    /// The backend and the other choices that vary, but for those that panels and the horizontal axis
    /// show.
    fn series_name(&self, case: &Case) -> String {
        let in_panels = |name: &str| self.spec.panels.iter().any(|setting| setting.name == name);
        let others = self.varying.iter().filter(|setting| {
            let name = setting.name;
            !["matrix", "backend", self.spec.x.name].contains(&name) && !in_panels(name)
        });
        let backend = (!in_panels("backend")).then(|| case.backend.clone());
        let text = |setting: &&'static Setting| match setting.name {
            "rhs" => self.names.get(&case.rhs).to_owned(),
            _ => (setting.text)(case),
        };
        let texts = others.map(text).filter(|text| text != "auto");
        backend.into_iter().chain(texts).collect::<Vec<_>>().join(" ")
    }
}

/// The parameters of generated matrices, beside the grid, and the names of others, that not all of them
/// share.
struct Parameters {
    shared: Vec<String>,
}

impl Parameters {
    fn of(cases: &[&Case], names: &Names) -> Self {
        let mut all = cases.iter().map(|case| parameters(&case.matrix, names));
        let mut shared = all.next().unwrap_or_default();
        for other in all {
            shared.retain(|word| other.contains(word));
        }
        Self { shared }
    }

    fn of_case(&self, case: &Case, names: &Names) -> String {
        let mut own = parameters(&case.matrix, names);
        own.retain(|word| !self.shared.contains(word));
        own.join(", ")
    }
}

/// What stands behind the grid: `reservoir:20,k=2,wells=50` has `k=2` and `wells=50`. A file or a matrix of the
/// catalogue has its name.
fn parameters(matrix: &str, names: &Names) -> Vec<String> {
    let kind = matrix.split(':').next().unwrap_or_default();
    if crate::problem::generators::find(kind).is_none() {
        return vec![names.get(matrix).to_owned()];
    }
    matrix.split(',').skip(1).map(|word| word.trim().to_owned()).collect()
}

#[cfg(test)]
#[path = "from_records_tests.rs"]
mod tests;
