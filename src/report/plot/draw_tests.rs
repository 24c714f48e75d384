use resvg::tiny_skia::{Pixmap, PremultipliedColorU8};

use super::*;
use crate::report::plot::{Axis, Origin, png};

const BLUE: &str = "#0072B2";
const ORANGE: &str = "#D55E00";
const BLACK: &str = "#000000";

fn pairs(name: &str, points: &[(f64, f64)]) -> Series {
    Series { name: name.into(), points: Points::Pairs(points.to_vec()), ..Series::default() }
}

fn lines() -> Figure {
    let published =
        Series { origin: Origin::Published, points: Points::Level(2.0), ..pairs("paper", &[]) };
    Figure {
        title: "Time & size <of one>".into(),
        panels: vec![Panel {
            title: "panel".into(),
            x: Axis { label: "size (points)".into(), spacing: Spacing::Log, ..Axis::default() },
            y: Axis { label: "time (s)".into(), ..Axis::default() },
            series: vec![
                pairs("one", &[(10.0, 1.0), (100.0, 4.0), (1000.0, 2.5)]),
                pairs("two", &[(10.0, 3.0), (1000.0, f64::NAN), (2000.0, 0.5)]),
                published,
            ],
        }],
        source: vec!["measured on a machine".into()],
        ..Figure::default()
    }
}

/// The texts with their places.
fn texts(svg: &str) -> Vec<(String, f64, f64)> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let texts = document.descendants().filter(|n| n.has_tag_name("text"));
    let place =
        |node: roxmltree::Node<'_, '_>, name| node.attribute(name).unwrap().parse().unwrap();
    texts.map(|n| (n.text().unwrap().trim().to_owned(), place(n, "x"), place(n, "y"))).collect()
}

/// Points of every line or polygon of a colour.
fn shapes(svg: &str, tag: &str, colour: &str) -> Vec<Vec<(f64, f64)>> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let own = |n: &roxmltree::Node<'_, '_>| {
        n.has_tag_name(tag) && ["stroke", "fill"].iter().any(|a| n.attribute(*a) == Some(colour))
    };
    let points = |n: roxmltree::Node<'_, '_>| {
        let words = n.attribute("points").unwrap().split_whitespace();
        words
            .map(|word| {
                let (x, y) = word.split_once(',').unwrap();
                (x.parse().unwrap(), y.parse().unwrap())
            })
            .collect()
    };
    document.descendants().filter(own).map(points).collect()
}

/// Where the labels of two ticks put a value: on a horizontal axis by their x, else by their y.
fn between(texts: &[(String, f64, f64)], ticks: [(&str, f64); 2], value: f64, across: bool) -> f64 {
    let place = |label: &str| {
        let found: Vec<_> = texts.iter().filter(|(text, ..)| text == label).collect();
        assert_eq!(found.len(), 1, "{label}: {found:?}");
        if across { found[0].1 } else { found[0].2 }
    };
    let [(a, from), (b, to)] = ticks;
    place(a) + (place(b) - place(a)) * (value - from) / (to - from)
}

#[test]
fn points_lie_where_the_labels_of_the_axes_say() {
    let svg = svg(&lines()).unwrap();
    let texts = texts(&svg);
    // the sample of the legend, then the line
    let of_one = shapes(&svg, "polyline", BLUE);
    assert_eq!(of_one.iter().map(Vec::len).collect::<Vec<_>>(), [2, 3]);
    for ((x, y), (px, py)) in [(1.0, 1.0), (2.0, 4.0), (3.0, 2.5)].iter().zip(&of_one[1]) {
        // logarithms on the horizontal axis, 10 to 1000 on the labels
        let at = between(&texts, [("10", 1.0), ("1000", 3.0)], *x, true);
        assert!((at - px).abs() <= 1.0, "{at} {px}");
        let at = between(&texts, [("0", 0.0), ("4", 4.0)], *y, false);
        assert!((at - py).abs() <= 1.0, "{at} {py}");
    }
    // what is no number is left out
    let of_two = shapes(&svg, "polyline", ORANGE);
    assert_eq!(of_two.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    // squares: in the legend and at two points
    assert_eq!(shapes(&svg, "polygon", ORANGE).len(), 3);
    // dashes at one height over the whole width, and in the legend
    let dashes = shapes(&svg, "polyline", BLACK);
    let at = between(&texts, [("0", 0.0), ("4", 4.0)], 2.0, false);
    let level = dashes.iter().flatten().filter(|(_, y)| (y - at).abs() <= 1.0).count();
    assert!(level > 40 && dashes.len() > 20, "{level} {}", dashes.len());
}

#[test]
fn names_labels_and_source_are_there() {
    let svg = svg(&lines()).unwrap();
    let texts = texts(&svg);
    for wanted in [
        "Time & size <of one>",
        "panel",
        "size (points)",
        "time (s)",
        "one",
        "two",
        "paper",
        "measured on a machine",
    ] {
        assert_eq!(texts.iter().filter(|(text, ..)| text == wanted).count(), 1, "{wanted}");
    }
    assert!(svg.contains("<title>Time &amp; size &lt;of one&gt;</title>"), "{svg}");
    // nothing beyond the edges
    let document = roxmltree::Document::parse(&svg).unwrap();
    let root = document.root_element();
    let view: Vec<f64> =
        root.attribute("viewBox").unwrap().split(' ').map(|v| v.parse().unwrap()).collect();
    assert_eq!(root.attribute("width").unwrap().parse::<f64>().unwrap() * 10.0, view[2]);
    assert!(texts.iter().all(|(_, x, y)| (0.0..view[2]).contains(x) && (0.0..view[3]).contains(y)));
}

#[test]
fn bars_stand_side_by_side_as_high_as_their_values() {
    let axis =
        Axis { label: "edge".into(), categories: vec!["8".into(), "16".into()], ..Axis::default() };
    let panel = |series| Panel { x: axis.clone(), series, ..Panel::default() };
    let figure = Figure {
        marks: Marks::Bars,
        panels: vec![
            panel(vec![pairs("one", &[(0.0, 2.0), (1.0, 4.0)]), pairs("two", &[(1.0, 1.0)])]),
            panel(vec![pairs("two", &[(0.0, 4.0)])]),
        ],
        ..Figure::default()
    };
    let svg = svg(&figure).unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let rectangles = |colour: &str| -> Vec<[f64; 4]> {
        let own = document
            .descendants()
            .filter(|n| n.has_tag_name("rect") && n.attribute("fill") == Some(colour));
        let value = |n: &roxmltree::Node<'_, '_>, name| n.attribute(name).unwrap().parse().unwrap();
        own.map(|n| ["x", "y", "width", "height"].map(|name| value(&n, name))).collect()
    };
    let (one, two) = (rectangles(BLUE), rectangles(ORANGE));
    // the first of each is that of the legend
    assert_eq!((one.len(), two.len()), (3, 3));
    assert!(
        (one[2][3] / one[1][3] - 2.0).abs() < 0.01 && (one[2][3] / two[1][3] - 4.0).abs() < 0.01
    );
    // the panels of a row have one scale
    assert!((two[2][3] - one[2][3]).abs() <= 1.0);
    // `two` stands to the right of where `one` would
    assert!(two[1][0] > one[2][0] + one[2][2] - 1.0);
    let labels = texts(&svg);
    let names: Vec<_> = labels.iter().filter(|(text, ..)| text == "16").collect();
    assert_eq!(names.len(), 2);
    assert!((names[0].1 - (one[2][0] + one[2][2] + two[1][0]) / 2.0).abs() <= 2.0);
}

#[test]
fn long_legends_and_titles_are_wrapped() {
    let mut figure = lines();
    figure.title = "a title with many words ".repeat(8);
    figure.panels[0].series =
        (0..9).map(|i| pairs(&format!("a rather long name, number {i}"), &[(1.0, 1.0)])).collect();
    let svg = svg(&figure).unwrap();
    let texts = texts(&svg);
    let heights: Vec<f64> =
        texts.iter().filter(|(text, ..)| text.starts_with("a rather")).map(|t| t.2).collect();
    assert_eq!(heights.len(), 9);
    assert!(heights.is_sorted() && heights[8] > heights[0] + 200.0, "{heights:?}");
    assert!(texts.iter().filter(|(text, ..)| text.contains("title with")).count() > 1);
    let document = roxmltree::Document::parse(&svg).unwrap();
    let width: i32 = document.root_element().attribute("width").unwrap().parse().unwrap();
    for (text, x, _) in texts.iter().filter(|(text, ..)| text.starts_with("a rather")) {
        assert!(*x as i32 / GRID + super::layout::width(text, size::TEXT) < width, "{text}");
    }
}

#[test]
fn titles_of_panels_stay_above_their_own_axes() {
    let mut figure = lines();
    let path = "/a/very/long/path/to/the/folder/of/matrices/with/a/very_long_name_of_a_matrix.mtx";
    let panel = |title: String| Panel { title, ..figure.panels[0].clone() };
    figure.panels = vec![
        panel(format!("{path}: gmres on cpu-mt")),
        panel("iterations of everything that was tried on this system ".repeat(6)),
        panel("short".into()),
    ];
    let layout = Layout::of(&figure);
    for (i, (lines, room)) in layout.heads.iter().enumerate() {
        assert_eq!(lines.len(), [2, 2, 1][i]);
        assert_eq!(*room, size::PANEL_HEAD + size::PANEL_TITLE_LINE);
        let (_, _, width, _) = layout.place(i);
        for line in lines {
            let font = text(size::PANEL_TITLE, FontStyle::Bold, INK).font;
            let wide = font.box_size(line).unwrap().0 as i32 / GRID;
            assert!(wide < width - 20, "{line}: {wide} of {width}");
        }
    }
    assert!(layout.heads[0].0[0].contains('…') && layout.heads[1].0[1].contains('…'));
}

#[test]
fn labels_without_room_stand_at_the_end_of_a_line_and_cover_nothing() {
    let names: Vec<String> = (0..9).map(|i| format!("label {i}")).collect();
    let mut crowd = pairs("crowd", &[(20.0, 2.0); 9]);
    crowd.labels.clone_from(&names);
    let mut figure = lines();
    figure.marks = Marks::Scatter;
    figure.panels[0].x.spacing = Spacing::Linear;
    figure.panels[0].series = vec![crowd, pairs("corners", &[(10.0, 1.0), (30.0, 3.0)])];
    let svg = svg(&figure).unwrap();
    let texts = texts(&svg);
    let high = f64::from(units(1.1 * size::LABEL));
    let boxes: Vec<[f64; 4]> = names
        .iter()
        .map(|name| {
            let found: Vec<_> = texts.iter().filter(|(text, ..)| text == name).collect();
            assert_eq!(found.len(), 1, "{name}");
            let wide = f64::from(GRID * super::layout::width(name, size::LABEL));
            let (_, x, y) = *found[0];
            [x - wide / 2.0, y - high / 2.0, x + wide / 2.0, y + high / 2.0]
        })
        .collect();
    for (i, a) in boxes.iter().enumerate() {
        for b in &boxes[..i] {
            let apart = a[2] <= b[0] + 1.0 || b[2] <= a[0] + 1.0 || a[3] <= b[1] + 1.0;
            assert!(apart || b[3] <= a[1] + 1.0, "{a:?} {b:?}");
        }
    }
    // four have room beside the point; a line leads from it to each of the others
    let faint = FAINT_INK;
    let faint = format!("#{:02X}{:02X}{:02X}", faint.0, faint.1, faint.2);
    let leaders = shapes(&svg, "polyline", &faint);
    assert_eq!(leaders.len(), 5, "{leaders:?}");
    let point = leaders[0][0];
    let across = between(&texts, [("10", 10.0), ("30", 30.0)], 20.0, true);
    let down = between(&texts, [("1", 1.0), ("3", 3.0)], 2.0, false);
    assert!((across - point.0).abs() <= 1.0 && (down - point.1).abs() <= 1.0, "{point:?}");
    let mut reached: Vec<usize> = leaders
        .iter()
        .map(|line| {
            let [from, (x, y)] = line[..] else { panic!("{line:?}") };
            assert_eq!(from, point);
            let on = |b: &[f64; 4]| {
                (b[0] - 1.0..=b[2] + 1.0).contains(&x) && (b[1] - 1.0..=b[3] + 1.0).contains(&y)
            };
            boxes.iter().position(on).expect("a label at its end")
        })
        .collect();
    reached.sort_unstable();
    assert_eq!(reached, [4, 5, 6, 7, 8]);
}

#[test]
fn a_figure_without_points_has_axes() {
    let mut figure = lines();
    figure.panels[0].series.clear();
    let empty = texts(&svg(&figure).unwrap());
    assert!(empty.iter().any(|(text, ..)| text == "time (s)"));
    figure.panels.clear();
    assert!(svg(&figure).unwrap().starts_with("<svg"));
}

#[test]
fn images_have_the_size_the_colours_and_the_text() {
    let svg = svg(&lines()).unwrap();
    let image = Pixmap::decode_png(&png(&svg).unwrap()).unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let side = |name| document.root_element().attribute(name).unwrap().parse::<u32>().unwrap();
    assert_eq!((image.width(), image.height()), (2 * side("width"), 2 * side("height")));
    let colours: std::collections::HashSet<_> =
        image.pixels().iter().map(|p| (p.red(), p.green(), p.blue())).collect();
    // shades of antialiased text and lines, and the series' own
    assert!(colours.len() > 50, "{}", colours.len());
    assert!(colours.contains(&(0, 114, 178)) && colours.contains(&(213, 94, 0)));
    // the title is text with a font that is there, on white paper
    let dark = |x: u32, y: u32| image.pixel(x, y).is_some_and(|p| p.red() < 100);
    let ink = (0..side("width") * 2).flat_map(|x| (32..70).map(move |y| (x, y)));
    assert!(ink.filter(|(x, y)| dark(*x, *y)).count() > 500);
    assert_eq!(image.pixel(1, 1).map(PremultipliedColorU8::red), Some(255));
    assert_eq!(
        png("<svg").unwrap_err().to_string().split(':').next(),
        Some("cannot draw the image")
    );
}
