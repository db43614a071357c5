#include "cli/report/line_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/report/axis.h"
#include "cli/report/style.h"

namespace convoy::cli {
namespace {

constexpr double kWidth = 520;
constexpr double kPlotHeight = 210;
constexpr std::size_t kPieces = 300;
constexpr std::size_t kLongestName = 60;

bool finite(const Point& point) {
  return std::isfinite(point.x) && std::isfinite(point.y);
}

std::vector<Point> thinned(const std::vector<Point>& points) {
  if (points.size() <= 2 * kPieces) return points;
  std::vector<Point> kept;
  for (std::size_t piece = 0; piece < kPieces; ++piece) {
    const auto begin =
        points.begin() + static_cast<std::ptrdiff_t>(piece * points.size() / kPieces);
    const auto end =
        points.begin() + static_cast<std::ptrdiff_t>((piece + 1) * points.size() / kPieces);
    auto [low, high] =
        std::minmax_element(begin, end, [](const Point& a, const Point& b) { return a.y < b.y; });
    if (low > high) std::swap(low, high);
    kept.push_back(*low);
    if (low != high) kept.push_back(*high);
  }
  return kept;
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /// At least a little wide.
  void widen() {
    if (low > high) low = high = 0;
    const double margin = high > low ? (high - low) * 0.06 : std::max(std::abs(high) * 0.1, 1e-9);
    low -= margin;
    high += margin;
  }
};

Frame frame_of(const LineChart& chart) {
  Range x;
  Range y;
  if (chart.from_zero) y.add(0);
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      if (!finite(point)) continue;
      x.add(point.x);
      y.add(point.y);
    }
  }
  const double floor = y.low;
  if (x.low >= x.high) x.widen();
  y.widen();
  if (floor >= 0) y.low = std::max(y.low, 0.0);
  return {.x = {x.low, x.high, 54, kWidth - 14},
          .y = {y.low, y.high, 26 + kPlotHeight, 26},
          .x_label = chart.x_label,
          .y_label = chart.y_label};
}

std::string colour(const char* prefix, const Series& series) {
  return prefix + std::to_string(series.colour % kSeriesColours);
}

void draw_dots(Svg& svg, const Frame& frame, const Series& series) {
  for (const Point& point : thinned(series.points)) {
    if (!finite(point)) continue;
    svg.circle({frame.x.at(point.x), frame.y.at(point.y)}, 3, colour("f", series),
               series.name + ": " + chart_value(point));
  }
}

void draw_series(Svg& svg, const Frame& frame, const Series& series) {
  const std::string style = (series.faint ? "faint " : "curve ") + colour("c", series);
  std::vector<Point> piece;
  const auto draw = [&] {
    if (piece.size() > 1) svg.polyline(piece, style);
    piece.clear();
  };
  for (const Point& point : thinned(series.points)) {
    if (!finite(point)) {
      draw();
    } else {
      piece.push_back({frame.x.at(point.x), frame.y.at(point.y)});
    }
  }
  draw();
  if (series.dots) draw_dots(svg, frame, series);
}

}  // namespace

std::string chart_value(const Point& point) {
  return short_number(point.y) + " at " + short_number(point.x);
}

double draw_legend_line(Svg& svg, double y, int colour, const std::string& name,
                        const std::string& kind) {
  svg.line({54, y - 4}, {78, y - 4}, kind + " c" + std::to_string(colour % kSeriesColours));
  const bool fits = name.size() <= kLongestName;
  svg.text({86, y}, fits ? name : "…" + name.substr(name.size() - kLongestName), "small");
  return y + 18;
}

Svg draw_line_chart(const LineChart& chart) {
  const Frame frame = frame_of(chart);
  Svg svg(chart.id, kWidth, 0, chart.title, chart.description);
  draw_frame(svg, frame);
  draw_x_ticks(svg, frame);
  for (const Series& series : chart.series) draw_series(svg, frame, series);
  double y = frame.y.begin + 56;
  const auto named = std::count_if(chart.series.begin(), chart.series.end(),
                                   [](const Series& s) { return !s.faint; });
  for (const Series& series : chart.series) {
    if (!series.faint && named > 1)
      y = draw_legend_line(svg, y, series.colour, series.name, "curve");
  }
  svg.set_height(y - 12);
  return svg;
}

std::vector<Point> smoothed(const std::vector<Point>& points) {
  const std::size_t reach = points.size() / 100;
  std::vector<double> sums(points.size() + 1);
  for (std::size_t i = 0; i < points.size(); ++i) sums[i + 1] = sums[i] + points[i].y;
  std::vector<Point> smooth;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t begin = i - std::min(reach, i);
    const std::size_t end = std::min(i + reach + 1, points.size());
    smooth.push_back({points[i].x, (sums[end] - sums[begin]) / static_cast<double>(end - begin)});
  }
  return smooth;
}

}  // namespace convoy::cli
