use super::*;

fn chart(series: Vec<Series>) -> Chart {
    Chart {
        title: "Objective".into(),
        x_label: "seconds".into(),
        y_label: "objective".into(),
        log_x: false,
        log_y: false,
        series,
    }
}

fn series(style: Style, points: Vec<(f64, f64)>) -> Series {
    Series { name: "train".into(), style, points }
}

/// Parses the drawing and returns the `d` attributes of the paths drawn after the two of the axes.
fn paths(chart: &Chart) -> Vec<String> {
    let svg = chart.to_svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let paths = document.descendants().filter(|n| n.has_tag_name("path") || n.attribute("d").is_some());
    paths.skip(2).map(|n| n.attribute("d").unwrap().to_string()).collect()
}

#[test]
fn all_text_is_escaped() {
    let mut nasty = chart(vec![series(Style::LineMarkers, vec![(1.0, 2.0), (2.0, 1.0)])]);
    nasty.title = "<script>alert('1')</script> & \"\u{1}\"".into();
    nasty.series[0].name = "</text><a href=\"x\">".into();
    nasty.y_label = "]]>&lt;".into();
    let svg = nasty.to_svg();
    assert!(!svg.contains("<script") && !svg.contains("<a "));
    let document = roxmltree::Document::parse(&svg).unwrap();
    assert!(document.root_element().attribute("aria-label").unwrap().contains("<script>alert('1')"));
    assert!(document.descendants().any(|n| n.text() == Some("]]>&lt;")));
}

#[test]
fn empty_and_single_and_unusable_points() {
    for points in [vec![], vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)]] {
        for style in [Style::Dots, Style::Line, Style::LineMarkers] {
            let svg = chart(vec![series(style, points.clone())]).to_svg();
            roxmltree::Document::parse(&svg).unwrap();
            assert!(svg.contains("nothing to show yet") && !svg.contains("NaN") && !svg.contains("inf"));
        }
    }
    roxmltree::Document::parse(&chart(vec![]).to_svg()).unwrap();
    let svg = chart(vec![series(Style::Line, vec![(3.0, 4.0)])]).to_svg();
    assert!(svg.contains("<circle"), "a lone point is visible");
    let mut log = chart(vec![series(Style::Dots, vec![(0.0, 1.0), (1.0, 1.0), (10.0, -2.0), (10.0, f64::NAN)])]);
    (log.log_x, log.log_y) = (true, true);
    assert_eq!(paths(&log)[0].matches('M').count(), 1);
}

#[test]
fn higher_values_are_higher_on_the_page() {
    let drawn = chart(vec![series(Style::Line, vec![(0.0, 1.0), (1.0, 5.0)])]);
    let path = paths(&drawn)[0].clone();
    let ends: Vec<f64> = path.split(['M', 'L', ' ']).filter_map(|n| n.parse().ok()).collect();
    assert!(ends[0] < ends[2] && ends[1] > ends[3], "{path}");
}

#[test]
fn a_hundred_thousand_points_stay_small_and_keep_their_extremes() {
    let noise = |i: usize| ((i as f64 * 12.9898).sin() * 43758.5453).fract();
    let mut points: Vec<_> = (0..100_000).map(|i| (i as f64, noise(i))).collect();
    points[54_321].1 = 9.0;
    let large = chart(vec![
        series(Style::Dots, points.clone()),
        series(Style::Line, points.clone()),
        series(Style::LineMarkers, points),
    ]);
    let svg = large.to_svg();
    assert!(svg.len() < 300_000, "{}", svg.len());
    let frame = large.frame(large.legend().1).unwrap();
    let (x, y) = frame.place((54_321.0, 9.0));
    let line = &paths(&large)[1];
    assert!(line.contains(&format!("L{x:.1} {y:.1}")), "the spike survives");
}

#[test]
fn dots_share_the_colour_of_their_trend_and_others_do_not() {
    let colours =
        chart(vec![series(Style::Dots, vec![]), series(Style::Line, vec![]), series(Style::LineMarkers, vec![])])
            .colours();
    assert_eq!(colours[0], colours[1]);
    assert_ne!(colours[1], colours[2]);
}

#[test]
fn many_series_wrap_in_the_legend() {
    let many: Vec<_> =
        (0..12).map(|i| Series { name: format!("method number {i}"), ..series(Style::Line, vec![]) }).collect();
    let rows = chart(many).legend().0.matches("<text").count();
    assert!(rows > 3, "{rows}");
    assert_eq!(shortened(&"é".repeat(60)).chars().count(), MAX_NAME + 1);
}
