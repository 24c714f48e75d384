//! What the triangular solves and the factorisation of a run cost beside what the device allows.

use crate::base::parse::choice_name;
use crate::base::units::significant;
use crate::case::Trisolve;
use crate::record::Record;
use crate::record::schema::Traffic;
use crate::report::Sheet;
use crate::report::build::Columns;
use crate::report::cells::{
    apply_share, in_cache, levels, settings, share, shown, three, time, varying,
};

/// A row per record that solves with triangles on a GPU; `None` when there is none.
pub(crate) fn sheet(records: &[Record]) -> Option<Sheet> {
    let has = |r: &&Record| r.factor.trisolve_used.is_some() && r.traffic.apply_s.is_some();
    let records: Vec<&Record> = records.iter().filter(has).collect();
    let traffic = &records.first()?.traffic;
    let varying = varying(records.iter().map(|r| &r.case));
    let mb = |bytes: Option<usize>| three(bytes.map(|bytes| bytes as f64 / 1e6));
    let mut sheet = Columns::settings(&varying, |r: &&Record| &r.case)
        .words("variant", |r| {
            // chosen by the backend
            let auto = r.case.trisolve == Trisolve::AUTO;
            shown(r.factor.trisolve_used.filter(|_| auto).as_ref(), choice_name)
        })
        .number("levels L/U", |r| levels(&r.factor))
        .number("rows/level", |r| three(r.factor.rows_per_level))
        .number("solve", |r| time(r.traffic.apply_s))
        .number("µs/level", |r| three(r.traffic.us_per_level))
        .number("MB", move |r| mb(r.traffic.apply_bytes))
        .number("GB/s", |r| three(r.traffic.apply_gbps))
        .number("% bytes", |r| apply_share(&r.traffic))
        .number("factor", |r| time(r.times.numeric_kernel_s))
        .number("µs/level", |r| three(r.traffic.numeric_us_per_level))
        .number("MB", move |r| mb(r.traffic.numeric_bytes))
        .number("GB/s", |r| three(r.traffic.numeric_gbps))
        .number("% bytes", |r| {
            share(&r.traffic, r.traffic.numeric_percent_of_bandwidth, r.traffic.numeric_bytes)
        })
        .sheet(records.iter().copied());
    sheet.title = Some("Triangular solves (L and U together) and factorisation".into());
    let cached = in_cache(records.iter().copied(), |t| [t.apply_bytes, t.numeric_bytes]);
    sheet.notes = std::iter::once(roof(traffic)).chain(cached).chain(choices(&records)).collect();
    Some(sheet)
}

/// Why the backend chose each algorithm, with the settings in which these records differ.
fn choices(records: &[&Record]) -> Vec<String> {
    let chosen = || records.iter().filter(|r| r.factor.trisolve_reason.is_some());
    let varying = varying(chosen().map(|r| &r.case));
    let line = |record: &&Record| {
        let of = settings(&varying, &record.case);
        let of = if of.is_empty() { of } else { format!(" ({of})") };
        Some(format!("chosen{of}: {}", record.factor.trisolve_reason.as_ref()?))
    };
    chosen().filter_map(line).collect()
}

/// What the percentages are of.
fn roof(traffic: &Traffic) -> String {
    let copy = shown(traffic.copy_gbps, |gbps| format!(" ({} GB/s)", significant(gbps, 4)));
    let bytes = format!("% bytes: bytes at copy bandwidth{copy}");
    match traffic.handover_us {
        Some(us) => format!(
            "{bytes}; µs/level: beside {} µs from thread block to thread block",
            significant(us, 3)
        ),
        None => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;
    use crate::record::samples::record;
    use crate::report::ReportFormat;
    use crate::report::runs::report;

    fn gpu(trisolve: Trisolve, handover_us: Option<f64>) -> Record {
        let case = Case { trisolve, backend: "cuda".into(), ..Case::default() };
        let mut r = record(case, 61, 0.25);
        r.factor.trisolve_used = Some(trisolve);
        r.factor.rows_per_level = Some(216_000.0 / 178.0);
        r.times.numeric_kernel_s = Some(0.4e-3);
        r.traffic = Traffic {
            apply_s: Some(0.5e-3),
            apply_bytes: Some(25_000_000),
            apply_gbps: Some(50.0),
            us_per_level: Some(1.4045),
            copy_gbps: Some(4012.3),
            handover_us,
            percent_of_bandwidth: Some(1.25),
            numeric_bytes: Some(33_000_000),
            numeric_gbps: Some(82.5),
            numeric_us_per_level: Some(2.247),
            numeric_percent_of_bandwidth: Some(2.06),
            ..Traffic::default()
        };
        r
    }

    #[test]
    fn solves_on_a_gpu_have_a_table_of_their_own() {
        let mut records = [gpu(Trisolve::LEVELS, Some(0.5)), gpu(Trisolve::AUTO, Some(0.5))];
        records[1].factor.trisolve_used = Some(Trisolve::SYNCFREE);
        let report = report(&records, None);
        assert_eq!(report.sheets.len(), 2);
        let only = crate::report::Report { sheets: report.sheets[1..].to_vec(), rows: Vec::new() };
        insta::assert_snapshot!(ReportFormat::Markdown.render(&only).unwrap());
    }

    #[test]
    fn a_latency_that_was_not_measured_is_not_told() {
        let sheet = sheet(&[gpu(Trisolve::LEVELS, None)]).unwrap();
        assert_eq!(sheet.notes, ["% bytes: bytes at copy bandwidth (4012 GB/s)"]);
    }

    #[test]
    fn a_cpu_has_none() {
        assert_eq!(sheet(&[record(Case::default(), 61, 1.0)]), None);
    }
}
