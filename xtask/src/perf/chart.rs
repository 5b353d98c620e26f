//! Charts as SVG: panels side by side, lines or points, one legend; readable on light and on dark pages.

use std::fmt::Write as _;

/// Sizes in pixels.
const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 52.0;
const LEGEND_ROW: f64 = 20.0;
const LEGEND_COLUMN: f64 = WIDTH;

/// Colours by class; the page's scheme decides.
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#24292f}.title{font-weight:600;font-size:13px}\
.grid{stroke:#d0d7de;stroke-width:1}.frame{fill:none;stroke:#8c959f}\
.line{fill:none;stroke-width:2}.mark{stroke:none}\
.ours{stroke:#0969da}.mark.ours{fill:#0969da}.theirs{stroke:#bc4c00}.mark.theirs{fill:#bc4c00}\
.bound{stroke:#6e7781}.mark.bound{fill:#6e7781}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.grid{stroke:#30363d}.frame{stroke:#6e7681}\
.ours{stroke:#58a6ff}.mark.ours{fill:#58a6ff}.theirs{stroke:#f0883e}.mark.theirs{fill:#f0883e}\
.bound{stroke:#8b949e}.mark.bound{fill:#8b949e}}";

/// How a value becomes a place.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    Linear,
    /// For positive values.
    Log,
}

impl Scale {
    fn of(self, x: f64) -> f64 {
        match self {
            Scale::Linear => x,
            Scale::Log => x.ln(),
        }
    }
}

/// An axis with its label, unit included.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) label: String,
    pub(super) scale: Scale,
    /// Values with a tick; empty: from 0 in round steps, or where the scale is logarithmic powers of ten, their double
    /// and their fivefold.
    pub(super) ticks: Vec<f64>,
}

/// Origin of a series, which is its colour.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Hue {
    Ours,
    Theirs,
    Bound,
}

/// Points of one name.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) hue: Hue,
    /// The model's number in the chart: its shape of marks and dashes.
    pub(super) shape: usize,
    /// True if neighbours are connected.
    pub(super) is_line: bool,
    /// True if the points have marks.
    pub(super) has_marks: bool,
    /// x, y and a name to show on the point.
    pub(super) points: Vec<(f64, f64, String)>,
}

/// One plot area.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
}

/// An SVG document; `description` is for those who cannot see it.
pub(super) fn svg(description: &str, panels: &[Panel]) -> String {
    let mut names: Vec<&Series> = Vec::new();
    for series in panels.iter().flat_map(|p| &p.series) {
        if !names.iter().any(|known| known.name == series.name) {
            names.push(series);
        }
    }
    let width = WIDTH * panels.len() as f64;
    let columns = (width / LEGEND_COLUMN).floor().max(1.0);
    let rows = (names.len() as f64 / columns).ceil();
    let height = HEIGHT + rows * LEGEND_ROW + 8.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n",
        escaped(description)
    );
    for (i, panel) in panels.iter().enumerate() {
        let _ = writeln!(out, "<g transform=\"translate({} 0)\">", WIDTH * i as f64);
        panel.draw(&mut out);
        out += "</g>\n";
    }
    for (i, series) in names.iter().enumerate() {
        let (column, row) = (i as f64 % columns, (i as f64 / columns).floor());
        let (x, y) = (LEFT + column * LEGEND_COLUMN, HEIGHT + row * LEGEND_ROW + 8.0);
        if series.is_line {
            line(&mut out, series, &[(x, y), (x + 28.0, y)]);
        }
        if series.has_marks {
            mark(&mut out, series, (x + 14.0, y), "");
        }
        text(&mut out, "", "start", (x + 36.0, y + 4.0), &series.name);
    }
    out + "</svg>\n"
}

impl Panel {
    fn draw(&self, out: &mut String) {
        let points = || self.series.iter().flat_map(|s| &s.points);
        let x = Place::new(&self.x, points().map(|p| p.0), (LEFT, WIDTH - RIGHT));
        let y = Place::new(&self.y, points().map(|p| p.1), (HEIGHT - BOTTOM, TOP));
        text(out, "title", "start", (LEFT, 20.0), &self.title);
        for tick in &x.ticks {
            let at = x.at(*tick);
            let _ = writeln!(out, "<path class=\"grid\" d=\"M{at:.1} {TOP:.1}V{:.1}\"/>", HEIGHT - BOTTOM);
            text(out, "", "middle", (at, HEIGHT - BOTTOM + 16.0), &short(*tick));
        }
        for tick in &y.ticks {
            let at = y.at(*tick);
            let _ = writeln!(out, "<path class=\"grid\" d=\"M{LEFT:.1} {at:.1}H{:.1}\"/>", WIDTH - RIGHT);
            text(out, "", "end", (LEFT - 6.0, at + 4.0), &short(*tick));
        }
        let (w, h) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        let _ =
            writeln!(out, "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{w}\" height=\"{h}\"/>");
        text(out, "", "middle", (LEFT + w / 2.0, HEIGHT - BOTTOM + 36.0), &self.x.label);
        let (cx, cy) = (14.0, TOP + h / 2.0);
        let _ = writeln!(
            out,
            "<text text-anchor=\"middle\" transform=\"translate({cx:.1} {cy:.1}) rotate(-90)\">{}</text>",
            escaped(&self.y.label)
        );
        for series in &self.series {
            let places: Vec<(f64, f64)> = series.points.iter().map(|p| (x.at(p.0), y.at(p.1))).collect();
            if series.is_line {
                line(out, series, &places);
            }
            if series.has_marks {
                for (place, point) in places.iter().zip(&series.points) {
                    mark(out, series, *place, &point.2);
                }
            }
        }
    }
}

/// From values to pixels.
struct Place {
    scale: Scale,
    values: (f64, f64),
    pixels: (f64, f64),
    ticks: Vec<f64>,
}

impl Place {
    fn new(axis: &Axis, values: impl Iterator<Item = f64>, pixels: (f64, f64)) -> Place {
        let from = (axis.scale == Scale::Linear).then_some(0.0);
        let all = values.chain(axis.ticks.iter().copied()).chain(from);
        let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let margin = match axis.scale {
            Scale::Log => 1.15_f64.ln(),
            Scale::Linear => 0.04 * (high - low).max(1e-9),
        };
        let values = (axis.scale.of(low) - margin, axis.scale.of(high) + margin);
        let ticks = match axis.scale {
            _ if !axis.ticks.is_empty() => axis.ticks.clone(),
            Scale::Linear => {
                let step = round_step((high - low) / 5.0);
                (0..).map(|i| f64::from(i) * step).take_while(|t| *t <= high).collect()
            }
            Scale::Log => {
                let decades = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
                let all = decades.flat_map(|k| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(k)));
                all.filter(|t| (values.0..=values.1).contains(&axis.scale.of(*t))).collect()
            }
        };
        Place { scale: axis.scale, values, pixels, ticks }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (self.scale.of(value) - self.values.0) / (self.values.1 - self.values.0);
        self.pixels.0 + part * (self.pixels.1 - self.pixels.0)
    }
}

/// The next power of ten, its double or its fivefold.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.max(1e-9).log10().floor());
    let steps = [1.0, 2.0, 5.0].into_iter().map(|m| m * power);
    steps.into_iter().find(|step| *step >= least).unwrap_or(10.0 * power)
}

fn class(hue: Hue) -> &'static str {
    match hue {
        Hue::Ours => "ours",
        Hue::Theirs => "theirs",
        Hue::Bound => "bound",
    }
}

fn line(out: &mut String, series: &Series, places: &[(f64, f64)]) {
    let points: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let dashes = ["", " stroke-dasharray=\"7 4\"", " stroke-dasharray=\"2 3\""][series.shape % 3];
    let _ = writeln!(
        out,
        "<polyline class=\"line {}\"{dashes} points=\"{}\"/>",
        class(series.hue),
        points.join(" ")
    );
}

/// A disc, a square or a triangle, with a name that browsers show under the pointer.
fn mark(out: &mut String, series: &Series, (x, y): (f64, f64), name: &str) {
    let class = class(series.hue);
    let title = if name.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(name)) };
    let _ = match series.shape % 3 {
        0 => writeln!(
            out,
            "<circle class=\"mark {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\">{title}</circle>"
        ),
        1 => {
            let (x, y) = (x - 3.5, y - 3.5);
            writeln!(
                out,
                "<rect class=\"mark {class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"7\" height=\"7\">{title}</rect>"
            )
        }
        _ => {
            let d = format!("M{:.1} {:.1}h9l-4.5 -8z", x - 4.5, y + 4.0);
            writeln!(out, "<path class=\"mark {class}\" d=\"{d}\">{title}</path>")
        }
    };
}

fn text(out: &mut String, class: &str, anchor: &str, (x, y): (f64, f64), content: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let content = escaped(content);
    let _ = writeln!(out, "<text{class} text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{content}</text>");
}

/// A tick's value: `500`, `20k`, `32768`, `0.5`.
fn short(x: f64) -> String {
    let (x, unit) = if x >= 1e4 && x % 100.0 == 0.0 { (x / 1e3, "k") } else { (x, "") };
    format!("{}{unit}", (x * 100.0).round() / 100.0)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, shape: usize, points: &[(f64, f64)]) -> Series {
        let points = points.iter().map(|(x, y)| (*x, *y, format!("{x} & {y}"))).collect();
        Series { name: name.into(), hue: Hue::Ours, shape, is_line: true, has_marks: true, points }
    }

    fn axis(label: &str, scale: Scale, ticks: &[f64]) -> Axis {
        Axis { label: label.into(), scale, ticks: ticks.to_vec() }
    }

    /// Elements in order, each end matched with its beginning.
    fn check(text: &str) {
        let mut open: Vec<&str> = Vec::new();
        for part in text.split('<').skip(1) {
            let (tag, rest) = part.split_once('>').expect("a tag ends");
            assert!(!rest.contains('&') || rest.contains("&amp;") || rest.contains("&lt;"), "{rest}");
            let name = tag.split_whitespace().next().expect("a tag has a name");
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "{text}"),
                None if tag.ends_with('/') => {}
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "{open:?}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn a_chart_is_well_formed_and_has_its_labels_and_lines() {
        let panel = Panel {
            title: "a < b".into(),
            x: axis("sequences", Scale::Log, &[1.0, 2.0, 4.0]),
            y: axis("tokens/s", Scale::Log, &[]),
            series: vec![
                series("one", 0, &[(1.0, 90.0), (2.0, 170.0), (4.0, 1200.0)]),
                series("two", 1, &[(1.0, 20_000.0)]),
                series("three", 2, &[(4.0, 10.0)]),
            ],
        };
        let text = svg("what & why", &[panel.clone(), Panel { title: "other".into(), ..panel }]);
        check(&text);
        for label in ["sequences", "tokens/s", "one", "two", "three", "other", ">20k<", ">500<", "a &lt; b"] {
            assert!(text.contains(label), "{label} in {text}");
        }
        // Two panels and the legend.
        assert_eq!(text.matches("<polyline").count(), 9);
        assert_eq!(text.matches("<circle").count(), 7);
        assert!(text.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn places_keep_order_and_stay_within_the_frame() {
        let axis = axis("depth", Scale::Linear, &[0.0, 2048.0, 32768.0]);
        let place = Place::new(&axis, [0.0, 32768.0].into_iter(), (LEFT, WIDTH - RIGHT));
        let at: Vec<f64> = axis.ticks.iter().map(|t| place.at(*t)).collect();
        assert!(LEFT < at[0] && at[0] < at[1] && at[1] < at[2] && at[2] < WIDTH - RIGHT, "{at:?}");
        // One value alone has a place, too.
        assert!(Place::new(&axis, [7.0].into_iter(), (0.0, 1.0)).at(7.0).is_finite());
        assert_eq!([500.0, 20_000.0, 32_768.0, 0.5].map(short), ["500", "20k", "32768", "0.5"]);
        // Ticks of a linear axis without any begin at 0.
        let axis = Axis { ticks: Vec::new(), ..axis };
        let place = Place::new(&axis, [132.0, 441.0].into_iter(), (HEIGHT - BOTTOM, TOP));
        assert_eq!(place.ticks, [0.0, 100.0, 200.0, 300.0, 400.0]);
    }
}
