// Thousands of random tables, sound ones and edited ones: none that the verifier accepts hangs when
// threads run it, and each that it refuses is refused with the instruction.
#include <algorithm>
#include <optional>
#include <random>

#include "engine/parallel/pipeline/expand.h"
#include "engine/parallel/pipeline/schedule_text.h"
#include "tests/engine/parallel/pipeline/schedule_cases.h"
#include "tests/engine/parallel/pipeline/table_run.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

class Dice {
 public:
  explicit Dice(unsigned seed) : bits_(seed) {}
  /// 0 to n - 1: the same on each machine.
  int below(int n) { return static_cast<int>(bits_() % static_cast<unsigned>(n)); }
  int within(int low, int high) { return low + below(high - low + 1); }

 private:
  std::mt19937 bits_;
};

struct Table {
  Schedule schedule;
  ScheduleTask task;
  int capacity = 1;
};

Table sound_table(Dice& dice) {
  const NamedSchedule& named = kSchedules[dice.below(static_cast<int>(std::size(kSchedules)))];
  const int p = dice.within(1, 4), v = named.several_stages ? dice.within(1, 3) : 1;
  Table table;
  table.capacity = dice.within(1, 3);
  table.task = {p * v, {}};
  std::vector<Schedule> windows;
  for (int first = 0, window = dice.within(1, 2); window > 0; --window) {
    const int m = dice.within(1, 5);
    windows.push_back(make_schedule(request_of(named.name, p, m, v)));
    table.task.windows.emplace_back();
    for (int k = 0; k < m; ++k) table.task.windows.back().push_back(first + k);
    first += m;
  }
  table.schedule = join_windows(windows);
  return table;
}

// Legal ones and illegal ones; most keep the table's words and change their order.
void edit(Schedule& schedule, Dice& dice) {
  ScheduleLine& line = schedule.lines[dice.below(schedule.workers())];
  if (line.empty()) return;
  const int size = static_cast<int>(line.size()), i = dice.below(size), j = dice.below(size);
  const int near = std::min(size - 1, i + 1);
  const Instruction moved = line[i];
  switch (dice.below(20)) {
    case 0:
      line.erase(line.begin() + i);
      return;
    case 1:
      line.insert(line.begin() + j, moved);
      return;
    case 2:
      ++line[i].micro_batch;
      return;
    case 3:
      line[i].stage += dice.below(2) == 0 ? 1 : -1;
      return;
    case 4:
      std::swap(line[i], line[j]);
      return;
    case 5:
    case 6:
    case 7: {  // to another place of the line
      line.erase(line.begin() + i);
      line.insert(line.begin() + std::min(j, size - 1), moved);
      return;
    }
    default:
      std::swap(line[i], line[near]);
  }
}

std::optional<std::string> refusal(const std::function<void()>& check) {
  try {
    check();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.text();
  }
  return std::nullopt;
}

bool names_an_instruction(const std::string& text, const std::vector<const Schedule*>& tables) {
  for (const Schedule* table : tables) {
    for (const ScheduleLine& line : table->lines) {
      for (const Instruction& instruction : line) {
        if (text.find(describe(instruction)) != text.npos) return true;
      }
    }
  }
  return text.find("has nothing to do") != text.npos;  // a line without instructions
}

TEST_CASE("Running a table finds a hang and a mix-up") {
  const std::string two = write_schedule(make_schedule(request_of("1f1b", 2, 3)));
  CHECK(run_table(parse_schedule(two), 1).end == RunEnd::finished);
  const TableRun hung =
      run_table(parse_schedule("RG 0.0  F 0.0  SA 0.0\nRA 1.0  F 1.0  SG 1.0\n"), 2);
  CHECK(hung.end == RunEnd::hung);
  CHECK(hung.text == " worker 0 at RG 0.0; worker 1 at RA 1.0;");
  CHECK(run_table(parse_schedule("SA 0.0  SA 0.1  SA 0.2\nF 1.0\n"), 2).end == RunEnd::hung);
  CHECK(run_table(parse_schedule("SA 0.0  SA 0.1\nF 1.0\n"), 2).end == RunEnd::finished);
  const TableRun mixed = run_table(parse_schedule("SA 0.1  SA 0.0\nRA 1.0  RA 1.1\n"), 2);
  CHECK(mixed.end == RunEnd::mixed);
  CHECK(mixed.text == "SA 0.1 came for RA 1.0");
}

TEST_CASE("No table that is accepted hangs when it runs, each refused one is told why") {
  Dice dice(20261129);
  int accepted = 0, accepted_edited = 0, refused = 0, deadlocks = 0;
  for (int i = 0; i < 12000; ++i) {
    Table table = sound_table(dice);
    const Schedule before = table.schedule;
    for (int edits = dice.below(4); edits > 0; --edits) edit(table.schedule, dice);
    INFO("table " << i << ", channels of " << table.capacity << "\n"
                  << write_schedule(table.schedule));
    const auto text =
        refusal([&] { verify_schedule(table.schedule, table.task, {table.capacity}); });
    if (!text) {
      ++accepted;
      accepted_edited += table.schedule == before ? 0 : 1;
      const TableRun run = run_table(table.schedule, table.capacity);
      INFO(run.text);
      REQUIRE(run.end == RunEnd::finished);
      continue;
    }
    ++refused;
    INFO(*text);
    REQUIRE(table.schedule != before);
    REQUIRE(names_an_instruction(*text, {&before, &table.schedule}));
    if (text->find("deadlock") == text->npos) continue;
    ++deadlocks;  // all else is sound: it hangs indeed
    REQUIRE(run_table(table.schedule, table.capacity).end == RunEnd::hung);
  }
  INFO(accepted << " accepted, of them " << accepted_edited << " edited; " << refused
                << " refused, of them " << deadlocks << " deadlocks");
  CHECK(accepted > 3000);
  CHECK(accepted_edited > 600);
  CHECK(refused > 5000);
  CHECK(deadlocks > 50);
}

TEST_CASE(
    "Every dropped, doubled or swapped instruction of small tables is refused by name or "
    "harmless") {
  for (const NamedSchedule& named : kSchedules) {
    const int v = named.several_stages ? 2 : 1;
    const Schedule sound = make_schedule(request_of(named.name, 2, 3, v));
    const ScheduleTask task = task_of(2 * v, 3);
    for (std::size_t w = 0; w < sound.lines.size(); ++w) {
      for (std::size_t i = 0; i < sound.lines[w].size(); ++i) {
        const Instruction instruction = sound.lines[w][i];
        INFO(named.name << ", worker " << w << ", " << describe(instruction));
        Schedule dropped = sound, doubled = sound, swapped = sound;
        dropped.lines[w].erase(dropped.lines[w].begin() + i);
        doubled.lines[w].insert(doubled.lines[w].begin() + i, instruction);
        for (const Schedule* broken : {&dropped, &doubled}) {
          const auto text = refusal([&] { verify_schedule(*broken, task, {2}); });
          REQUIRE(text.has_value());
          CHECK(text->find(describe(instruction).substr(0, 2)) != text->npos);
        }
        if (i + 1 == sound.lines[w].size()) continue;
        std::swap(swapped.lines[w][i], swapped.lines[w][i + 1]);
        const auto text = refusal([&] { verify_schedule(swapped, task, {2}); });
        if (text) {
          CHECK(names_an_instruction(*text, {&sound}));
        } else {
          CHECK(run_table(swapped, 2).end == RunEnd::finished);
        }
      }
    }
  }
}

}  // namespace
}  // namespace convoy::testing
