#include "comm/verdict.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <map>

namespace convoy {
namespace {

constexpr double kSlow = 1.5;            // times the median
constexpr double kWorthTelling = 0.005;  // seconds: what tiny steps take is chance

/// A worker with what its process is to others.
struct Seen {
  const ProcessState* process;
  const WorkerState* worker;
  int number;  // of all workers

  bool heard(double now) const {
    return process->link == LinkState::open && now - process->heard < kSilence;
  }
  bool waits(double now) const {
    return heard(now) && worker->progress.activity == Activity::waiting;
  }
  /// For how long it is known to stand still: up to its last report, if more of them come.
  double still(double now) const { return (heard(now) ? process->heard : now) - worker->changed; }
};

std::vector<Seen> all_workers(const std::vector<ProcessState>& processes) {
  std::vector<Seen> seen;
  for (const ProcessState& process : processes) {
    int number = process.first_worker;
    for (const WorkerState& worker : process.workers) seen.push_back({&process, &worker, number++});
  }
  return seen;
}

bool one_worker_each(const std::vector<ProcessState>& processes) {
  return std::all_of(processes.begin(), processes.end(), [](const ProcessState& process) {
    return process.workers.size() == 1 && process.first_worker == process.rank;
  });
}

/// "ranks 0,1,2", or workers where processes have several.
std::string subjects(const std::vector<Seen>& seen, bool ranks) {
  std::vector<int> numbers;
  for (const Seen& one : seen) numbers.push_back(one.number);
  return fmt::format("{}{} {}", ranks ? "rank" : "worker", seen.size() == 1 ? "" : "s",
                     list_ranks(numbers));
}

std::string of_step(const Progress& progress, const char* word) {
  return progress.step > 0 ? fmt::format(" {} step {}", word, progress.step) : "";
}

/// Messages have no number that others share.
bool in_message(const Progress& progress) {
  return progress.activity == Activity::waiting && progress.wait_in == WaitIn::message;
}

/// "RA 1.3 of step 5".
std::string instruction(const Progress& progress) {
  return to_text(progress.at) + of_step(progress, "of");
}

/// "reduce 17 of step 5"; of a message the instruction that it is for, where one is known.
std::string collective(const Progress& progress) {
  if (in_message(progress) && progress.at) return instruction(progress);
  return fmt::format("{} {}{}", name(progress.wait_in), progress.collective,
                     of_step(progress, "of"));
}

/// "in reduce 17 of step 5", "in F 1.3 of step 5", "computing in step 5".
std::string doing(const Progress& progress) {
  if (progress.activity == Activity::waiting) return "in " + collective(progress);
  if (progress.at) return "in " + instruction(progress);
  return name(progress.activity) + of_step(progress, "in");
}

std::string clock_text(double wall) {
  const std::time_t seconds = static_cast<std::time_t>(std::floor(wall));
  std::tm parts = {};
  ::localtime_r(&seconds, &parts);
  return fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string since(double still, const JudgeTime& time) {
  return fmt::format("since {} ({:.0f} s)", clock_text(time.wall - still), still);
}

std::string place_of(const ProcessState& process) {
  return fmt::format("host {}, pid {}", process.host, process.pid);
}

Error failure(const std::string& text, int rank) {
  return Error(ErrorKind::communication, text).with_rank(rank);
}

/// The process that died first, if any.
const ProcessState* first_dead(const std::vector<ProcessState>& processes) {
  const ProcessState* first = nullptr;
  for (const ProcessState& process : processes) {
    bool dead = process.link == LinkState::closed || process.link == LinkState::unanswered;
    if (dead && (!first || process.link_changed < first->link_changed)) first = &process;
  }
  return first;
}

/// The furthest step of all workers but those of `process`.
std::int64_t step_of_others(const std::vector<ProcessState>& processes,
                            const ProcessState& process) {
  std::int64_t step = 0;
  for (const Seen& one : all_workers(processes)) {
    if (one.process->rank != process.rank) step = std::max(step, one.worker->progress.step);
  }
  return step;
}

/// By its last report, which others may have left behind since.
std::string last_doing(const ProcessState& process, std::int64_t others) {
  if (process.workers.empty()) return "";
  const Progress& progress = process.workers[0].progress;
  const bool behind = others > progress.step;
  return fmt::format(", last seen {}{}", doing(progress),
                     behind ? fmt::format(", the others in step {}", others) : "");
}

Error dead_error(const std::vector<ProcessState>& processes, const ProcessState& dead, double now) {
  std::string cause = describe(dead.ending);
  if (dead.link == LinkState::unanswered) {
    cause = fmt::format("no answer for {:.0f} s, the host or its link is down", now - dead.heard);
  }
  return failure(fmt::format("dead: {}, {}{}", cause, place_of(dead),
                             last_doing(dead, step_of_others(processes, dead))),
                 dead.rank);
}

/// Those that stand in a collective for `limit` seconds.
std::vector<Seen> waiting(const std::vector<Seen>& seen, double now, double limit) {
  std::vector<Seen> found;
  for (const Seen& one : seen) {
    if (one.waits(now) && one.still(now) >= limit) found.push_back(one);
  }
  return found;
}

/// The worker that does not wait and has stood still longest, for `limit` seconds at least.
std::optional<Seen> culprit(const std::vector<Seen>& seen, double now, double limit) {
  std::optional<Seen> worst;
  for (const Seen& one : seen) {
    if (one.waits(now) || one.still(now) < limit) continue;
    if (!worst || one.still(now) > worst->still(now)) worst = one;
  }
  return worst;
}

std::string silence_text(const Seen& one, double now) {
  if (one.process->link == LinkState::left) return ", it has left the group";
  return one.heard(now) ? "" : ", nothing heard of it";
}

std::string stuck_text(const Seen& one, const std::vector<Seen>& waiters, bool ranks,
                       const JudgeTime& time) {
  const Progress& progress = one.worker->progress;
  const Progress& others = waiters.front().worker->progress;
  const bool inside = progress.activity == Activity::waiting;
  const bool behind = inside && !in_message(progress) && !in_message(others) &&
                      others.collective > progress.collective;
  // A message is the waiter's own affair; a collective is everybody's.
  const bool message = in_message(others);
  const std::string needed = inside || message ? "" : ", before " + collective(others);
  std::string where;
  if (behind || message) where = " in " + collective(others);
  if (message && waiters.size() > 1) {
    where = fmt::format(", {}{}", subjects({waiters.front()}, ranks), where);
  }
  return fmt::format(
      "{}stuck {}{} {}{}, {}; {} wait{}{}", ranks ? "" : fmt::format("worker {} ", one.number),
      doing(progress), needed, since(one.still(time.now), time), silence_text(one, time.now),
      place_of(*one.process), subjects(waiters, ranks), waiters.size() == 1 ? "s" : "", where);
}

/// The workers with the lowest number of collectives, of those that all wait.
std::vector<Seen> furthest_back(const std::vector<Seen>& seen) {
  std::int64_t lowest = seen.front().worker->progress.collective;
  for (const Seen& one : seen) lowest = std::min(lowest, one.worker->progress.collective);
  std::vector<Seen> back;
  for (const Seen& one : seen) {
    if (one.worker->progress.collective == lowest) back.push_back(one);
  }
  return back;
}

/// "rank 0 in RG 0.3 of step 5, rank 1 in RA 1.4 of step 5"; the first few.
std::string places(const std::vector<Seen>& seen, bool ranks) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, seen.size()); ++i) {
    text += fmt::format("{}{} {}", i ? ", " : "", subjects({seen[i]}, ranks),
                        doing(seen[i].worker->progress));
  }
  return text + (seen.size() > kMost ? ", ..." : "");
}

/// Every worker waits and nothing moves: the fault is between them.
Error outage_error(const std::vector<Seen>& seen, bool ranks, const JudgeTime& time) {
  double still = seen.front().still(time.now);
  for (const Seen& one : seen) still = std::min(still, one.still(time.now));
  const bool messages = std::any_of(
      seen.begin(), seen.end(), [](const Seen& one) { return in_message(one.worker->progress); });
  if (messages) {
    return {ErrorKind::communication,
            fmt::format("all {} wait {} and nothing arrives: a link between them is down; {}",
                        subjects(seen, ranks), since(still, time), places(seen, ranks))};
  }
  const std::vector<Seen> back = furthest_back(seen);
  const std::string where = collective(back.front().worker->progress);
  if (back.size() == seen.size()) {
    return {ErrorKind::communication,
            fmt::format("all {} wait in {} {} and nothing arrives: a link between them is down",
                        subjects(seen, ranks), where, since(still, time))};
  }
  return failure(
      fmt::format("{} in {}, the others further on; all wait {} and nothing arrives: a link "
                  "between them is down, or they do not make the same calls",
                  subjects(back, ranks), where, since(still, time)),
      back.front().process->rank);
}

/// What stands still for `limit` seconds. Others must have waited for half of it: they may just
/// have come out of an equally long piece of work.
std::optional<Error> find_stuck(const std::vector<ProcessState>& processes, const JudgeTime& time,
                                double limit) {
  const std::vector<Seen> seen = all_workers(processes);
  const std::vector<Seen> waiters = waiting(seen, time.now, limit / 2);
  if (waiters.empty()) return {};
  const bool ranks = one_worker_each(processes);
  if (std::optional<Seen> one = culprit(seen, time.now, limit)) {
    return failure(stuck_text(*one, waiters, ranks, time), one->process->rank);
  }
  const bool all = waiting(seen, time.now, limit).size() == seen.size() && seen.size() > 1;
  if (all) return outage_error(seen, ranks, time);
  return {};
}

/// Of workers that do equal work.
std::optional<SlowWorker> slowest_of(std::vector<Seen>& seen, bool ranks) {
  if (seen.size() < 2) return {};
  std::sort(seen.begin(), seen.end(), [](const Seen& a, const Seen& b) {
    return a.worker->progress.step_seconds < b.worker->progress.step_seconds;
  });
  const double median = seen[(seen.size() - 1) / 2].worker->progress.step_seconds;
  const Seen& last = seen.back();
  const double slowest = last.worker->progress.step_seconds;
  if (slowest <= kSlow * median || slowest - median < kWorthTelling) return {};
  const std::string who = subjects({last}, ranks);
  return SlowWorker{
      last.number, last.worker->progress.step,
      fmt::format("{} is slow: {:.3g} s of its own work in a step, {:.1f} times the median of "
                  "{:.3g} s; {}",
                  who, slowest, slowest / median, median, place_of(*last.process))};
}

}  // namespace

void take_report(ProcessState& process, const std::vector<Progress>& reports, double now) {
  const bool first = process.workers.size() != reports.size();
  if (first) process.workers.assign(reports.size(), {});
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const Progress& before = process.workers[i].progress;
    const Progress& after = reports[i];
    const bool same = before.beats == after.beats && before.activity == after.activity &&
                      before.step == after.step && before.collective == after.collective;
    if (first || !same) process.workers[i].changed = now;
    process.workers[i].progress = after;
  }
  process.heard = now;
}

std::optional<Error> find_failure(const std::vector<ProcessState>& processes,
                                  const JudgeTime& time) {
  if (const ProcessState* dead = first_dead(processes)) {
    const bool known = dead->ending.how != Ending::How::unknown;
    const bool patient = time.now - dead->link_changed < kCauseWait;
    if (!known && patient && dead->link == LinkState::closed) return {};
    return dead_error(processes, *dead, time.now);
  }
  return find_stuck(processes, time, time.timeout);
}

std::optional<std::string> find_warning(const std::vector<ProcessState>& processes,
                                        const JudgeTime& time) {
  const std::optional<Error> stuck = find_stuck(processes, time, time.timeout / 2);
  if (!stuck) return {};
  const std::string who = stuck->rank() ? fmt::format("rank {}: ", *stuck->rank()) : "";
  return fmt::format("{}{}; the run ends after {:g} s", who, stuck->text(), time.timeout);
}

std::optional<SlowWorker> find_slow(const std::vector<ProcessState>& processes) {
  std::map<int, std::vector<Seen>> kinds;
  for (const Seen& one : all_workers(processes)) {
    const Progress& progress = one.worker->progress;
    if (progress.step_seconds > 0) kinds[progress.kind].push_back(one);
  }
  for (auto& [kind, seen] : kinds) {
    if (auto slow = slowest_of(seen, one_worker_each(processes))) return slow;
  }
  return {};
}

std::string list_ranks(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - i < 4) end = i + 1;  // short rows are easier to read one by one
    text += (text.empty() ? "" : ",") + std::to_string(ranks[i]);
    if (end - i > 1) text += "-" + std::to_string(ranks[end - 1]);
    i = end;
  }
  return text;
}

std::string describe(const Ending& ending) {
  switch (ending.how) {
    case Ending::How::signal: {
      const char* abbreviation = ::sigabbrev_np(ending.value);
      return fmt::format("killed by signal {}{}", ending.value,
                         abbreviation ? fmt::format(" (SIG{})", abbreviation) : "");
    }
    case Ending::How::code:
      return fmt::format("exited with code {}", ending.value);
    case Ending::How::exception:
      return "left the group by an exception";
    case Ending::How::unknown:
      break;
  }
  return "its connection closed (signal 9 or _exit)";
}

}  // namespace convoy
