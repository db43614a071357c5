#include "comm/verdict.h"

#include <cstdlib>
#include <ctime>

#include "comm/watchdog_messages.h"
#include "tests/support/catch.h"

namespace convoy {
namespace {

constexpr double kNow = 1000;

/// A rank of one worker that has just been heard of.
ProcessState rank(int number, Activity activity, double still, std::int64_t collective = 17,
                  std::int64_t step = 5) {
  ProcessState process;
  process.rank = number;
  process.first_worker = number;
  process.host = fmt::format("n{}", number / 2 + 1);
  process.pid = 4708 + number;
  process.heard = kNow;
  Progress progress;
  progress.activity = activity;
  progress.step = step;
  progress.collective = collective;
  progress.wait_in = WaitIn::reduce;
  process.workers = {{progress, kNow - still}};
  return process;
}

std::vector<ProcessState> with(const ProcessState& last, double waiting = 60) {
  std::vector<ProcessState> all;
  for (int r = 0; r < last.rank; ++r) all.push_back(rank(r, Activity::waiting, waiting));
  all.push_back(last);
  return all;
}

ProcessState silent(ProcessState process, double seconds) {
  process.heard = kNow - seconds;
  return process;
}

ProcessState dead(ProcessState process, LinkState link, double ago, Ending ending) {
  process.link = link;
  process.link_changed = kNow - ago;
  process.ending = ending;
  return process;
}

/// 14:03:07 of some day, in UTC.
JudgeTime time_of(double timeout) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  return {kNow, 14 * 3600 + 3 * 60 + 7, timeout};
}

std::string verdict(const std::vector<ProcessState>& processes, double timeout = 60) {
  const auto failure = find_failure(processes, time_of(timeout));
  return failure ? describe(*failure) : "";
}

}  // namespace

TEST_CASE("verdict: a stopped rank is named with its collective, time, host, pid and who waits") {
  CHECK(verdict(with(silent(rank(3, Activity::waiting, 60), 60))) ==
        "[rank 3] communication: stuck in reduce 17 of step 5 since 14:02:07 (60 s), nothing heard "
        "of it, host n2, pid 4711; ranks 0,1,2 wait");
}

TEST_CASE("verdict: a rank that hangs in an earlier collective than the others") {
  CHECK(verdict(with(silent(rank(3, Activity::waiting, 60, 12), 60)))
            .ends_with("pid 4711; ranks 0,1,2 wait in reduce 17 of step 5"));
}

TEST_CASE("verdict: a rank that hangs in its own work is named with what the others need") {
  CHECK(verdict(with(rank(3, Activity::computing, 60, 16))) ==
        "[rank 3] communication: stuck computing in step 5, before reduce 17 of step 5 since "
        "14:02:07 (60 s), host n2, pid 4711; ranks 0,1,2 wait");
  CHECK(verdict(with(rank(1, Activity::loading, 61, 0, 0))) ==
        "[rank 1] communication: stuck loading, before reduce 17 of step 5 since 14:02:06 (61 s), "
        "host n1, pid 4709; rank 0 waits");
}

TEST_CASE("verdict: what is no failure") {
  // Each would be one if a single condition were left out.
  CHECK(verdict(with(rank(3, Activity::computing, 59))).empty());      // not long enough
  CHECK(verdict(with(rank(3, Activity::computing, 60), 29)).empty());  // nobody waited long
  CHECK(verdict({rank(0, Activity::computing, 300)}).empty());         // nobody waits
  CHECK(verdict(with(rank(3, Activity::saving, 1))).empty());          // slow, but goes on
  CHECK(verdict(with(rank(3, Activity::waiting, 59))).empty());        // all wait, not for long
  CHECK(verdict(with(silent(rank(3, Activity::computing, 9), 9))).empty());  // a pause
}

TEST_CASE("verdict: a rank that has left while others wait for it") {
  ProcessState left = rank(3, Activity::finished, 60);
  left.link = LinkState::left;
  const std::string text = verdict(with(left));
  CHECK(text.starts_with("[rank 3] communication: stuck finished in step 5, before reduce 17"));
  CHECK(text.find("it has left the group") != std::string::npos);
}

TEST_CASE("verdict: all wait at the same place") {
  CHECK(verdict(with(rank(3, Activity::waiting, 62), 62)) ==
        "communication: all ranks 0-3 wait in reduce 17 of step 5 since 14:02:05 (62 s) and "
        "nothing arrives: a link between them is down");
  CHECK(verdict(with(rank(1, Activity::waiting, 62, 16), 62))
            .starts_with("[rank 1] communication: rank 1 in reduce 16 of step 5, the others "
                         "further on; all wait since 14:02:05 (62 s)"));
}

TEST_CASE("a report keeps the instruction on its way to the judge") {
  Progress progress;
  progress.wait_in = WaitIn::message;
  progress.at = {{'F'}, 65535, 2000000000};
  progress.kind = 63;
  const std::vector<Progress> got = unpack_reports(pack(std::vector<Progress>{progress, {}}));
  REQUIRE(got.size() == 2);
  CHECK(to_text(got[0].at) == "F 65535.2000000000");
  CHECK_FALSE(got[1].at);
  CHECK(got[0].kind == 63);
}

TEST_CASE("verdict: workers of a pipeline are named with their instructions") {
  const auto in = [](int number, Activity activity, const InstructionMark& mark) {
    // Numbers of messages differ from stage to stage, and say nothing.
    ProcessState process = rank(number, activity, 60, 10 + number);
    process.workers[0].progress.wait_in = WaitIn::message;
    process.workers[0].progress.at = mark;
    return process;
  };
  const ProcessState first = in(0, Activity::waiting, {{'R', 'G'}, 0, 3});
  CHECK(
      verdict({first, in(1, Activity::computing, {{'F'}, 1, 4})}) ==
      "[rank 1] communication: stuck in F 1.4 of step 5 since 14:02:07 (60 s), host n1, pid 4709; "
      "rank 0 waits in RG 0.3 of step 5");
  CHECK(verdict({first, in(1, Activity::waiting, {{'R', 'G'}, 1, 4}),
                 in(2, Activity::computing, {{'F'}, 2, 4})})
            .ends_with("pid 4710; ranks 0,1 wait, rank 0 in RG 0.3 of step 5"));
  CHECK(verdict({silent(in(0, Activity::waiting, {{'S', 'A'}, 0, 3}), 60),
                 in(1, Activity::waiting, {{'R', 'A'}, 1, 3})}) ==
        "[rank 0] communication: stuck in SA 0.3 of step 5 since 14:02:07 (60 s), nothing heard of "
        "it, host n1, pid 4708; rank 1 waits in RA 1.3 of step 5");
  CHECK(verdict({first, in(1, Activity::waiting, {{'R', 'A'}, 1, 4})}) ==
        "communication: all ranks 0,1 wait since 14:02:07 (60 s) and nothing arrives: a link "
        "between them is down; rank 0 in RG 0.3 of step 5, rank 1 in RA 1.4 of step 5");
  CHECK(verdict({first, dead(in(1, Activity::computing, {{'S', 'T'}, 1, -1}), LinkState::closed, 1,
                             {Ending::How::signal, 9})})
            .ends_with("last seen in ST 1 of step 5"));
}

TEST_CASE("verdict: dead ranks with what is known of their end") {
  using How = Ending::How;
  const ProcessState two = rank(2, Activity::computing, 0);
  auto text = [&](LinkState link, Ending ending) {
    return verdict(
        {rank(0, Activity::waiting, 1), rank(1, Activity::waiting, 1), dead(two, link, 1, ending)});
  };
  const std::string tail = ", host n2, pid 4710, last seen computing in step 5";
  CHECK(text(LinkState::closed, {How::signal, 9}) ==
        "[rank 2] communication: dead: killed by signal 9 (SIGKILL)" + tail);
  CHECK(text(LinkState::closed, {How::signal, 11}) ==
        "[rank 2] communication: dead: killed by signal 11 (SIGSEGV)" + tail);
  CHECK(text(LinkState::closed, {How::code, 1}) ==
        "[rank 2] communication: dead: exited with code 1" + tail);
  CHECK(text(LinkState::closed, {How::exception, 0}) ==
        "[rank 2] communication: dead: left the group by an exception" + tail);
  CHECK(text(LinkState::closed, {}) ==
        "[rank 2] communication: dead: its connection closed (signal 9 or _exit)" + tail);
  CHECK(verdict(
            {rank(0, Activity::waiting, 1), dead(silent(two, 12), LinkState::unanswered, 0, {})}) ==
        "[rank 2] communication: dead: no answer for 12 s, the host or its link is down" + tail);
}

TEST_CASE("verdict: a dead rank whose last report is of an earlier step than the others'") {
  ProcessState two =
      dead(rank(2, Activity::computing, 0), LinkState::closed, 1, {Ending::How::signal, 9});
  two.workers[0].progress.step = 3;
  CHECK(verdict({rank(0, Activity::waiting, 1), rank(1, Activity::waiting, 1), two}) ==
        "[rank 2] communication: dead: killed by signal 9 (SIGKILL), host n2, pid 4710, last seen "
        "computing in step 3, the others in step 5");
}

TEST_CASE("verdict: the cause of a death may come a little later; the first death counts") {
  const ProcessState one = rank(1, Activity::computing, 0);
  const Ending kill = {Ending::How::signal, 9};
  CHECK(verdict({dead(one, LinkState::closed, 0.1, {})}).empty());
  CHECK(!verdict({dead(one, LinkState::closed, 0.1, kill)}).empty());
  CHECK(verdict({dead(rank(0, Activity::computing, 0), LinkState::closed, 1, kill),
                 dead(one, LinkState::closed, 2, kill)})
            .starts_with("[rank 1]"));
  CHECK(verdict({dead(one, LinkState::left, 2, {})}).empty());
}

TEST_CASE("verdict: workers of one process have numbers of their own") {
  ProcessState process = rank(0, Activity::waiting, 60);
  process.workers.push_back(process.workers[0]);
  process.workers.push_back(rank(0, Activity::computing, 60, 16).workers[0]);
  CHECK(
      verdict({process}).starts_with("[rank 0] communication: worker 2 stuck computing in step 5,"
                                     " before reduce 17 of step 5"));
  CHECK(verdict({process}).ends_with("workers 0,1 wait"));
}

TEST_CASE("verdict: a warning at half of the timeout") {
  const auto text = find_warning(with(rank(3, Activity::computing, 30), 30), time_of(60));
  REQUIRE(text);
  CHECK(text->starts_with("rank 3: stuck computing in step 5"));
  CHECK(text->ends_with("; the run ends after 60 s"));
  CHECK(!find_warning(with(rank(3, Activity::computing, 29), 30), time_of(60)));
}

TEST_CASE("verdict: a slow worker is one above 1.5 times the median") {
  auto steps = [](const std::vector<double>& seconds, int positions = 1) {
    std::vector<ProcessState> all;
    for (double s : seconds) {
      all.push_back(rank(static_cast<int>(all.size()), Activity::computing, 0));
      all.back().workers[0].progress.step_seconds = s;
      all.back().workers[0].progress.kind = all.back().rank % positions;
    }
    return find_slow(all);
  };
  const auto slow = steps({0.25, 0.25, 0.52, 0.26});
  REQUIRE(slow);
  CHECK(slow->worker == 2);
  CHECK(slow->text ==
        "rank 2 is slow: 0.52 s of its own work in a step, 2.1 times the median of 0.25 s; host "
        "n2, pid 4710");
  CHECK(steps({0.2, 0.4}));
  CHECK(!steps({0.2, 0.3}));
  CHECK(!steps({0.2}));
  CHECK(!steps({0.001, 0.004}));                       // chance
  CHECK(!steps({0, 0, 5}));                            // others have not finished a step
  CHECK(!steps({0.2, 0.5}, 2));                        // two stages
  const auto replica = steps({0.2, 0.9, 0.45, 1}, 2);  // two replicas of two stages
  REQUIRE(replica);
  CHECK(replica->worker == 2);
}

TEST_CASE("a report that differs from the one before is progress") {
  ProcessState process = rank(0, Activity::computing, 0);
  const Progress before = process.workers[0].progress;
  take_report(process, {before}, kNow + 1);
  CHECK(process.heard == kNow + 1);
  CHECK(process.workers[0].changed == kNow);
  Progress after = before;
  after.beats += 1;
  take_report(process, {after}, kNow + 2);
  CHECK(process.workers[0].changed == kNow + 2);
  take_report(process, {after, after}, kNow + 3);
  CHECK(process.workers[1].changed == kNow + 3);
}

TEST_CASE("lists of ranks are short") {
  CHECK(list_ranks({0, 1, 2}) == "0,1,2");
  CHECK(list_ranks({0, 1, 2, 3, 7}) == "0-3,7");
  CHECK(list_ranks({}).empty());
}

}  // namespace convoy
