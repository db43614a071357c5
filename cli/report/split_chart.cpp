#include "cli/report/split_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/report/axis.h"
#include "cli/report/html.h"
#include "cli/report/line_chart.h"
#include "cli/report/style.h"

namespace convoy::cli {
namespace {

constexpr double kWidth = 660;
constexpr double kPlotHeight = 280;

/// The rows of one mode of one run, by ascending split. Rows of the whole batch stand apart.
struct Line {
  std::string name;
  int colour = 0;
  bool flat = false;
  std::vector<SweepRow> rows;
};

/// "pipeline, in micro-batches", "pipeline 2 x 2, in micro-batches".
std::string name_of(const SweepRow& row) {
  std::string name = row.mode;
  if (row.replicas > 1 && row.stages > 1) {
    name += fmt::format(" {} x {}", row.replicas, row.stages);
  }
  return name + (row.whole() ? ", whole batch" : ", in micro-batches");
}

void add_row(std::vector<Line>& lines, const std::string& name, bool flat, const SweepRow& row) {
  auto line =
      std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.name == name; });
  if (line == lines.end()) {
    lines.push_back({name, static_cast<int>(lines.size()), flat, {}});
    line = lines.end() - 1;
  }
  line->rows.push_back(row);
}

std::vector<Line> lines_of(const std::vector<RunRecord>& runs) {
  std::vector<Line> lines;
  for (const RunRecord& run : runs) {
    const std::string prefix = runs.size() > 1 ? run.name + ": " : "";
    for (const SweepRow& row : run.splits) {
      add_row(lines, prefix + name_of(row), row.whole(), row);
    }
  }
  for (Line& line : lines) {
    std::stable_sort(line.rows.begin(), line.rows.end(),
                     [](const SweepRow& a, const SweepRow& b) { return a.split < b.split; });
  }
  return lines;
}

/// Splits stand at even distances: they are chosen, not measured.
std::vector<double> places_of(const std::vector<Line>& lines) {
  std::set<double> splits;
  for (const Line& line : lines) {
    for (const SweepRow& row : line.rows) {
      if (!line.flat) splits.insert(row.split);
    }
  }
  return {splits.begin(), splits.end()};
}

Frame frame_of(const std::vector<Line>& lines, std::size_t places) {
  double most = 0;
  for (const Line& line : lines) {
    for (const SweepRow& row : line.rows)
      most = std::max(most, row.images_per_s + row.rate_error());
  }
  return {.x = {-0.5, std::max(static_cast<double>(places), 1.0) - 0.5, 54, kWidth - 14},
          .y = {0, most * 1.08, 28 + kPlotHeight, 28},
          .x_label = "images in a micro-batch",
          .y_label = "images/s"};
}

std::string tip_of(const SweepRow& row) {
  return fmt::format("{}{}, micro-batches of {}: {} ± {} images/s, {} ± {} s", row.mode,
                     row.schedule.empty() ? "" : " " + row.schedule, short_number(row.split),
                     short_number(row.images_per_s), short_number(row.rate_error()),
                     short_number(row.mean_s), short_number(row.std_s));
}

// Each repeat as a faint dot beside the bar.
void draw_repeats(Svg& svg, const Frame& frame, double x, const SweepRow& row,
                  const std::string& c) {
  for (const double seconds : row.seconds) {
    if (!(seconds > 0)) continue;
    const double rate = row.images_per_s * row.mean_s / seconds;
    if (std::isfinite(rate)) svg.circle({x + 9, frame.y.at(rate)}, 2, "repeat f" + c);
  }
}

void draw_bar(Svg& svg, const Frame& frame, double x, const SweepRow& row, const std::string& c) {
  const double high = frame.y.at(row.images_per_s + row.rate_error());
  const double low = frame.y.at(row.images_per_s - row.rate_error());
  svg.line({x, low}, {x, high}, "error c" + c);
  svg.line({x - 5, low}, {x + 5, low}, "error c" + c);
  svg.line({x - 5, high}, {x + 5, high}, "error c" + c);
  svg.circle({x, frame.y.at(row.images_per_s)}, 3.5, "f" + c, tip_of(row));
}

void draw_level(Svg& svg, const Frame& frame, const Line& line, const std::string& c) {
  for (const SweepRow& row : line.rows) {
    const double top = frame.y.at(row.images_per_s + row.rate_error());
    const double bottom = frame.y.at(row.images_per_s - row.rate_error());
    svg.rect({frame.x.begin, top, frame.x.end - frame.x.begin, bottom - top}, "band f" + c,
             tip_of(row));
    const double y = frame.y.at(row.images_per_s);
    svg.line({frame.x.begin, y}, {frame.x.end, y}, "flat c" + c);
  }
}

void draw_sweep(Svg& svg, const Frame& frame, const std::vector<double>& places, const Line& line,
                const std::string& c) {
  std::vector<Point> curve;
  for (const SweepRow& row : line.rows) {
    const auto place = std::lower_bound(places.begin(), places.end(), row.split) - places.begin();
    const double x = frame.x.at(static_cast<double>(place));
    draw_bar(svg, frame, x, row, c);
    draw_repeats(svg, frame, x, row, c);
    curve.push_back({x, frame.y.at(row.images_per_s)});
  }
  if (curve.size() > 1) svg.polyline(curve, "curve c" + c);
}

std::string share_text(double share) {
  return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "–";
}

std::string times_text(double factor) {
  return std::isfinite(factor) ? fmt::format("{:.2f}x", factor) : "–";
}

std::vector<Cell> row_cells(const SweepRow& row) {
  return {row.mode,
          Cell(short_number(row.split), "", attribute("data-split", short_number(row.split))),
          Cell(short_number(row.images_per_s), "", attribute("data-rate", row.mode)),
          fmt::format("{} ± {}", short_number(row.mean_s), short_number(row.std_s)),
          times_text(row.speed_up),
          times_text(row.speed_up_same_split),
          Cell(times_text(row.ceiling), share_text(row.share_of_ceiling), ""),
          Cell(share_text(row.bubble), share_text(row.bubble_predicted), ""),
          row.schedule.empty() ? "–" : row.schedule + (row.cut.empty() ? "" : " at " + row.cut)};
}

Table table_of(const std::vector<RunRecord>& runs) {
  Table table{.caption =
                  "Speed-up: over one device with the whole batch. Of equal: over one "
                  "device in the same micro-batches. Below the ceiling: the share reached; "
                  "below the bubble: the prediction.",
              .head = {"mode", "split", "images/s", "seconds", "speed-up", "of equal", "ceiling",
                       "bubble", "schedule"},
              .rows = {}};
  if (runs.size() > 1) table.head.insert(table.head.begin(), "run");
  for (const RunRecord& run : runs) {
    for (const SweepRow& row : run.splits) {
      table.rows.push_back(row_cells(row));
      if (runs.size() > 1) table.rows.back().insert(table.rows.back().begin(), Cell(run.name));
    }
  }
  return table;
}

std::string facts_markup(const RunRecord& run) {
  std::string markup;
  for (const std::string& verdict : run.split_verdicts) markup += paragraph(verdict);
  if (run.split_facts.empty()) return markup;
  Table table{.caption = run.name + ": what holds for the sweep", .head = {}, .rows = {}};
  for (const auto& [name, value] : run.split_facts) table.rows.push_back({name, value});
  table.style = "left";
  return markup + details_markup("Settings of the sweep", table_markup(table));
}

}  // namespace

std::optional<Svg> draw_split_chart(const std::vector<RunRecord>& runs) {
  const std::vector<Line> lines = lines_of(runs);
  if (lines.empty()) return {};
  const std::vector<double> places = places_of(lines);
  const Frame frame = frame_of(lines, places.size());
  Svg svg(
      "split-sweep", kWidth, 0, "Images per second by the images of a micro-batch",
      "One point a split with its deviation over repeats; dashed levels are of the whole batch");
  draw_frame(svg, frame);
  for (std::size_t i = 0; i < places.size(); ++i) {
    draw_x_tick(svg, frame, static_cast<double>(i), short_number(places[i]));
  }
  double y = frame.y.begin + 58;
  for (const Line& line : lines) {
    const std::string c = std::to_string(line.colour % kSeriesColours);
    if (line.flat) draw_level(svg, frame, line, c);
    if (!line.flat) draw_sweep(svg, frame, places, line, c);
    y = draw_legend_line(svg, y, line.colour, line.name, line.flat ? "flat" : "curve");
  }
  svg.set_height(y - 10);
  return svg;
}

std::string split_markup(const std::vector<RunRecord>& runs) {
  const auto svg = draw_split_chart(runs);
  if (!svg) return "";
  std::string markup =
      figure_markup({.svg_markup = svg->markup(),
                     .caption = "Images/s of a training step by split. Bars: one deviation over "
                                "repeats, each repeat a dot. Dashed: the whole batch in one piece.",
                     .numbers = table_of(runs),
                     .width = FigureWidth::middle});
  for (const RunRecord& run : runs) markup += facts_markup(run);
  return markup;
}

}  // namespace convoy::cli
