#include "cli/report/breakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "cli/report/axis.h"
#include "cli/report/html.h"
#include "cli/report/svg.h"

namespace convoy::cli {
namespace {

constexpr double kWidth = 1100;
constexpr double kLeft = 150;
constexpr double kRight = kWidth - 24;
constexpr double kBar = 20;
constexpr double kPlanBar = 13;
constexpr double kGap = 12;
constexpr double kTop = 26;
constexpr std::size_t kMostBars = 64;   // workers drawn
constexpr std::size_t kMostRows = 512;  // workers in the table

std::string hundredths(double share) {
  return fmt::format("{:.2f} %", 100 * share);
}

double share(const StateSeconds& seconds, std::size_t state) {
  const double wall = total(seconds);
  return wall > 0 ? seconds[state] / wall : 0;
}

void draw_bar(Svg& svg, const StateSeconds& seconds, double y, double height, const char* style) {
  double x = kLeft;
  for (std::size_t state = 0; state < seconds.size(); ++state) {
    const double part = share(seconds, state);
    const double width = part * (kRight - kLeft);
    if (width <= 0) continue;
    svg.rect({x, y, width, height}, fmt::format("{} {}", style, kStateNames[state]),
             fmt::format("{}: {}", kStateNames[state], hundredths(part)));
    if (width > 52 && height > 15) {
      svg.text({x + width / 2, y + height / 2 + 4}, fmt::format("{:.1f} %", 100 * part),
               state == 0 || state == 2 || state == 6 || state >= 8 ? "inbox" : "inbox dark");
    }
    x += width;
  }
}

std::string stages_text(const WorkerAccount& account) {
  return fmt::format("stage {}", fmt::join(account.stages, ", "));
}

Svg draw_bars(const WorkersEvent& event, const std::string& id) {
  Svg svg(id, kWidth, 0, "Where each worker's time went",
          "A bar for each worker, divided among its states; the predicted bar stands below");
  const Scale x{0, 100, kLeft, kRight};
  const std::size_t workers = std::min(event.workers.size(), kMostBars);
  const double height = kTop + static_cast<double>(workers) * (kBar + kPlanBar + kGap) - kGap;
  for (const double tick : round_ticks(0, 100, 10)) {
    svg.line({x.at(tick), kTop - 6}, {x.at(tick), height}, "grid");
    svg.text({x.at(tick), kTop - 11}, fmt::format("{} %", tick), "soft middle small");
  }
  double y = kTop;
  for (std::size_t i = 0; i < workers; ++i, y += kBar + kPlanBar + kGap) {
    const WorkerAccount& account = event.workers[i];
    svg.text({4, y + 14}, fmt::format("worker {}", account.worker), "name");
    if (!account.stages.empty()) svg.text({4, y + 29}, stages_text(account), "soft small");
    draw_bar(svg, account.measured, y, kBar, "box");
    if (total(account.predicted) > 0) draw_bar(svg, account.predicted, y + kBar, kPlanBar, "plan");
  }
  svg.set_height(height + 2);
  return svg;
}

/// States that any worker was in, or was forecast to be in.
std::vector<std::size_t> states_of(const WorkersEvent& event) {
  std::vector<std::size_t> states;
  for (std::size_t state = 0; state < kWorkerStates; ++state) {
    const bool any = std::any_of(
        event.workers.begin(), event.workers.end(), [state](const WorkerAccount& account) {
          return account.measured[state] > 0 || account.predicted[state] > 0;
        });
    if (any) states.push_back(state);
  }
  return states;
}

std::string data_of(const WorkerAccount& account, const char* state) {
  return attribute("data-worker", std::to_string(account.worker)) + attribute("data-state", state);
}

/// A share with the forecast's below it.
Cell share_cell(const WorkerAccount& account, const char* state, double measured, double planned) {
  const bool forecast = total(account.predicted) > 0;
  return {hundredths(measured), forecast ? hundredths(planned) : "", data_of(account, state)};
}

double bubble_of(const StateSeconds& seconds) {
  const double wall = total(seconds);
  return wall > 0 ? bubble(seconds) / wall : 0;
}

double sum_of_shares(const StateSeconds& seconds) {
  double sum = 0;
  for (std::size_t state = 0; state < seconds.size(); ++state) sum += share(seconds, state);
  return sum;
}

std::vector<Cell> row_of(const WorkerAccount& account, const std::vector<std::size_t>& states) {
  std::vector<Cell> row = {fmt::format("{}", account.worker),
                           fmt::format("{}", fmt::join(account.stages, ", "))};
  for (const std::size_t state : states) {
    row.push_back(share_cell(account, kStateNames[state], share(account.measured, state),
                             share(account.predicted, state)));
  }
  row.push_back(share_cell(account, "sum", sum_of_shares(account.measured),
                           sum_of_shares(account.predicted)));
  row.push_back(
      share_cell(account, "bubble", bubble_of(account.measured), bubble_of(account.predicted)));
  return row;
}

Table table_of(const WorkersEvent& event) {
  const std::vector<std::size_t> states = states_of(event);
  Table table{.caption =
                  "Share of each worker's time; below each, the predicted share. Bubble: "
                  "starved, transfer and slot_full together.",
              .head = {"worker", "stages"},
              .rows = {}};
  for (const std::size_t state : states) table.head.emplace_back(kStateNames[state]);
  table.head.insert(table.head.end(), {"sum", "bubble"});
  for (std::size_t i = 0; i < std::min(event.workers.size(), kMostRows); ++i) {
    table.rows.push_back(row_of(event.workers[i], states));
  }
  return table;
}

std::string legend_markup(const WorkersEvent& event) {
  std::string items;
  for (const std::size_t state : states_of(event)) {
    items += fmt::format("<li><span class=\"key k-{0}\"></span>{0}</li>", kStateNames[state]);
  }
  return "<ul class=\"legend\">" + items + "</ul>\n";
}

std::string caption_of(const WorkersEvent& event) {
  std::string text =
      fmt::format("Mean of {} step(s) of {} ms", event.steps, short_number(event.step_s * 1e3));
  if (event.predicted_step_s > 0) {
    text += fmt::format("; predicted {} ms", short_number(event.predicted_step_s * 1e3));
  }
  return text + ". Upper bar measured, lower bar predicted where there is a forecast.";
}

std::string left_out(const WorkersEvent& event) {
  if (event.workers.size() <= kMostBars) return "";
  return paragraph(
      fmt::format("Bars show the first {} of {} workers, the table the first {}.", kMostBars,
                  event.workers.size(), std::min(event.workers.size(), kMostRows)),
      "soft");
}

}  // namespace

double bubble_share(const WorkersEvent& workers, bool predicted) {
  double idle = 0;
  double wall = 0;
  for (const WorkerAccount& account : workers.workers) {
    const StateSeconds& seconds = predicted ? account.predicted : account.measured;
    idle += bubble(seconds);
    wall += total(seconds);
  }
  return wall > 0 ? idle / wall : std::numeric_limits<double>::quiet_NaN();
}

double bubble_of_equal_stages(int stages, int micro_batches) {
  return static_cast<double>(stages - 1) / std::max(1, micro_batches + stages - 1);
}

std::string breakdown_markup(const RunRecord& run, const std::string& id) {
  const WorkersEvent& event = *run.workers;
  return fmt::format(
             "<figure><div class=\"scroll wide\">{}</div>{}<figcaption>{}</figcaption></figure>\n",
             draw_bars(event, id).markup(), legend_markup(event), escape(caption_of(event))) +
         left_out(event) + table_markup(table_of(event));
}

}  // namespace convoy::cli
