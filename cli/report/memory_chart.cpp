#include "cli/report/memory_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/axis.h"
#include "cli/report/html.h"
#include "cli/report/svg.h"

namespace convoy::cli {
namespace {

constexpr double kWidth = 620;
constexpr double kLeft = 100;
constexpr double kRight = kWidth - 110;  // a bar's number stands behind it
constexpr double kBar = 16;
constexpr double kGap = 12;
constexpr double kTop = 26;
constexpr std::size_t kMostWorkers = 64;

std::string mebibytes(double bytes) {
  return fmt::format("{:.1f} MiB", bytes / (1 << 20));
}

double most(const std::vector<WorkerAccount>& workers) {
  double bytes = 0;
  for (const WorkerAccount& account : workers) {
    bytes = std::max({bytes, account.peak_bytes, account.predicted_peak_bytes});
  }
  return bytes;
}

void draw_bar(Svg& svg, const Scale& x, double y, double bytes, const char* style,
              const char* what) {
  svg.rect({x.begin, y, x.at(bytes) - x.begin, kBar}, style,
           fmt::format("{}: {}", what, mebibytes(bytes)));
  svg.text({x.at(bytes) + 6, y + 12.5}, mebibytes(bytes), "small");
}

void draw_worker(Svg& svg, const Scale& x, const WorkerAccount& account, double y) {
  svg.text({4, y + 13}, fmt::format("worker {}", account.worker), "name");
  if (account.peak_bytes > 0) draw_bar(svg, x, y, account.peak_bytes, "box f0", "measured");
  if (account.predicted_peak_bytes > 0) {
    draw_bar(svg, x, y + kBar, account.predicted_peak_bytes, "plan f0", "predicted");
  }
}

Svg draw_bars(const std::vector<WorkerAccount>& workers, const std::string& id) {
  const std::size_t count = std::min(workers.size(), kMostWorkers);
  const double height = kTop + static_cast<double>(count) * (2 * kBar + kGap);
  Svg svg(id, kWidth, height, "Most memory of each worker",
          "A bar for each worker; the predicted one stands below the measured one");
  const Scale x{0, most(workers), kLeft, kRight};
  for (const double tick : round_ticks(0, most(workers) / (1 << 20), 5)) {
    const double at = x.at(tick * (1 << 20));
    svg.line({at, kTop - 6}, {at, height - kGap}, "grid");
    svg.text({at, kTop - 11}, short_number(tick), "soft middle small");
  }
  svg.text({kLeft - 14, kTop - 11}, "MiB", "soft end small");
  for (std::size_t i = 0; i < count; ++i) {
    draw_worker(svg, x, workers[i], kTop + static_cast<double>(i) * (2 * kBar + kGap));
  }
  return svg;
}

Cell bytes_cell(const WorkerAccount& account, const char* kind, double bytes) {
  return {bytes > 0 ? fmt::format("{:.0f}", bytes) : "–", "",
          attribute("data-worker", std::to_string(account.worker)) + attribute("data-bytes", kind)};
}

Table table_of(const std::vector<WorkerAccount>& workers) {
  Table table{.caption = "Bytes that tensors and buffers held at most",
              .head = {"worker", "measured", "predicted", "measured / predicted"},
              .rows = {}};
  for (const WorkerAccount& account : workers) {
    const bool both = account.peak_bytes > 0 && account.predicted_peak_bytes > 0;
    table.rows.push_back(
        {std::to_string(account.worker), bytes_cell(account, "measured", account.peak_bytes),
         bytes_cell(account, "predicted", account.predicted_peak_bytes),
         both ? fmt::format("{:.3f}", account.peak_bytes / account.predicted_peak_bytes) : "–"});
  }
  return table;
}

}  // namespace

std::string memory_markup(const RunRecord& run, const std::string& id) {
  const std::vector<WorkerAccount>& workers = run.workers->workers;
  if (most(workers) <= 0) return "";
  std::string caption = "Most bytes held at one time. Strong bars measured, pale bars predicted.";
  if (workers.size() > kMostWorkers) {
    caption += fmt::format(" The first {} of {} workers.", kMostWorkers, workers.size());
  }
  return figure_markup({.svg_markup = draw_bars(workers, id).markup(),
                        .caption = caption,
                        .numbers = table_of(workers),
                        .width = FigureWidth::middle});
}

}  // namespace convoy::cli
