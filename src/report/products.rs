//! Products that were measured alone: time, bandwidth and storage of each format.

use crate::base::parse::choice_name;
use crate::base::units::{grouped, median_seconds, percent, plural, seconds, significant};
use crate::case::{Case, Format};
use crate::record::Record;
use crate::report::cells::{devices, head, marks_of, status, varying};
use crate::report::{Head, Sheet};

/// Heads of what was measured, in the order of the table; those of the last one are words.
pub(super) const MEASURED: [&str; 10] =
    ["n", "nnz", "MB", "bytes/entry", "convert", "time", "GFLOP/s", "GB/s", "% copy", "tuned"];

/// A row per record of a product, and below how Bdia compares; `None` when there is none.
pub fn sheet(records: &[Record], title: Option<&str>) -> Option<Sheet> {
    let first = records.first()?;
    let cases: Vec<&Case> = records.iter().map(|r| &r.case).collect();
    let varying = varying(&cases);
    let title = title.unwrap_or("Products y = A x").to_owned();
    let mut sheet = Sheet { title: Some(title), ..Sheet::default() };
    let mut common = Vec::new();
    let fixed = |name: &str| !varying.iter().any(|axis| axis.name == name);
    if fixed("matrix") {
        common.push(first.case.matrix.clone());
    }
    if fixed("block-size") {
        common.push(format!("block size {}", first.case.block_size));
    }
    if fixed("matrix-format") {
        common.push(choice_name(&first.case.format));
    }
    let copies = records.iter().filter_map(|r| Some((&r.case.backend, r.traffic.copy_gbps?)));
    let mut known = Vec::new();
    for (backend, gbps) in copies {
        if !known.contains(&backend) {
            common.push(format!("{backend} copies at {} GB/s", significant(gbps, 3)));
            known.push(backend);
        }
    }
    sheet.preamble = vec![common.join(", ")];
    sheet.preamble.extend(devices(records));
    sheet.columns.extend(varying.iter().map(|axis| head(axis)));
    let numbers = &MEASURED[..MEASURED.len() - 1];
    sheet.columns.extend(numbers.iter().map(|head| Head::number(*head)));
    sheet.columns.push(Head::words("tuned"));
    sheet.columns.push(Head::words("status"));
    let mut notes = Vec::new();
    for record in records {
        let mut row: Vec<String> = varying.iter().map(|axis| (axis.text)(&record.case)).collect();
        row.extend(cells(record));
        row.push(record.tuned.clone().unwrap_or_default());
        row.push(status(record, &mut notes));
        sheet.rows.push(row);
    }
    sheet.drop_empty_columns();
    sheet.notes = Sheet::marked(&notes).collect();
    sheet.notes.push(
        "GFLOP/s: two operations per stored entry of the matrix; GB/s: every array of the format \
         and x read once, y written once"
            .into(),
    );
    let products = records.iter().map(|r| (r.traffic.spmv(), r.traffic.spmv_interval));
    sheet.notes.extend(marks_of("product", products));
    sheet.notes.extend(comparison(records));
    Some(sheet)
}

fn cells(record: &Record) -> [String; 9] {
    let t = &record.traffic;
    let number = |v: Option<f64>| v.map(|v| significant(v, 3)).unwrap_or_default();
    let time = |s: Option<f64>| s.map(seconds).unwrap_or_default();
    let held = t.memory_bytes.map(|bytes| bytes as f64);
    [
        grouped(record.size.n),
        grouped(record.size.nnz),
        number(held.map(|bytes| bytes / 1e6)),
        number(held.map(|bytes| bytes / record.size.nnz as f64)),
        time(record.times.matrix_s),
        t.spmv().as_ref().map(median_seconds).unwrap_or_default(),
        number(t.spmv_gflops),
        number(t.spmv_gbps),
        number(t.spmv_percent_of_bandwidth),
    ]
}

/// How much faster Bdia is than each other format, on each backend: least and most over the systems.
fn comparison(records: &[Record]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut groups: Vec<(&str, Format)> = Vec::new();
    for record in records {
        let group = (record.case.backend.as_str(), record.case.format);
        if group.1 != Format::Bdia && !groups.contains(&group) {
            groups.push(group);
        }
    }
    for (backend, format) in groups {
        let of = records.iter().filter(|r| r.case.backend == backend && r.case.format == format);
        let faster: Vec<f64> = of
            .filter_map(|other| {
                let case = Case { format: Format::Bdia, ..other.case.clone() };
                let bdia = records.iter().find(|r| r.case == case)?;
                Some(100.0 * (other.traffic.spmv_s? / bdia.traffic.spmv_s? - 1.0))
            })
            .collect();
        let beside = format!("{backend}: bdia beside {}", choice_name(&format));
        lines.extend(range(&beside, &faster));
    }
    lines
        .extend(range("cuda: bdia beside the fastest format of cusparse", &beside_vendor(records)));
    lines
}

/// How much faster, in percent, Bdia is on `cuda` than whatever is fastest on `cusparse`, by system.
fn beside_vendor(records: &[Record]) -> Vec<f64> {
    let bdia = records.iter().filter(|r| r.case.backend == "cuda" && r.case.format == Format::Bdia);
    bdia.filter_map(|bdia| {
        let same = |r: &&Record| {
            let case =
                Case { format: Format::Bdia, backend: bdia.case.backend.clone(), ..r.case.clone() };
            r.case.backend == "cusparse" && case == bdia.case
        };
        let vendor = records.iter().filter(same).filter_map(|r| r.traffic.spmv_s);
        Some(100.0 * (vendor.reduce(f64::min)? / bdia.traffic.spmv_s? - 1.0))
    })
    .collect()
}

/// `what: +14.0 % to +30.0 % faster over 5 systems`; nothing of nothing.
fn range(what: &str, faster: &[f64]) -> Option<String> {
    let least = faster.iter().copied().reduce(f64::min)?;
    let most = faster.iter().copied().reduce(f64::max)?;
    let systems = plural(faster.len(), "system");
    Some(format!("{what}: {} to {} faster over {systems}", percent(least), percent(most)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::measure::median;
    use crate::base::status::Status;
    use crate::case::RunKind;
    use crate::record::schema::{SystemSize, Times, Traffic};
    use crate::report::runs::report;

    fn record(format: Format, spmv_s: f64, bytes: usize) -> Record {
        let kind = RunKind::Spmv;
        Record {
            case: Case { kind, format, precond: "none".into(), ..Case::default() },
            status: Status::Measured,
            size: SystemSize { n: 1000, nnz: 6400, ..SystemSize::default() },
            times: Times { matrix_s: Some(0.25), repetitions: 30, ..Times::default() },
            traffic: Traffic {
                memory_bytes: Some(bytes),
                spmv_s: Some(spmv_s),
                spmv_gflops: Some(12_800.0 / spmv_s / 1e9),
                spmv_gbps: Some((bytes + 16_000) as f64 / spmv_s / 1e9),
                spmv_percent_of_bandwidth: Some(80.0),
                copy_gbps: Some(25.0),
                ..Traffic::default()
            },
            ..Record::default()
        }
    }

    #[test]
    fn products_have_a_table_with_storage_and_a_comparison() {
        let records = [record(Format::Csr, 6e-6, 80_804), record(Format::Bdia, 4e-6, 56_004)];
        let report = report(&records, None);
        assert_eq!((report.sheets.len(), report.rows.len()), (1, 2));
        let sheet = &report.sheets[0];
        let heads: Vec<&str> = sheet.columns.iter().map(|h| h.text.as_str()).collect();
        let measured = ["n", "nnz", "MB", "bytes/entry", "convert", "time", "GFLOP/s", "GB/s"];
        assert_eq!(heads[..9], [&["matrix-format"][..], &measured].concat());
        let want = [
            "csr",
            "1,000",
            "6,400",
            "0.0808",
            "12.6",
            "250.0 ms",
            "6.000 µs",
            "2.13",
            "16.1",
            "80.0",
            "measured",
        ];
        assert_eq!(sheet.rows[0], want);
        assert_eq!(sheet.preamble[0], "poisson3d:60, block size 1, cpu copies at 25.0 GB/s");
        assert_eq!(sheet.notes[1], "cpu: bdia beside csr: +50.0 % to +50.0 % faster over 1 system");
    }

    #[test]
    fn times_have_their_interval_and_its_meaning() {
        let mut records = vec![record(Format::Csr, 0.0, 80_804), record(Format::Bsr, 0.0, 80_804)];
        for (record, samples) in records.iter_mut().zip([3, 9]) {
            let samples: Vec<f64> = (1..=samples).map(f64::from).collect();
            record.traffic.set_spmv(&median(&samples).unwrap(), false);
        }
        let sheet = &report(&records, None).sheets[0];
        let time = sheet.columns.iter().position(|head| head.text == "time").unwrap();
        let cells: Vec<&str> = sheet.rows.iter().map(|row| row[time].as_str()).collect();
        assert_eq!(cells, ["2.000 (3: 1.000–3.000) s", "5.000 ± 3.000 s"]);
        assert_eq!(
            sheet.notes[1..],
            [
                "(n: low–high): range of n products, too few for a 95 % interval, which takes six",
                "±, [low, high]: 95 % confidence interval of the median product"
            ]
        );
    }

    #[test]
    fn bdia_stands_beside_what_is_fastest_of_the_library() {
        let on = |backend: &str, format, seconds| {
            let mut record = record(format, seconds, 80_804);
            record.case.backend = backend.into();
            record
        };
        let mut records = vec![
            on("cusparse", Format::Csr, 8e-6),
            on("cusparse", Format::Bsr, 6e-6),
            on("cuda", Format::Csr, 5e-6),
            on("cuda", Format::Bdia, 4e-6),
        ];
        records[3].tuned = Some("rows 2".into());
        let report = report(&records, None);
        let sheet = &report.sheets[0];
        assert_eq!(
            sheet.notes.last().unwrap(),
            "cuda: bdia beside the fastest format of cusparse: +50.0 % to +50.0 % faster over 1 system"
        );
        let tuned = sheet.columns.iter().position(|head| head.text == "tuned").unwrap();
        let cells: Vec<&str> = sheet.rows.iter().map(|row| row[tuned].as_str()).collect();
        assert_eq!(cells, ["", "", "", "rows 2"]);
    }

    #[test]
    fn solves_have_none() {
        assert_eq!(sheet(&[], None), None);
    }
}
