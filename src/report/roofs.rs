//! What the triangular solves and the factorisation of a run cost beside what the device allows.

use crate::base::parse::choice_name;
use crate::base::units::{grouped, seconds, significant};
use crate::case::{Case, Trisolve};
use crate::record::Record;
use crate::record::schema::Traffic;
use crate::report::cells::{head, varying};
use crate::report::{Head, Sheet};

/// A row per record that solves with triangles on a GPU; `None` when there is none.
pub fn sheet(records: &[Record]) -> Option<Sheet> {
    let records: Vec<&Record> = records
        .iter()
        .filter(|r| r.factor.trisolve_used.is_some() && r.traffic.apply_s.is_some())
        .collect();
    let traffic = &records.first()?.traffic;
    let cases: Vec<&Case> = records.iter().map(|r| &r.case).collect();
    let varying = varying(&cases);
    let mut sheet = Sheet {
        title: Some("Triangular solves (L and U together) and factorisation".into()),
        ..Sheet::default()
    };
    sheet.columns.extend(varying.iter().map(|axis| head(axis)));
    sheet.columns.push(Head::words("way"));
    sheet.columns.extend(["levels L/U", "rows/level"].map(Head::number));
    for of in ["solve", "factor"] {
        sheet.columns.push(Head::number(of));
        sheet.columns.extend(["µs/level", "MB", "GB/s", "% bytes", "% levels"].map(Head::number));
    }
    let chosen: Vec<&Record> =
        records.iter().copied().filter(|r| r.factor.trisolve_reason.is_some()).collect();
    for record in &records {
        let mut row: Vec<String> = varying.iter().map(|axis| (axis.text)(&record.case)).collect();
        // chosen by the backend
        let chosen = record.factor.trisolve_used.filter(|_| record.case.trisolve == Trisolve::AUTO);
        row.push(chosen.as_ref().map_or_else(String::new, choice_name));
        row.extend(cells(record));
        sheet.rows.push(row);
    }
    sheet.drop_empty_columns();
    sheet.notes = vec![roof(traffic)];
    sheet.notes.extend(choices(&chosen));
    Some(sheet)
}

fn cells(record: &Record) -> [String; 14] {
    let (f, t) = (&record.factor, &record.traffic);
    let levels = match (f.levels_lower, f.levels_upper) {
        (Some(l), Some(u)) => format!("{}/{}", grouped(l), grouped(u)),
        _ => String::new(),
    };
    let number = |v: Option<f64>| v.map(|v| significant(v, 3)).unwrap_or_default();
    let time = |s: Option<f64>| s.map(seconds).unwrap_or_default();
    let mb = |bytes: Option<usize>| number(bytes.map(|bytes| bytes as f64 / 1e6));
    [
        levels,
        number(f.rows_per_level),
        time(t.apply_s),
        number(t.us_per_level),
        mb(t.apply_bytes),
        number(t.apply_gbps),
        number(t.percent_of_bandwidth),
        number(t.percent_of_latency),
        time(record.times.numeric_kernel_s),
        number(t.numeric_us_per_level),
        mb(t.numeric_bytes),
        number(t.numeric_gbps),
        number(t.numeric_percent_of_bandwidth),
        number(t.numeric_percent_of_latency),
    ]
}

/// Why the backend chose each algorithm, with the settings in which the records differ.
fn choices(records: &[&Record]) -> Vec<String> {
    let cases: Vec<&Case> = records.iter().map(|r| &r.case).collect();
    let varying = varying(&cases);
    let line = |record: &&Record| {
        let of: Vec<String> = varying
            .iter()
            .map(|axis| format!("{} {}", axis.name, (axis.text)(&record.case)))
            .collect();
        let of = if of.is_empty() { String::new() } else { format!(" ({})", of.join(", ")) };
        record.factor.trisolve_reason.as_ref().map(|reason| format!("chosen{of}: {reason}"))
    };
    records.iter().filter_map(line).collect()
}

/// What the percentages are of.
fn roof(traffic: &Traffic) -> String {
    let copy = traffic.copy_gbps.map(|gbps| format!(" ({} GB/s)", significant(gbps, 4)));
    let bytes = format!("% bytes: bytes at copy bandwidth{}", copy.unwrap_or_default());
    match traffic.handover_us {
        Some(us) => format!(
            "roof: the larger of {bytes} and % levels: levels at {} µs from thread block to \
             thread block",
            significant(us, 3)
        ),
        None => format!("roof: {bytes}; no latency is measured here"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            percent_of_latency: handover_us.map(|us| us * 356.0 / 5.0),
            numeric_bytes: Some(33_000_000),
            numeric_gbps: Some(82.5),
            numeric_us_per_level: Some(2.247),
            numeric_percent_of_bandwidth: Some(2.06),
            numeric_percent_of_latency: handover_us.map(|us| us * 178.0 / 4.0),
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
    fn without_a_latency_bytes_are_the_roof() {
        let sheet = sheet(&[gpu(Trisolve::LEVELS, None)]).unwrap();
        assert!(!sheet.columns.contains(&Head::number("% levels")));
        assert_eq!(
            sheet.notes,
            ["roof: % bytes: bytes at copy bandwidth (4012 GB/s); no latency is measured here"]
        );
    }

    #[test]
    fn a_cpu_has_none() {
        assert_eq!(sheet(&[record(Case::default(), 61, 1.0)]), None);
    }
}
