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

constexpr double kWidth = 760;
constexpr double kPlotHeight = 280;

/// The rows of one mode of one run, by ascending split. Rows of the whole batch stand apart.
struct Line {
  std::string name;
  int colour = 0;
  bool flat = false;
  std::vector<SplitRow> rows;
};

// The whole batch is one micro-batch: its row is a level that the sweep is held against.
bool is_whole(const SplitRow& row, double batch) {
  return row.split >= batch && row.mode != "pipeline";
}

double batch_of(const RunRecord& run) {
  double batch = 0;
  for (const SplitRow& row : run.splits) {
    batch = std::max({batch, row.split, std::isfinite(row.batch) ? row.batch : 0});
  }
  return batch;
}

void add_row(std::vector<Line>& lines, const std::string& name, bool flat, const SplitRow& row) {
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
    const double batch = batch_of(run);
    const std::string prefix = runs.size() > 1 ? run.name + ": " : "";
    for (const SplitRow& row : run.splits) {
      const bool whole = is_whole(row, batch);
      add_row(lines, prefix + row.mode + (whole ? ", whole batch" : ", in micro-batches"), whole,
              row);
    }
  }
  for (Line& line : lines) {
    std::stable_sort(line.rows.begin(), line.rows.end(),
                     [](const SplitRow& a, const SplitRow& b) { return a.split < b.split; });
  }
  return lines;
}

/// Splits stand at even distances: they are chosen, not measured.
std::vector<double> places_of(const std::vector<Line>& lines) {
  std::set<double> splits;
  for (const Line& line : lines) {
    for (const SplitRow& row : line.rows) {
      if (!line.flat) splits.insert(row.split);
    }
  }
  return {splits.begin(), splits.end()};
}

Frame frame_of(const std::vector<Line>& lines, std::size_t places) {
  double most = 0;
  for (const Line& line : lines) {
    for (const SplitRow& row : line.rows)
      most = std::max(most, row.images_per_s + row.rate_error());
  }
  return {.x = {-0.5, std::max(static_cast<double>(places), 1.0) - 0.5, 54, kWidth - 14},
          .y = {0, most * 1.08, 28 + kPlotHeight, 28},
          .x_label = "images in a micro-batch",
          .y_label = "images/s"};
}

std::string tip_of(const SplitRow& row) {
  return fmt::format("{}{}, micro-batches of {}: {} ± {} images/s, {} ± {} s", row.mode,
                     row.schedule.empty() ? "" : " " + row.schedule, short_number(row.split),
                     short_number(row.images_per_s), short_number(row.rate_error()),
                     short_number(row.mean_s), short_number(row.std_s));
}

void draw_bar(Svg& svg, const Frame& frame, double x, const SplitRow& row, const std::string& c) {
  const double high = frame.y.at(row.images_per_s + row.rate_error());
  const double low = frame.y.at(row.images_per_s - row.rate_error());
  svg.line({x, low}, {x, high}, "error c" + c);
  svg.line({x - 5, low}, {x + 5, low}, "error c" + c);
  svg.line({x - 5, high}, {x + 5, high}, "error c" + c);
  svg.circle({x, frame.y.at(row.images_per_s)}, 3.5, "f" + c, tip_of(row));
}

void draw_level(Svg& svg, const Frame& frame, const Line& line, const std::string& c) {
  for (const SplitRow& row : line.rows) {
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
  for (const SplitRow& row : line.rows) {
    const auto place = std::lower_bound(places.begin(), places.end(), row.split) - places.begin();
    const double x = frame.x.at(static_cast<double>(place));
    draw_bar(svg, frame, x, row, c);
    curve.push_back({x, frame.y.at(row.images_per_s)});
  }
  if (curve.size() > 1) svg.polyline(curve, "curve c" + c);
}

std::vector<Cell> row_cells(const SplitRow& row) {
  return {
      row.mode,
      row.schedule,
      short_number(row.split),
      short_number(row.mean_s),
      short_number(row.std_s),
      Cell(short_number(row.images_per_s), "", attribute("data-split", short_number(row.split))),
      short_number(row.ceiling),
      std::isfinite(row.share_of_ceiling) ? fmt::format("{:.1f} %", 100 * row.share_of_ceiling)
                                          : "–"};
}

Table table_of(const std::vector<RunRecord>& runs) {
  Table table{.caption = "Mean and deviation over repeats",
              .head = {"mode", "schedule", "split", "mean s", "std s", "images/s", "ceiling",
                       "share of ceiling"},
              .rows = {}};
  if (runs.size() > 1) table.head.insert(table.head.begin(), "run");
  for (const RunRecord& run : runs) {
    for (const SplitRow& row : run.splits) {
      table.rows.push_back(row_cells(row));
      if (runs.size() > 1) table.rows.back().insert(table.rows.back().begin(), Cell(run.name));
    }
  }
  return table;
}

std::string facts_markup(const std::vector<RunRecord>& runs) {
  std::string markup;
  for (const RunRecord& run : runs) {
    if (run.split_facts.empty()) continue;
    Table table{.caption = run.name + ": what holds for the sweep", .head = {}, .rows = {}};
    for (const auto& [name, value] : run.split_facts) table.rows.push_back({name, value});
    table.style = "left";
    markup += table_markup(table);
  }
  return markup;
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
  return figure_markup({.svg_markup = svg->markup(),
                        .caption = "Images/s of a training step by split. Bars: one deviation over "
                                   "repeats. Dashed: the whole batch in one piece.",
                        .numbers = table_of(runs),
                        .width = FigureWidth::middle}) +
         facts_markup(runs);
}

}  // namespace convoy::cli
