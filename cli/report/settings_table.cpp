#include "cli/report/settings_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/report/html.h"

namespace convoy::cli {
namespace {

constexpr std::size_t kLongest = 300;

// What one asks of a run first.
constexpr std::array<std::string_view, 23> kMain = {"model",
                                                    "parameters",
                                                    "data",
                                                    "limit",
                                                    "image-size",
                                                    "precision",
                                                    "batch",
                                                    "micro-batches",
                                                    "micro-batch-size",
                                                    "epochs",
                                                    "steps",
                                                    "optimizer",
                                                    "lr",
                                                    "bn",
                                                    "devices",
                                                    "replicas",
                                                    "stages",
                                                    "cut",
                                                    "schedule",
                                                    "recompute",
                                                    "device_names",
                                                    "worker_threads",
                                                    "versions"};

/// Names of all settings, in the order of the first run that has them.
std::vector<std::string> names_of(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  for (const RunRecord& run : runs) {
    for (const auto& [name, value] : run.settings) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

std::string shortened(const std::string& text) {
  if (text.size() <= kLongest) return text.empty() ? "–" : text;
  std::size_t cut = kLongest;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  return fmt::format("{} … ({} bytes)", text.substr(0, cut), text.size());
}

void add_row(const std::vector<RunRecord>& runs, const std::string& name, Table& table) {
  std::vector<Cell> row = {name};
  bool differs = false;
  for (const RunRecord& run : runs) {
    row.emplace_back(shortened(run.setting(name)));
    differs = differs || run.setting(name) != runs.front().setting(name);
  }
  table.rows.push_back(std::move(row));
  table.row_styles.emplace_back(differs ? "differs" : "");
}

Table table_of(const std::vector<RunRecord>& runs, const std::vector<std::string>& names,
               const char* caption) {
  Table table{.caption = caption, .head = {"setting"}, .rows = {}};
  table.style = "left";
  for (const RunRecord& run : runs) table.head.push_back(runs.size() > 1 ? run.name : "value");
  for (const std::string& name : names) add_row(runs, name, table);
  return table;
}

}  // namespace

std::string settings_markup(const std::vector<RunRecord>& all_runs) {
  std::vector<RunRecord> runs;
  for (const RunRecord& run : all_runs) {
    if (run.settings.empty()) continue;
    runs.emplace_back().name = run.name;
    runs.back().settings = run.settings;
  }
  const std::vector<std::string> all = names_of(runs);
  if (all.empty()) return "";
  std::vector<std::string> main;
  for (const std::string& name : all) {
    const bool wanted = std::find(kMain.begin(), kMain.end(), name) != kMain.end();
    const bool given = std::any_of(
        runs.begin(), runs.end(), [&](const RunRecord& run) { return !run.setting(name).empty(); });
    if (wanted && given) main.push_back(name);
  }
  const char* note = runs.size() > 1 ? "Settings; rows that differ are shaded" : "Settings";
  return table_markup(table_of(runs, main, note)) +
         details_markup("All settings", table_markup(table_of(runs, all, note)));
}

}  // namespace convoy::cli
