//! Line charts as SVG for the report; `chart/axis.rs` chooses ranges and ticks, `report.rs` places the result on the page.
//!
//! The drawing is our own. `plotters` writes fixed colours, so a chart could not follow the page from light to dark, and
//! `kuva`, which takes any CSS colour, is 95,000 lines and 40 CPU seconds of build for the two charts we need; neither
//! lets the page set larger text on a phone. Colours here are CSS variables with fallbacks, so a chart saved to a file of
//! its own looks right too.

mod axis;
mod raster;
#[cfg(test)]
mod tests;

use axis::Axis;

/// Width of the drawing in its own units; the page scales it.
const WIDTH: f64 = 480.0;
/// Height of the area inside the axes.
const PLOT_HEIGHT: f64 = 220.0;
/// Room at the right for half of the last tick's label.
const RIGHT: f64 = 22.0;
/// The height of a line of text, at the largest size the page sets.
const ROW: f64 = 22.0;
/// The mean width of a character, at the largest size the page sets.
const CHARACTER: f64 = 9.8;
/// Dots closer than this are one dot: it bounds the size of the page whatever the number of points.
const DOT_CELL: f64 = 2.5;
/// A line keeps the ends and extremes of every such width, which looks the same as keeping all points.
const LINE_CELL: f64 = 0.8;
/// Markers are left out of lines with more points than this, where they would merge.
const MAX_MARKERS: usize = 150;
/// Names of series are cut after this many characters.
const MAX_NAME: usize = 44;
/// Colours for light pages; the report overrides the variables for dark ones. Series beyond them are dashed.
const PALETTE: [&str; 10] =
    ["#2563a8", "#c2571a", "#2f7d4f", "#8b4aa8", "#a8831d", "#b03a5b", "#1b8584", "#7a5230", "#5f6b76", "#c765a6"];

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Light dots. A [`Style::Line`] that follows is taken for their trend and shares their colour.
    Dots,
    /// A plain line, from the smallest x to the largest.
    Line,
    /// A line with a marker, and a tooltip, at every point.
    LineMarkers,
    /// The same, with the band drawn as an error bar at every point.
    LineBars,
    /// A ring around every point, without a line.
    Mark,
}

/// Points under one name.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Its entry in the legend.
    pub(crate) name: String,
    /// How it is drawn.
    pub(crate) style: Style,
    /// (x, y); points that are not finite, or not positive on a logarithmic axis, are skipped.
    pub(crate) points: Vec<(f64, f64)>,
    /// How far y goes down and up at each point, drawn as a band behind the line; empty for none.
    pub(crate) band: Vec<(f64, f64)>,
}

/// A chart of y against x.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// What it shows; the page prints it, the drawing itself only says it to screen readers.
    pub(crate) title: String,
    /// With the unit.
    pub(crate) x_label: String,
    /// With the unit.
    pub(crate) y_label: String,
    /// Logarithmic x axis.
    pub(crate) log_x: bool,
    /// Logarithmic y axis.
    pub(crate) log_y: bool,
    /// Drawn in this order.
    pub(crate) series: Vec<Series>,
}

/// Where data land in the drawing.
struct Frame {
    x: Axis,
    y: Axis,
    left: f64,
    top: f64,
}

impl Frame {
    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (
            self.left + self.x.position(x) * (WIDTH - RIGHT - self.left),
            self.top + (1.0 - self.y.position(y)) * PLOT_HEIGHT,
        )
    }
}

/// Puts the default of every variable in its place: `var(--grid, #e2e2e2)` becomes `#e2e2e2`.
fn without_variables(svg: &str) -> String {
    let mut parts = svg.split("var(--");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (default, rest) = part.split_once(", ").and_then(|(_, rest)| rest.split_once(')')).unwrap_or(("", part));
        plain.extend([default, rest]);
    }
    plain
}

impl Chart {
    /// Whether there is anything to draw.
    pub(crate) fn has_points(&self) -> bool {
        self.series.iter().any(|series| !series.points.is_empty())
    }

    /// The chart as one `<svg>` element, well-formed XML, with all text escaped.
    pub(crate) fn to_svg(&self) -> String {
        let (legend, top) = self.legend();
        let height = top + PLOT_HEIGHT + 2.0 * ROW + 5.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-label=\"{}\" font-family=\"system-ui, sans-serif\" font-size=\"13\">{legend}",
            escape(&self.description())
        );
        match self.frame(top) {
            Some(frame) => {
                svg += &self.axes(&frame);
                let coloured = || self.series.iter().zip(self.colours());
                // All bands lie behind all lines.
                coloured().for_each(|(series, (colour, _))| svg += &self.band(series, &frame, &colour));
                for (series, (colour, dashed)) in coloured() {
                    svg += &draw(series, &self.visible(series), &frame, &colour, dashed);
                }
            }
            None => {
                let (x, y) = (WIDTH / 2.0, top + PLOT_HEIGHT / 2.0);
                svg += &text(x, y, "middle", "var(--muted, #666)", "nothing to show yet");
            }
        }
        svg + "</svg>"
    }

    /// The chart as a file of its own, in plain colours: variables are for pages, and few programs but browsers know them.
    pub(crate) fn to_svg_file(&self) -> String {
        without_variables(&self.to_svg())
    }

    fn visible(&self, series: &Series) -> Vec<(f64, f64)> {
        let shown = |&(x, y): &(f64, f64)| Axis::shows(self.log_x, x) && Axis::shows(self.log_y, y);
        series.points.iter().copied().filter(shown).collect()
    }

    fn frame(&self, top: f64) -> Option<Frame> {
        let points: Vec<_> = self.series.iter().flat_map(|s| self.visible(s)).collect();
        let bands = self.series.iter().flat_map(|s| &s.band).flat_map(|&(low, high)| [low, high]);
        let x = Axis::fit(points.iter().map(|p| p.0), self.log_x, 5)?;
        let y = Axis::fit(points.iter().map(|p| p.1).chain(bands), self.log_y, 5)?;
        let widest = y.ticks.iter().map(|t| t.label.chars().count()).max().unwrap_or(1);
        let left = (9.0 + CHARACTER * widest as f64).clamp(34.0, WIDTH / 3.0);
        Some(Frame { x, y, left, top })
    }

    /// The band of a series: along its upper edge and back along the lower one.
    fn band(&self, series: &Series, frame: &Frame, colour: &str) -> String {
        let mut edges: Vec<(f64, f64, f64)> = series
            .points
            .iter()
            .zip(&series.band)
            .map(|(&(x, _), &(low, high))| (x, low, high))
            .filter(|&(x, low, high)| {
                Axis::shows(self.log_x, x) && Axis::shows(self.log_y, low) && Axis::shows(self.log_y, high)
            })
            .collect();
        if edges.len() < 2 || series.style == Style::LineBars {
            return edges.iter().map(|&(x, low, high)| whisker(frame, x, low, high, colour)).collect();
        }
        edges.sort_by(|a, b| a.0.total_cmp(&b.0));
        let upper = thin_line(&edges.iter().map(|e| frame.place((e.0, e.2))).collect::<Vec<_>>());
        let lower = thin_line(&edges.iter().map(|e| frame.place((e.0, e.1))).collect::<Vec<_>>());
        let round = upper.into_iter().chain(lower.into_iter().rev());
        let path: String =
            round.enumerate().map(|(i, (x, y))| format!("{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' })).collect();
        format!("<path class=\"band\" d=\"{path}Z\" fill=\"{colour}\" fill-opacity=\"0.16\" stroke=\"none\"/>")
    }

    /// One colour per series, and whether its line is dashed; the trend of dots shares their colour.
    fn colours(&self) -> Vec<(String, bool)> {
        let mut next = 0;
        let mut last_style = None;
        self.series
            .iter()
            .map(|series| {
                if !(last_style == Some(Style::Dots) && series.style == Style::Line) {
                    next += 1;
                }
                last_style = Some(series.style);
                let (round, i) = ((next - 1) / PALETTE.len(), (next - 1) % PALETTE.len());
                (format!("var(--series-{}, {})", i + 1, PALETTE[i]), round % 2 == 1)
            })
            .collect()
    }

    /// The legend with the name of the y axis under it, and where the plot begins.
    ///
    /// Entries of one row are one text that flows, so the page may change its size.
    fn legend(&self) -> (String, f64) {
        let mut rows: Vec<(f64, String)> = vec![];
        for (series, (colour, dashed)) in self.series.iter().zip(self.colours()) {
            let name = shortened(&series.name);
            let width = CHARACTER * (name.chars().count() + 5) as f64;
            let (mark, opacity) = match series.style {
                Style::Dots => ("●", "0.45"),
                Style::Line if dashed => ("╍", "1"),
                Style::Line => ("━", "1"),
                Style::LineMarkers | Style::LineBars if dashed => ("●╍", "1"),
                Style::LineMarkers | Style::LineBars => ("●━", "1"),
                Style::Mark => ("◯", "1"),
            };
            let entry = format!(
                "<tspan fill=\"{colour}\" fill-opacity=\"{opacity}\">{mark}</tspan> <tspan>{}</tspan>",
                escape(&name)
            );
            match rows.last_mut() {
                Some((used, row)) if *used + width <= WIDTH => {
                    *used += width;
                    *row += "<tspan dx=\"14\"> </tspan>";
                    *row += &entry;
                }
                _ => rows.push((width, entry)),
            }
        }
        let mut svg = String::new();
        for (i, (_, row)) in rows.iter().enumerate() {
            let y = (i as f64 + 0.75) * ROW;
            svg += &format!("<text x=\"2\" y=\"{y}\" fill=\"currentColor\">{row}</text>");
        }
        let y = (rows.len() as f64 + 0.85) * ROW;
        svg += &text(2.0, y, "start", "var(--muted, #666)", &self.y_label);
        (svg, y + 14.0)
    }

    /// Grid, tick labels and the name of the x axis.
    fn axes(&self, frame: &Frame) -> String {
        let (right, bottom) = (WIDTH - RIGHT, frame.top + PLOT_HEIGHT);
        let muted = "var(--muted, #666)";
        let mut lines = String::new();
        let mut labels = String::new();
        for tick in &frame.y.ticks {
            let y = frame.top + (1.0 - frame.y.position(tick.value)) * PLOT_HEIGHT;
            lines += &format!("M{:.1} {y:.1}H{right:.1}", frame.left);
            labels += &text(frame.left - 7.0, y + 4.5, "end", muted, &tick.label);
        }
        let mut marks = format!("M{:.1} {bottom:.1}H{right:.1}", frame.left);
        for tick in &frame.x.ticks {
            let x = frame.left + frame.x.position(tick.value) * (right - frame.left);
            marks += &format!("M{x:.1} {bottom:.1}v5");
            labels += &text(x, bottom + ROW, "middle", muted, &tick.label);
        }
        labels += &text((frame.left + right) / 2.0, bottom + 2.0 * ROW, "middle", muted, &self.x_label);
        format!(
            "<path d=\"{lines}\" fill=\"none\" stroke=\"var(--grid, #e2e2e2)\"/>\
             <path d=\"{marks}\" fill=\"none\" stroke=\"{muted}\"/>{labels}"
        )
    }

    /// The points as comma-separated values: series, x, y, and the ends of the band where there is one.
    pub(crate) fn to_csv(&self) -> String {
        let mut out = format!("series,{},{},low,high\n", quoted(&self.x_label), quoted(&self.y_label));
        for series in &self.series {
            for (i, (x, y)) in series.points.iter().enumerate() {
                let band = series.band.get(i).map_or(",".to_owned(), |(low, high)| format!("{low},{high}"));
                out += &format!("{},{x},{y},{band}\n", quoted(&series.name));
            }
        }
        out
    }

    /// What a screen reader says in place of the drawing.
    fn description(&self) -> String {
        let mut out = format!("{}. {} against {}.", self.title, self.y_label, self.x_label);
        for series in &self.series {
            let points = self.visible(series);
            out += &match (points.first(), points.last()) {
                (Some(first), Some(last)) => {
                    format!(" {}: {} points, from {:.4} to {:.4}.", series.name, points.len(), first.1, last.1)
                }
                _ => format!(" {}: no points.", series.name),
            };
        }
        out
    }
}

fn draw(series: &Series, points: &[(f64, f64)], frame: &Frame, colour: &str, dashed: bool) -> String {
    let mut placed: Vec<_> = points.iter().map(|&p| frame.place(p)).collect();
    if series.style == Style::Dots {
        let path: String = thin_dots(&placed).iter().map(|(x, y)| format!("M{x:.1} {y:.1}h0")).collect();
        return format!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-opacity=\"0.45\" stroke-width=\"3.2\" \
             stroke-linecap=\"round\"/>"
        );
    }
    if series.style == Style::Mark {
        let ring = |(x, y): &(f64, f64)| {
            format!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"8\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.4\"/>"
            )
        };
        return placed.iter().map(ring).collect();
    }
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut svg = line(&thin_line(&placed), colour, dashed);
    // A line through one point is invisible, so a lone point always gets its marker.
    let has_markers = matches!(series.style, Style::LineMarkers | Style::LineBars);
    if (has_markers && points.len() <= MAX_MARKERS) || points.len() == 1 {
        for &point in points {
            let (x, y) = frame.place(point);
            let tip = escape(&format!("{}: {:.4} at {:.4}", series.name, point.1, point.0));
            svg += &format!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\" fill=\"{colour}\" stroke=\"var(--panel, #fff)\" \
                 stroke-width=\"1.2\"><title>{tip}</title></circle>"
            );
        }
    }
    svg
}

/// The band of a lone point.
fn whisker(frame: &Frame, x: f64, low: f64, high: f64, colour: &str) -> String {
    let ((x, bottom), (_, top)) = (frame.place((x, low)), frame.place((x, high)));
    let path = format!("M{x:.1} {bottom:.1}V{top:.1}");
    format!("<path class=\"band\" d=\"{path}\" stroke=\"{colour}\" stroke-opacity=\"0.45\" stroke-width=\"5\"/>")
}

fn line(points: &[(f64, f64)], colour: &str, dashed: bool) -> String {
    let mut path = String::new();
    for (i, (x, y)) in points.iter().enumerate() {
        path += &format!("{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
    }
    format!(
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-linejoin=\"round\" \
         stroke-linecap=\"round\"{}/>",
        if dashed { " stroke-dasharray=\"6 5\"" } else { "" }
    )
}

/// The first dot of every small cell of the drawing.
fn thin_dots(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut taken = std::collections::HashSet::new();
    let cell = |v: f64| (v / DOT_CELL) as i64;
    points.iter().copied().filter(|&(x, y)| taken.insert((cell(x), cell(y)))).collect()
}

/// The first, lowest, highest and last point of every narrow column; `points` ascend in x.
fn thin_line(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out = vec![];
    for column in points.chunk_by(|a, b| (a.0 / LINE_CELL) as i64 == (b.0 / LINE_CELL) as i64) {
        if column.len() <= 4 {
            out.extend_from_slice(column);
            continue;
        }
        let by_y = |&i: &usize, &j: &usize| column[i].1.total_cmp(&column[j].1);
        let low = (0..column.len()).min_by(by_y).unwrap_or(0);
        let high = (0..column.len()).max_by(by_y).unwrap_or(0);
        let mut keep = vec![0, low, high, column.len() - 1];
        keep.sort_unstable();
        keep.dedup();
        out.extend(keep.into_iter().map(|i| column[i]));
    }
    out
}

fn text(x: f64, y: f64, anchor: &str, fill: &str, content: &str) -> String {
    let content = escape(content);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{fill}\">{content}</text>")
}

/// Text as one field of a CSV file.
pub(crate) fn quoted(text: &str) -> String {
    let plain = !text.contains([',', '"', '\n', '\r']);
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.into(),
    }
}

/// Text for XML content and attributes; characters that XML forbids become the replacement character.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            '\t' | '\n' | '\r' => out.push(' '),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}
