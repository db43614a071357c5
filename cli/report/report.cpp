#include "cli/report/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/breakdown.h"
#include "cli/report/curves.h"
#include "cli/report/gantt.h"
#include "cli/report/html.h"
#include "cli/report/memory_chart.h"
#include "cli/report/settings_table.h"
#include "cli/report/split_chart.h"
#include "cli/report/summary_of_run.h"
#include "cli/report/svg.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

constexpr std::size_t kMostBoxes = 6000;  // of timelines, in all: about 1.3 MB

std::string verdict_markup(const std::vector<Fact>& facts) {
  std::string items;
  for (const Fact& fact : facts) {
    items += fmt::format("<li><span>{}</span><b>{}</b><span>{}</span></li>\n", escape(fact.what),
                         escape(fact.value), escape(fact.remark));
  }
  return items.empty() ? "" : "<ul class=\"verdict\">\n" + items + "</ul>\n";
}

std::string fact_in(const std::vector<Fact>& facts, const std::string& what, bool remark) {
  for (const Fact& fact : facts) {
    if (fact.what == what) return remark ? fact.remark : fact.value;
  }
  return remark ? "" : "–";
}

// A row a number, a column a run.
std::string comparison_markup(const std::vector<RunRecord>& runs) {
  std::vector<std::vector<Fact>> facts;
  std::vector<std::string> kinds;
  Table table{.caption = "The runs side by side", .head = {""}, .rows = {}};
  for (const RunRecord& run : runs) {
    table.head.push_back(run.name);
    facts.push_back(facts_of(summary_of(run)));
    for (const Fact& fact : facts.back()) {
      if (std::find(kinds.begin(), kinds.end(), fact.what) == kinds.end()) {
        kinds.push_back(fact.what);
      }
    }
  }
  for (const std::string& what : kinds) {
    std::vector<Cell> row = {what};
    for (const auto& of_run : facts) {
      row.emplace_back(fact_in(of_run, what, false), fact_in(of_run, what, true), "");
    }
    table.rows.push_back(std::move(row));
  }
  table.style = "left";
  return table_markup(table);
}

std::string layout_text(const RunRecord& run) {
  const auto setting = [&](const char* name) {
    const std::string value = run.setting(name);
    return value.empty() ? std::string("?") : value;
  };
  if (run.settings.empty()) return "";
  std::string text =
      fmt::format("{} on {}, batch {}, {} replica(s) x {} stage(s)", setting("model"),
                  setting("data"), setting("batch"), setting("replicas"), setting("stages"));
  if (run.setting("stages") != "1") text += ", schedule " + setting("schedule");
  return text + ", on " + setting("device_names");
}

/// The parts of a report in order. Those without data are named at the end, with what they lack.
class Body {
 public:
  void part(const std::string& title, const std::string& markup, const std::string& lack) {
    if (markup.empty()) {
      left_out_ += (left_out_.empty() ? "" : "; ") + title + " (" + lack + ")";
    } else {
      text_ += heading(2, title) + markup;
    }
  }
  void add(const std::string& markup) { text_ += markup; }
  std::string text() const {
    if (left_out_.empty()) return text_;
    return text_ + heading(2, "Left out") + paragraph(left_out_ + ".", "soft");
  }

 private:
  std::string text_;
  std::string left_out_;
};

/// `make(run, id)` of each run that has the part, under the run's name where there are several.
template <class Has, class Make>
std::string of_each(const std::vector<RunRecord>& runs, const std::string& id, Has has, Make make) {
  std::string markup;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string part = has(runs[i]) ? make(runs[i], fmt::format("{}-{}", id, i)) : "";
    if (part.empty()) continue;
    if (runs.size() > 1) markup += heading(3, runs[i].name);
    markup += part;
  }
  return markup;
}

std::string title_of(const std::vector<RunRecord>& runs) {
  return runs.size() == 1 ? "Convoy: " + runs.front().name
                          : fmt::format("Convoy: {} runs", runs.size());
}

std::string head_markup(const std::vector<RunRecord>& runs) {
  std::string markup = heading(1, title_of(runs));
  if (runs.size() > 1) return markup + comparison_markup(runs);
  return markup + paragraph(layout_text(runs.front()), "soft") +
         verdict_markup(facts_of(summary_of(runs.front())));
}

void add_worker_parts(const std::vector<RunRecord>& runs, std::size_t most_boxes, Body& body) {
  const auto has_workers = [](const RunRecord& run) { return run.workers.has_value(); };
  body.part("Timeline of a step",
            of_each(
                runs, "timeline", [](const RunRecord& run) { return run.spans.has_value(); },
                [&](const RunRecord& run, const std::string& id) {
                  return gantt_markup(run, id, most_boxes / runs.size());
                }),
            "no `spans` line in the metrics");
  body.part("Where the time goes", of_each(runs, "time", has_workers, breakdown_markup),
            "no `bubble` line in the metrics");
  body.part("Memory", of_each(runs, "memory", has_workers, memory_markup),
            "no worker's memory in the metrics");
}

std::string html_of(const std::vector<RunRecord>& runs, std::size_t most_boxes) {
  Body body;
  body.add(head_markup(runs));
  body.part("Curves", curves_markup(runs), "no `step` lines");
  body.part("Split sweep", split_markup(runs), "no lines of `bench split --json`");
  add_worker_parts(runs, most_boxes, body);
  body.part("Settings", settings_markup(runs), "no `run` line");
  return page(title_of(runs), body.text());
}

}  // namespace

Report make_report(const std::vector<RunRecord>& runs) {
  CONVOY_CHECK(!runs.empty() && runs.size() <= kMostRuns,
               "report: {} runs, expected 1 to {} in one file", runs.size(), kMostRuns);
  Report report;
  std::size_t most_boxes = kMostBoxes;
  do {
    report.html = html_of(runs, most_boxes);
    most_boxes /= 2;
  } while (report.html.size() >= kMostBytes && most_boxes > 0);
  if (const auto svg = draw_split_chart(runs)) report.split_svg = svg->file();
  return report;
}

}  // namespace convoy::cli
