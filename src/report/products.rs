//! Products that were measured alone: time, bandwidth and storage of each format.

use itertools::Itertools as _;

use crate::base::parse::choice_name;
use crate::base::units::{grouped, median_seconds, percent, plural, significant};
use crate::case::{Case, Format};
use crate::record::Record;
use crate::report::Sheet;
use crate::report::build::Columns;
use crate::report::cells::{
    by_key, devices, in_cache, marks_of, share, shown, status, three, time, varying,
};

/// A row per record of a product, and below how Bdia compares; `None` when there is none.
pub(crate) fn sheet(records: &[Record], title: Option<&str>) -> Option<Sheet> {
    let first = &records.first()?.case;
    let varying = varying(records.iter().map(|r| &r.case));
    let common = [
        ("matrix", first.matrix.clone()),
        ("block-size", format!("block size {}", first.block_size)),
        ("matrix-format", choice_name(&first.format)),
    ];
    let fixed = |name: &str| !varying.iter().any(|axis| axis.name == name);
    let common = common.into_iter().filter(|(name, _)| fixed(name)).map(|(_, text)| text);
    let copies = records.iter().filter_map(|r| Some((&r.case.backend, r.traffic.copy_gbps?)));
    let copies = copies.unique_by(|(backend, _)| *backend);
    let copies =
        copies.map(|(name, gbps)| format!("{name} copies at {} GB/s", significant(gbps, 3)));
    let mut notes = Vec::new();
    let mut sheet = Columns::settings(&varying, |r: &&Record| &r.case)
        .and(measured())
        .words("status", |r| status(r, &mut notes))
        .sheet(records);
    sheet.title = Some(title.unwrap_or("Products y = A x").to_owned());
    sheet.preamble = std::iter::once(common.chain(copies).join(", ")).collect();
    sheet.preamble.extend(devices(records));
    sheet.notes = Sheet::marked(&notes).collect();
    sheet.notes.push(
        "GFLOP/s: two operations per stored entry of the matrix; GB/s: every array of the format \
         and x read once, y written once"
            .into(),
    );
    sheet.notes.extend(in_cache(records, |t| [t.spmv_bytes, None]));
    let products = records.iter().map(|r| (r.traffic.spmv(), r.traffic.spmv_interval));
    sheet.notes.extend(marks_of("product", products));
    sheet.notes.extend(comparison(records));
    Some(sheet)
}

/// The columns of what was measured.
pub(super) fn measured<'a, 'r>() -> Columns<'a, &'r Record> {
    let held = |r: &Record| r.traffic.memory_bytes.map(|bytes| bytes as f64);
    Columns::new()
        .number("n", |r: &&Record| grouped(r.size.n))
        .number("nnz", |r| grouped(r.size.nnz))
        .number("MB", move |r| three(held(r).map(|bytes| bytes / 1e6)))
        .number("bytes/entry", move |r| three(held(r).map(|bytes| bytes / r.size.nnz as f64)))
        .number("convert", |r| time(r.times.matrix_s))
        .number("time", |r| shown(r.traffic.spmv().as_ref(), median_seconds))
        .number("GFLOP/s", |r| three(r.traffic.spmv_gflops))
        .number("GB/s", |r| three(r.traffic.spmv_gbps))
        .number("% copy", |r| {
            share(&r.traffic, r.traffic.spmv_percent_of_bandwidth, r.traffic.spmv_bytes)
        })
        .words("tuned", |r| r.tuned.clone().unwrap_or_default())
}

/// How much faster Bdia is than each other format, on each backend: least and most over the systems.
fn comparison(records: &[Record]) -> Vec<String> {
    let others = records.iter().filter(|r| r.case.format != Format::Bdia);
    let groups = by_key(others, |r| (&r.case.backend, choice_name(&r.case.format)));
    let line = |((backend, format), own): ((&String, String), Vec<&Record>)| {
        let faster = own.into_iter().filter_map(|other| {
            let case = Case { format: Format::Bdia, ..other.case.clone() };
            let bdia = records.iter().find(|r| r.case == case)?;
            Some(100.0 * (other.traffic.spmv_s? / bdia.traffic.spmv_s? - 1.0))
        });
        range(&format!("{backend}: bdia beside {format}"), &faster.collect_vec())
    };
    let vendor = range("cuda: bdia beside the fastest format of cusparse", &beside_vendor(records));
    groups.into_iter().filter_map(line).chain(vendor).collect()
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
    let (least, most) = faster.iter().copied().minmax_by(f64::total_cmp).into_option()?;
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
        let measured = ["n", "nnz", "MB", "bytes/entry", "convert", "time", "GFLOP/s", "GB/s"];
        assert_eq!(sheet.heads()[..9], [&["matrix-format"][..], &measured].concat());
        let want = "csr|1,000|6,400|0.0808|12.6|250.0 ms|6.000 µs|2.13|16.1|80.0|measured";
        assert_eq!(sheet.rows[0].join("|"), want);
        assert_eq!(sheet.preamble[0], "poisson3d:60, block size 1, cpu copies at 25.0 GB/s");
        assert_eq!(sheet.notes[1], "cpu: bdia beside csr: +50.0 % to +50.0 % faster over 1 system");
    }

    #[test]
    fn what_fits_in_the_cache_is_marked() {
        let mut records = [record(Format::Csr, 6e-6, 80_804), record(Format::Bsr, 6e-6, 56_004)];
        for (record, moved) in records.iter_mut().zip([96_804, 65_537]) {
            record.traffic.spmv_bytes = Some(moved);
            record.traffic.cache_bytes = Some(65_536);
        }
        let sheet = |records: &[Record]| report(records, None).sheets.swap_remove(0);
        let note = |sheet: &Sheet| sheet.notes.iter().any(|note| note.starts_with("* in cache"));
        let larger = sheet(&records);
        assert_eq!((larger.column("% copy"), note(&larger)), (vec!["80.0"; 2], false));
        records[1].traffic.spmv_bytes = Some(65_536);
        let marked = sheet(&records);
        assert_eq!((marked.column("% copy"), note(&marked)), (vec!["80.0", "80.0*"], true));
    }

    #[test]
    fn times_have_their_interval_and_its_meaning() {
        let mut records = vec![record(Format::Csr, 0.0, 80_804), record(Format::Bsr, 0.0, 80_804)];
        for (record, samples) in records.iter_mut().zip([3, 9]) {
            let samples: Vec<f64> = (1..=samples).map(f64::from).collect();
            record.traffic.set_spmv(&median(&samples).unwrap(), false);
        }
        let sheet = &report(&records, None).sheets[0];
        assert_eq!(sheet.column("time"), ["2.000 (3: 1.000–3.000) s", "5.000 ± 3.000 s"]);
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
        assert_eq!(sheet.column("tuned"), ["", "", "", "rows 2"]);
    }

    #[test]
    fn solves_have_none() {
        assert_eq!(sheet(&[], None), None);
    }
}
