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
    Series { name: "train".into(), style, points, band: vec![] }
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
fn no_two_of_a_dozen_lines_look_alike() {
    let looks: std::collections::HashSet<_> =
        chart((0..12).map(|_| series(Style::Line, vec![])).collect()).colours().into_iter().collect();
    assert_eq!(looks.len(), 12);
}

#[test]
fn bands_lie_around_their_line_and_inside_the_axes() {
    let points = vec![(1.0, 10.0), (2.0, 6.0), (3.0, 5.0)];
    let band = vec![(8.0, 30.0), (5.0, 7.0), (4.5, 5.5)];
    let drawn = chart(vec![Series { band, ..series(Style::Line, points) }]);
    let [area, line] = &paths(&drawn)[..] else { panic!("expected a band and a line") };
    assert!(area.ends_with('Z') && area.matches(['M', 'L']).count() == 6 && !line.ends_with('Z'));
    let frame = drawn.frame(drawn.legend().1).unwrap();
    let (_, top) = frame.place((1.0, 30.0));
    assert!(top >= frame.top && area.contains(&format!(" {top:.1}")), "{area}");
    let mut lone = chart(vec![Series { band: vec![(1.0, 3.0)], ..series(Style::Line, vec![(1.0, 2.0)]) }]);
    assert!(lone.to_svg().contains("class=\"band\""));
    // Down to zero, on an axis that has none: left out, not drawn elsewhere.
    (lone.log_y, lone.series[0].band[0].0) = (true, 0.0);
    assert!(!lone.to_svg().contains("class=\"band\"") && !lone.to_svg().contains("NaN"));
}

#[test]
fn values_to_the_last_bit_as_csv() {
    let mut chart = chart(vec![
        Series { name: "a, \"b\"".into(), ..series(Style::Line, vec![(0.1 + 0.2, 1.0 / 3.0)]) },
        Series { band: vec![(1.0, 3.0)], ..series(Style::Line, vec![(1.0, 2.0)]) },
    ]);
    chart.x_label = "CPU time (s)".into();
    let expected = "series,CPU time (s),objective,low,high\n\
                    \"a, \"\"b\"\"\",0.30000000000000004,0.3333333333333333,,\ntrain,1,2,1,3\n";
    assert_eq!(chart.to_csv(), expected);
}

#[test]
fn many_series_wrap_in_the_legend() {
    let many: Vec<_> =
        (0..12).map(|i| Series { name: format!("method number {i}"), ..series(Style::Line, vec![]) }).collect();
    let rows = chart(many).legend().0.matches("<text").count();
    assert!(rows > 3, "{rows}");
    assert_eq!(shortened(&"é".repeat(60)).chars().count(), MAX_NAME + 1);
}
