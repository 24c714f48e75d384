//! Rows of rounds (`--rounds`) as one record per case: what tables, figures and comparisons show.

use std::collections::HashMap;

use serde_json::Value;

use crate::base::measure::median;
use crate::base::units::plural;
use crate::record::Record;
use crate::record::table::{SCHEMA, fields};

/// The records of `rows`, those of one case in several rounds as one. Records without a round stay as they
/// are; the order is that of first rows.
pub(crate) fn aggregated(rows: &[Record]) -> Vec<Record> {
    cases(rows).iter().map(|rows| aggregate(rows)).collect()
}

/// Rows by case: those of its rounds together, each without a round by itself. A round that is there twice
/// begins another record of the case, so that readers see two.
pub(crate) fn cases(rows: &[Record]) -> Vec<Vec<&Record>> {
    let mut groups: Vec<Vec<&Record>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for row in rows {
        let Some(round) = row.round else {
            groups.push(vec![row]);
            continue;
        };
        let key = format!("{:?} {} {} {:?}", row.case, row.size.n, row.size.nnz, row.hash);
        match places.get(&key) {
            Some(&at) if groups[at].iter().all(|other| other.round != Some(round)) => {
                groups[at].push(row);
            }
            _ => {
                places.insert(key, groups.len());
                groups.push(vec![row]);
            }
        }
    }
    groups
}

/// One record of the rounds of a case: the medians of all times and rates, and as the intervals of solve
/// and product those of the rounds' medians. Where a round failed, the case did.
pub(crate) fn aggregate(rows: &[&Record]) -> Record {
    let failed = rows.iter().filter(|r| !r.status.succeeded()).count();
    let first = rows.iter().find(|r| !r.status.succeeded()).unwrap_or(&rows[0]);
    let mut record = Record { round: None, ..(*first).clone() };
    if rows.len() == 1 {
        return record;
    }
    if failed > 0 {
        if failed < rows.len() {
            record.remark(format!("failed in {failed} of {}", plural(rows.len(), "round")));
        }
        return record;
    }
    let mut map = fields(&record);
    let all: Vec<_> = rows.iter().map(|row| fields(*row)).collect();
    for column in SCHEMA.iter().filter(|column| column.is_number()) {
        let values: Vec<f64> = all.iter().filter_map(|row| row[&column.name].as_f64()).collect();
        if let (Some(place), Some(m)) = (map.get_mut(&column.name), median(&values)) {
            *place = Value::from(m.value);
        }
    }
    if let Ok(medians) = serde_json::from_value(Value::Object(map)) {
        record = medians;
    }
    let solves: Vec<f64> = rows.iter().filter_map(|row| row.times.solve_s).collect();
    let times = &mut record.times;
    if let Some(solve) = median(&solves) {
        times.set_solve(&solve, true);
        times.total_s = times.to_solution(1);
    }
    let products: Vec<f64> = rows.iter().filter_map(|row| row.traffic.spmv_s).collect();
    if let Some(product) = median(&products) {
        record.traffic.set_spmv(&product, true);
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::measure::Spread;
    use crate::base::status::Status;
    use crate::case::Case;
    use crate::record::samples::record;
    use crate::record::schema::SampleInterval;

    fn round(number: usize, fill: usize, solve_s: f64) -> Record {
        let mut r = record(Case { fill, ..Case::default() }, 10, solve_s);
        r.round = Some(number);
        r
    }

    #[test]
    fn rounds_of_a_case_become_its_medians() {
        let mut rows = Vec::new();
        for (i, solve_s) in [3.0, 1.0, 2.0].into_iter().enumerate() {
            let mut row = round(i + 1, 0, solve_s);
            row.times.matrix_s = Some(0.5 * solve_s);
            row.times.repetitions = 2;
            row.traffic.apply_gbps = Some(10.0 * solve_s);
            row.traffic.set_spmv(&median(&[4.0 * solve_s, 4.0 * solve_s]).unwrap(), false);
            rows.push(row);
            rows.push(round(i + 1, 1, 7.0));
        }
        let found = aggregated(&rows);
        assert_eq!(found.iter().map(|r| r.case.fill).collect::<Vec<_>>(), [0, 1]);
        let Record { round, times, traffic, .. } = &found[0];
        assert_eq!((*round, times.solve_s, times.matrix_s), (None, Some(2.0), Some(1.0)));
        assert_eq!((times.solve_low_s, times.solve_high_s), (Some(1.0), Some(3.0)));
        assert_eq!(times.solve_interval, Some(SampleInterval::RangeOfRounds));
        assert_eq!((times.repetitions, times.setup_s), (3, Some(0.04)));
        assert_eq!((times.total_s, traffic.apply_gbps), (Some(1.0 + 0.04 + 2.0), Some(20.0)));
        assert_eq!(times.ms_per_iteration, Some(200.0));
        let product = traffic.spmv().unwrap();
        assert_eq!((product.value, product.count), (8.0, 3));
        assert_eq!(product.spread, Spread::Range { low: 4.0, high: 12.0 });
        assert_eq!(traffic.spmv_interval, Some(SampleInterval::RangeOfRounds));
        assert_eq!(times.solve().unwrap().spread, Spread::Range { low: 1.0, high: 3.0 });
    }

    #[test]
    fn six_rounds_have_an_interval() {
        let rows: Vec<Record> = (1..=6).map(|i| round(i, 0, i as f64)).collect();
        let times = &aggregated(&rows)[0].times;
        assert_eq!(times.solve_interval, Some(SampleInterval::ConfidenceOfRounds));
        assert_eq!(times.solve().unwrap().interval(), Some((1.0, 6.0)));
        assert_eq!(times.solve_s, Some(3.5));
    }

    #[test]
    fn a_case_that_failed_in_a_round_failed() {
        let mut rows: Vec<Record> = (1..=3).map(|i| round(i, 0, 1.0)).collect();
        rows[1].status = Status::Diverged;
        rows[1].reason = Some("NaN".into());
        let found = aggregated(&rows);
        assert_eq!((found.len(), found[0].status), (1, Status::Diverged));
        assert_eq!(found[0].reason.as_deref(), Some("NaN; failed in 1 of 3 rounds"));
    }

    #[test]
    fn what_has_no_rounds_stays_as_it_is() {
        let plain = record(Case::default(), 10, 1.0);
        assert_eq!(aggregated(&[plain.clone(), plain.clone()]), [plain.clone(), plain.clone()]);
        // a round by itself keeps the interval of its samples
        let single = Record { round: Some(4), ..plain.clone() };
        assert_eq!(aggregated(std::slice::from_ref(&single)), std::slice::from_ref(&plain));
        // the same round twice is two records of a case
        assert_eq!(aggregated(&[single.clone(), single]), [plain.clone(), plain]);
    }
}
