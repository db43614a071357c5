#include "cli/report/curves.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "cli/report/axis.h"
#include "cli/report/html.h"
#include "cli/report/line_chart.h"

namespace convoy::cli {
namespace {

constexpr std::size_t kTableRows = 24;  // of each run

/// A value over steps.
struct Curve {
  const char* id;
  const char* title;
  const char* y_label;
  std::function<std::vector<Point>(const RunRecord&)> points;
  std::function<std::vector<Point>(const RunRecord&)> marks = {};  ///< of evaluations
  const char* marks_name = "";
  bool smooth = false;
  bool from_zero = false;
};

std::vector<Point> of_steps(const RunRecord& run, double StepPoint::*value) {
  std::vector<Point> points;
  for (const StepPoint& step : run.steps) {
    points.push_back({static_cast<double>(step.step), step.*value});
  }
  return points;
}

std::vector<Point> of_evals(const RunRecord& run, double EvalPoint::*value, double factor = 1) {
  std::vector<Point> points;
  for (const EvalPoint& eval : run.evals) {
    points.push_back({static_cast<double>(eval.step), eval.*value * factor});
  }
  return points;
}

// The first step is warm-up: first allocations, kernels made ready.
std::vector<Point> rates(const RunRecord& run) {
  std::vector<Point> points = of_steps(run, &StepPoint::images_per_s);
  if (points.size() > 1) points.erase(points.begin());
  return points;
}

std::vector<Curve> all_curves() {
  const auto step = [](double StepPoint::*value) {
    return [value](const RunRecord& run) { return of_steps(run, value); };
  };
  const auto eval = [](double EvalPoint::*value, double factor) {
    return [value, factor](const RunRecord& run) { return of_evals(run, value, factor); };
  };
  return {{"loss", "Loss", "loss", step(&StepPoint::loss), eval(&EvalPoint::loss, 1), "evaluation",
           true},
          {"accuracy", "Accuracy on validation images", "%", eval(&EvalPoint::top1, 100),
           eval(&EvalPoint::top5, 100), "top-5"},
          {"rate", "Speed", "images/s", rates, {}, "", true, true},
          {"lr", "Learning rate", "learning rate", step(&StepPoint::lr), {}, "", false, true},
          {"norm",
           "Norm of the gradient, before clipping",
           "norm",
           step(&StepPoint::grad_norm),
           {},
           "",
           true,
           true}};
}

void add_curve(const Curve& curve, const RunRecord& run, int& colour, LineChart& chart) {
  const std::vector<Point> points = curve.points(run);
  const bool smooth = curve.smooth && points.size() >= 200;
  if (smooth) chart.series.push_back({run.name, points, colour, true});
  const bool few = points.size() < 30;
  if (!points.empty()) {
    chart.series.push_back({run.name, smooth ? smoothed(points) : points, colour, false, few});
  }
  ++colour;
  const std::vector<Point> marks = curve.marks ? curve.marks(run) : std::vector<Point>();
  if (!marks.empty()) {
    chart.series.push_back({run.name + ", " + curve.marks_name, marks, colour++, false, true});
  }
}

/// Rows of a run, evenly taken from all.
void add_rows(const Series& series, Table& table) {
  const std::size_t count = series.points.size();
  const std::size_t rows = std::min(count, kTableRows);
  for (std::size_t i = 0; i < rows; ++i) {
    const Point& point = series.points[rows > 1 ? i * (count - 1) / (rows - 1) : 0];
    table.rows.push_back({series.name, short_number(point.x), short_number(point.y)});
  }
}

std::string curve_markup(const Curve& curve, const std::vector<RunRecord>& runs) {
  LineChart chart{.id = std::string("curve-") + curve.id,
                  .title = curve.title,
                  .description = std::string(curve.title) + " over the steps of training",
                  .x_label = "step",
                  .y_label = curve.y_label,
                  .series = {},
                  .from_zero = curve.from_zero};
  int colour = 0;
  for (const RunRecord& run : runs) add_curve(curve, run, colour, chart);
  const bool any = std::any_of(chart.series.begin(), chart.series.end(), [](const Series& series) {
    return std::any_of(series.points.begin(), series.points.end(),
                       [](const Point& point) { return std::isfinite(point.y); });
  });
  if (!any) return "";
  Table table{.caption = curve.title, .head = {"run", "step", curve.y_label}, .rows = {}};
  for (const Series& series : chart.series) {
    if (!series.faint) add_rows(series, table);
  }
  const bool smooth = std::any_of(chart.series.begin(), chart.series.end(),
                                  [](const Series& series) { return series.faint; });
  return figure_markup(
      {.svg_markup = draw_line_chart(chart).markup(),
       .caption = std::string(curve.title) +
                  (smooth ? ": each step pale, the mean of neighbours strong" : ""),
       .numbers = table});
}

}  // namespace

std::string curves_markup(const std::vector<RunRecord>& runs) {
  std::string figures;
  for (const Curve& curve : all_curves()) figures += curve_markup(curve, runs);
  return figures.empty() ? "" : "<div class=\"charts\">\n" + figures + "</div>\n";
}

}  // namespace convoy::cli
