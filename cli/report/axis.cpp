#include "cli/report/axis.h"

#include <fmt/format.h>

#include <cmath>

namespace convoy::cli {
namespace {

/// 1, 2 or 5 times a power of ten, not below `least`.
double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * 0.999) return factor * power;
  }
  return 10 * power;
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  if (!(high > low) || !std::isfinite(high - low)) return {low};
  const double step = round_step((high - low) / count);
  const double first = std::ceil(low / step - 1e-9), last = std::floor(high / step + 1e-9);
  std::vector<double> ticks;
  for (int i = 0; i <= last - first; ++i) {
    ticks.push_back((first + i) * step + 0.0);  // no -0
  }
  return ticks;
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return "–";
  if (value != 0 && std::abs(value) < 1e-4) return fmt::format("{:.2e}", value);
  if (std::abs(value) >= 1e4 && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

void draw_frame(Svg& svg, const Frame& frame) {
  for (const double tick : round_ticks(frame.y.low, frame.y.high, 6)) {
    const double y = frame.y.at(tick);
    svg.line({frame.x.begin, y}, {frame.x.end, y}, "grid");
    svg.text({frame.x.begin - 6, y + 4}, short_number(tick), "soft end small");
  }
  svg.line({frame.x.begin, frame.y.begin}, {frame.x.end, frame.y.begin}, "axis");
  svg.text({frame.x.begin, frame.y.end - 8}, frame.y_label, "name");
  svg.text({frame.x.end, frame.y.begin + 34}, frame.x_label, "soft end small");
}

void draw_x_ticks(Svg& svg, const Frame& frame) {
  for (const double tick : round_ticks(frame.x.low, frame.x.high, 6)) {
    if (tick == std::floor(tick)) draw_x_tick(svg, frame, tick, short_number(tick));
  }
}

void draw_x_tick(Svg& svg, const Frame& frame, double value, const std::string& label) {
  const double x = frame.x.at(value);
  svg.line({x, frame.y.begin}, {x, frame.y.begin + 4}, "axis");
  svg.text({x, frame.y.begin + 18}, label, "soft middle small");
}

}  // namespace convoy::cli
