// Curves over steps or epochs, several runs laid over each other.
#pragma once

#include <string>
#include <vector>

#include "cli/report/svg.h"

namespace convoy::cli {

struct Series {
  std::string name;
  std::vector<Point> points;  ///< by ascending x; one that is not finite breaks the curve
  int colour = 0;
  bool faint = false;  ///< raw values behind a smoothed curve; not named
  bool dots = false;
};

struct LineChart {
  std::string id;
  std::string title;
  std::string description;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
  bool from_zero = false;
};

/// Long series are thinned to what a screen can show: the least and the largest value of each
/// piece.
Svg draw_line_chart(const LineChart& chart);

/// "0.5 at 12".
std::string chart_value(const Point& point);
/// A sample of a line and its name; the next line's place. `kind` is a style of lines.
double draw_legend_line(Svg& svg, double y, int colour, const std::string& name,
                        const std::string& kind);

/// Each point's mean with its neighbours, about 1/50 of all: where noise ends.
std::vector<Point> smoothed(const std::vector<Point>& points);

}  // namespace convoy::cli
