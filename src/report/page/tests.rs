use super::*;
use crate::case::Case;
use crate::record::Record;
use crate::record::gather::{Rows, Set};
use crate::record::samples::record;

fn gathered(records: Vec<Record>) -> Gathered {
    let name = "folder/table".to_owned();
    let set = Set { files: vec![format!("{name}.csv")], name, rows: Rows::Runs(records) };
    Gathered { sets: vec![set], ..Gathered::default() }
}

fn page_of(gathered: &Gathered) -> String {
    let options = Options { title: "A <title>", rows: 50, library: &Library::Embedded };
    Page::of(gathered, &options).unwrap().html()
}

/// Parsed as XML: every element is closed and every attribute quoted but for the void elements.
fn parsed(page: &str) -> String {
    let body = page.split_once("<body>").unwrap().1.rsplit_once("</body>").unwrap().0;
    format!("<body>{body}</body>")
}

#[test]
fn hostile_text_stays_text() {
    let bad = "\"><script>alert(1)</script><svg onload=\"x\">&'";
    let case = |fill| Case { matrix: format!("{bad}{fill}"), rhs: bad.into(), ..Case::default() };
    let mut records: Vec<Record> = (0..4).map(|fill| record(case(fill), 9, 1.0)).collect();
    for (i, r) in records.iter_mut().enumerate() {
        r.reason = Some(bad.into());
        r.environment.device = bad.into();
        r.environment.cpu = bad.into();
        r.environment.revision = bad.into();
        r.case.precond = format!("{bad}{i}");
        r.convergence.residual_history = vec![1.0, 0.1];
        r.times.solve_s = Some(f64::MAX);
    }
    let mut gathered = gathered(records);
    gathered.notes.push(bad.into());
    gathered.doctor.push((bad.into(), bad.into()));
    gathered.sets[0].name = bad.into();
    gathered.sets.push(Set {
        name: bad.into(),
        files: vec![bad.into()],
        rows: Rows::Derived(vec![bad.into()], vec![vec![bad.into()]]),
    });
    let page = page_of(&gathered);
    assert!(!page.contains("<script") && !page.contains("<svg onload"), "escaped");
    let body = parsed(&page);
    let document = roxmltree::Document::parse(&body).unwrap();
    let known =
        ["id", "class", "href", "aria-labelledby", "aria-label", "tabindex", "role", "scope"];
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        let in_drawing = node.ancestors().any(|n| n.tag_name().name() == "svg");
        for attribute in node.attributes() {
            assert!(in_drawing || known.contains(&attribute.name()), "{attribute:?}");
            assert!(!attribute.name().starts_with("on"), "{attribute:?}");
        }
    }
}

#[test]
fn sections_are_there_for_which_there_is_something() {
    let records = vec![record(Case::default(), 61, 0.25)];
    let page = page_of(&gathered(records));
    let body = parsed(&page);
    let document = roxmltree::Document::parse(&body).unwrap();
    let ids = |name: &str| -> Vec<String> {
        let own = document.descendants().filter(|n| n.has_tag_name(name));
        own.filter_map(|n| n.attribute("id").map(str::to_owned)).collect()
    };
    assert_eq!(ids("h2"), ["summary", "machines", "phases", "runs", "terms"]);
    // each is in the contents, and nothing else
    let links = document.descendants().filter(|n| n.has_tag_name("a"));
    let links: Vec<&str> = links.filter_map(|n| n.attribute("href")).collect();
    assert_eq!(links, ["#content", "#summary", "#machines", "#phases", "#runs", "#terms"]);
    // figures have a title and a caption, tables have heads
    for figure in document.descendants().filter(|n| n.has_tag_name("figure")) {
        for part in ["h3", "svg", "title", "figcaption"] {
            let count = figure.descendants().filter(|n| n.tag_name().name() == part).count();
            assert_eq!(count, 1, "{part}");
        }
    }
    for table in document.descendants().filter(|n| n.has_tag_name("table")) {
        let heads = table.descendants().filter(|n| n.has_tag_name("th")).count();
        let rows = table.descendants().filter(|n| n.has_tag_name("tr")).skip(1);
        for row in rows {
            assert_eq!(row.children().count(), heads);
        }
    }
    for outside in ["http://", "https://", "<link", "<script", "src=", "url("] {
        let own = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!own.contains(outside), "{outside}");
    }
}

#[test]
fn numbers_of_the_records_stand_in_the_table() {
    let page = page_of(&gathered(vec![record(Case::default(), 61, 0.25)]));
    let body = parsed(&page);
    let document = roxmltree::Document::parse(&body).unwrap();
    let runs = document.descendants().find(|n| n.attribute("aria-label") == Some("Runs")).unwrap();
    let cells = |tag: &str| -> Vec<&str> {
        let own = runs.descendants().filter(|n| n.has_tag_name(tag));
        own.map(|n| n.text().unwrap_or_default()).collect()
    };
    let (heads, cells) = (cells("th"), cells("td"));
    let value = |head: &str| cells[heads.iter().position(|h| *h == head).unwrap()];
    assert_eq!(
        (value("iterations"), value("solve"), value("setup")),
        ("61", "250.0 ms", "40.00 ms")
    );
    assert!(page.contains("<title>A &lt;title&gt;</title>"));
}

#[test]
fn long_tables_are_cut_and_say_so() {
    let case = |restart| Case { restart, ..Case::default() };
    let records = (1..=120).map(|i| record(case(i), i, 0.25)).collect();
    let page = page_of(&gathered(records));
    assert!(page.contains("The first 50 of 120 rows; the files have all of them."));
    assert!(page.contains("; and 80 more, which the CSV of this figure names)"));
}

fn read(text: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let owned = |row: &csv::StringRecord| row.iter().map(str::to_owned).collect::<Vec<_>>();
    let heads = owned(reader.headers().unwrap());
    (heads, reader.records().map(|row| owned(&row.unwrap())).collect())
}

#[test]
fn tables_are_files_with_all_rows() {
    let case = |restart| Case { restart, ..Case::default() };
    let records = (1..=120).map(|i| record(case(i), i, 0.25)).collect();
    let options = Options { title: "", rows: 50, library: &Library::Embedded };
    let files = Page::of(&gathered(records), &options).unwrap().tables().unwrap();
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["tables.csv", "summary-1.csv", "machines-1.csv", "runs-1.csv"]);
    let (heads, list) = read(&files[0].1);
    assert_eq!(heads, tables::COLUMNS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    assert_eq!(list[2][..2], ["runs-1.csv", "All runs"]);
    assert_eq!(list[2][4], "120");
    let (heads, rows) = read(&files[3].1);
    let column = heads.iter().position(|head| head == "iterations").unwrap();
    let iterations: Vec<usize> = rows.iter().map(|row| row[column].parse().unwrap()).collect();
    assert_eq!(iterations, (1..=120).collect::<Vec<_>>());
}

#[test]
fn the_page_of_the_committed_results_begins_with_findings() {
    let results = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    let mut gathered = crate::record::gather::gather(&[results]).unwrap();
    assert!(gathered.states.len() > 50, "{}", gathered.states.len());
    for (_, state) in &mut gathered.states {
        *state = "mixed, stale".into();
    }
    let body = parsed(&page_of(&gathered));
    let document = roxmltree::Document::parse(&body).unwrap();
    let all = |tag: &'static str| document.descendants().filter(move |n| n.has_tag_name(tag));
    let list = all("ol").find(|n| n.attribute("class") == Some("findings")).unwrap();
    let contents = all("nav").next().unwrap();
    assert!(list.range().end <= contents.range().start, "findings stand above the contents");
    let findings: Vec<_> = list.children().collect();
    assert!((6..=8).contains(&findings.len()), "{}", findings.len());
    let ids: Vec<&str> = all("h2").filter_map(|n| n.attribute("id")).collect();
    for finding in findings {
        let link = finding.descendants().find_map(|n| n.attribute("href")).unwrap();
        assert!(ids.contains(&link.trim_start_matches('#')), "{link}");
        let sentence = finding.first_element_child().and_then(|b| b.text()).unwrap();
        assert!(sentence.contains(|c: char| c.is_ascii_digit()), "{sentence}");
        // a finding whose tables are not current says so
        let mut texts = finding.descendants().filter_map(|n| n.text());
        assert!(texts.any(|text| text.contains(" (records: mixed, stale)")), "{sentence}");
    }
    // papers first, open; then the rest, folded
    assert_eq!(ids[..7], ["almouhamed", "gupta", "luo", "obstacle", "yang", "trisolve", "peers"]);
    let folded = |n: &roxmltree::Node<'_, '_>| n.ancestors().any(|a| a.has_tag_name("details"));
    let open = all("h2").filter(|n| n.attribute("id").is_some() && !folded(n)).count();
    assert_eq!(open, 7);
    for (_, state) in &mut gathered.states {
        *state = "current".into();
    }
    assert!(!page_of(&gathered).contains("(records: "), "nothing is said of current tables");
}

#[test]
fn every_column_of_the_committed_results_is_documented() {
    let results = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    let gathered = crate::record::gather::gather(&[results]).unwrap();
    let options = Options { title: "", rows: 1, library: &Library::Embedded };
    let files = Page::of(&gathered, &options).unwrap().tables().unwrap();
    let mut seen = 0;
    // the columns of `compare` and `versus` are documented with them
    for (name, text) in files.iter().skip(1).filter(|(name, _)| !name.starts_with("comparisons")) {
        for head in read(text).0 {
            assert!(heads::is_known(&head), "{name}: `{head}` is not in HEADS");
            seen += 1;
        }
    }
    assert!(seen > 500, "{seen}");
}
