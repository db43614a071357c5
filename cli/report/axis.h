// The frame of a chart: a scale from values to places, round ticks, grid and labels.
#pragma once

#include <string>
#include <vector>

#include "cli/report/svg.h"

namespace convoy::cli {

/// Maps values from `low` to `high` onto places from `begin` to `end`.
struct Scale {
  double low = 0;
  double high = 1;
  double begin = 0;
  double end = 1;

  double at(double value) const {
    return begin + (high > low ? (value - low) / (high - low) : 0.5) * (end - begin);
  }
};

/// About `count` round values from `low` to `high`.
std::vector<double> round_ticks(double low, double high, int count);

/// A number in a label or a table: about four digits.
std::string short_number(double value);

/// The plot's area, its scales and what stands at its axes.
struct Frame {
  Scale x;
  Scale y;
  std::string x_label;
  std::string y_label;
};

/// Draws grid, y axis with round ticks and both labels.
void draw_frame(Svg& svg, const Frame& frame);
/// Round ticks of the x axis, whole numbers only.
void draw_x_ticks(Svg& svg, const Frame& frame);
void draw_x_tick(Svg& svg, const Frame& frame, double value, const std::string& label);

}  // namespace convoy::cli
