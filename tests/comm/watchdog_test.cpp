// The watchdog over real processes: each test forks the ranks of a job, lets one of them come to
// grief, and reads how all end and what is said on stderr.
#include "comm/watchdog.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "tests/support/catch.h"

namespace convoy {
namespace {

constexpr double kTimeout = 2;

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// How a process ended: its exit code, or 128 + signal, as a shell tells it.
int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Text from process 0 to all, through a socket pair each.
class Letters {
 public:
  explicit Letters(int size) : pairs_(static_cast<std::size_t>(size)) {
    for (auto& pair : pairs_) REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair.data()) == 0);
  }
  ~Letters() {
    for (auto& pair : pairs_) {
      for (int fd : pair) ::close(fd);
    }
  }
  std::string exchange(int rank, const std::string& mine) {
    char text[65536];
    if (rank == 0) {
      for (auto& pair : pairs_) {
        if (::send(pair[0], mine.data(), mine.size(), 0) < 0) ::_exit(99);
      }
      return mine;
    }
    const ssize_t size = ::recv(pairs_[static_cast<std::size_t>(rank)][1], text, sizeof text, 0);
    return std::string(text, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  }

 private:
  std::vector<std::array<int, 2>> pairs_;
};

using Work = std::function<void(int rank, Watchdog& watchdog, ProgressBoard& board)>;
using Meddle = std::function<void(const std::vector<pid_t>& ranks)>;

struct Outcome {
  std::vector<int> codes;
  std::string text;  // on stderr
};

/// The life of one rank; never returns.
[[noreturn]] void live(int rank, int size, Letters& letters, const Work& work, double timeout) {
  std::signal(SIGSEGV, SIG_DFL);  // the test runner has handlers of its own
  std::signal(SIGABRT, SIG_DFL);
  World world;
  world.rank = world.local_rank = rank;
  world.size = world.local_size = size;
  world.host = "here";
  int code = 0;
  try {
    ProgressBoard board;
    board.begin_step(5);
    WatchdogOptions options;
    options.timeout = timeout;
    Watchdog watchdog(world, rank, {&board}, options,
                      [&](const std::string& mine) { return letters.exchange(rank, mine); });
    work(rank, watchdog, board);
  } catch (const Error& error) {
    code = static_cast<int>(error.kind());
  }
  ::_exit(code);
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

/// Runs `work` on `size` ranks; `meddle` is called while they run and gets their process numbers.
Outcome run_job(int size, const Work& work, double timeout = kTimeout, const Meddle& meddle = {}) {
  Letters letters(size);
  int out[2];
  REQUIRE(::pipe(out) == 0);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(::fork());
    if (ranks.back() != 0) continue;
    ::dup2(out[1], STDERR_FILENO);
    ::close(out[0]);
    ::close(out[1]);
    live(rank, size, letters, work, timeout);
  }
  ::close(out[1]);
  std::thread meddler([&] {
    if (meddle) meddle(ranks);
  });
  Outcome outcome;
  for (pid_t pid : ranks) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    outcome.codes.push_back(code_of(status));
  }
  meddler.join();
  outcome.text = read_all(out[0]);
  ::close(out[0]);
  return outcome;
}

/// Waits in a collective until the watchdog ends the process.
void wait_for_the_end(ProgressBoard& board) {
  const WaitScope wait(&board, WaitIn::reduce);
  sleep_for(30);
}

/// All ranks wait but `one`, which does `trouble`.
Work trouble_of(int one, const std::function<void()>& trouble) {
  return [=](int rank, Watchdog&, ProgressBoard& board) {
    if (rank != one) wait_for_the_end(board);
    sleep_for(0.2);
    trouble();
    sleep_for(30);
  };
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("watchdog: a normal end says nothing") {
  for (int size : {1, 2, 4}) {
    const Outcome outcome =
        run_job(size, [](int rank, Watchdog&, ProgressBoard&) { sleep_for(0.05 * rank); });
    CHECK(outcome.codes == std::vector<int>(static_cast<std::size_t>(size), 0));
    CHECK(outcome.text.empty());
  }
}

// A sanitizer's handlers stand where ours would send a last word.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("watchdog: a dead rank is named once, with its cause, and all leave with 5") {
  struct Death {
    std::function<void()> how;
    int code;
    const char* text;
  };
  const std::vector<Death> deaths = {
      {[] { ::raise(SIGSEGV); }, 128 + 11, "dead: killed by signal 11 (SIGSEGV), host here, pid "},
      {[] { std::abort(); }, 128 + 6, "dead: killed by signal 6 (SIGABRT), host here, pid "},
      {[] { std::exit(1); }, 1, "dead: exited with code 1, host here, pid "}};
  for (const Death& death : deaths) {
    const Outcome outcome = run_job(4, trouble_of(2, death.how));
    CHECK(outcome.codes == std::vector<int>{5, 5, death.code, 5});
    INFO(outcome.text);
    CHECK(outcome.text.starts_with(std::string("convoy: error: [rank 2] communication: ") +
                                   death.text));
    CHECK(outcome.text.find("last seen computing in step 5") != std::string::npos);
    CHECK(lines_in(outcome.text) == 1);
  }
}
#endif

TEST_CASE("watchdog: even signal 9 and _exit are told where the system knows them") {
  for (auto [code, text] : {std::pair(128 + 9, "killed by signal 9 (SIGKILL), host here"),
                            std::pair(7, "exited with code 7, host here")}) {
    const Outcome outcome = run_job(3, trouble_of(1, [code = code] {
                                      if (code == 7) ::_exit(7);
                                      ::raise(SIGKILL);
                                    }));
    CHECK(outcome.codes == std::vector<int>{5, code, 5});
    const bool known = outcome.text.find(text) != std::string::npos;
    const bool old_kernel = outcome.text.find("(signal 9 or _exit)") != std::string::npos;
    INFO(outcome.text);
    CHECK((known || old_kernel));
    CHECK(outcome.text.starts_with("convoy: error: [rank 1] communication: dead: "));
  }
}

TEST_CASE("watchdog: the death of the first process is judged by the next") {
  const Outcome outcome = run_job(3, trouble_of(0, [] { ::raise(SIGKILL); }));
  CHECK(outcome.codes == std::vector<int>{128 + 9, 5, 5});
  CHECK(outcome.text.starts_with("convoy: error: [rank 0] communication: dead: "));
  CHECK(lines_in(outcome.text) == 1);
}

TEST_CASE("watchdog: the death of both judges is judged by those who are left") {
  const Outcome outcome = run_job(4, [](int rank, Watchdog&, ProgressBoard& board) {
    sleep_for(0.2);
    if (rank < 2) ::raise(SIGKILL);
    wait_for_the_end(board);
  });
  CHECK(outcome.codes == std::vector<int>{128 + 9, 128 + 9, 5, 5});
  const bool first = outcome.text.starts_with("convoy: error: [rank 0] communication: dead: ");
  CHECK((first || outcome.text.starts_with("convoy: error: [rank 1] communication: dead: ")));
}

TEST_CASE("watchdog: a stopped rank is stuck, whichever it is") {
  for (int stopped : {0, 2}) {
    const Work work = trouble_of(stopped, [] { ::raise(SIGSTOP); });
    const Outcome outcome = run_job(3, work, kTimeout, [&](const std::vector<pid_t>& ranks) {
      int status = 0;
      for (int rank = 0; rank < 3; ++rank) {  // the others end; then it is put out of its misery
        if (rank != stopped) {
          siginfo_t info;
          ::waitid(P_PID, static_cast<id_t>(ranks[static_cast<std::size_t>(rank)]), &info,
                   WEXITED | WNOWAIT);
        }
      }
      (void)status;
      ::kill(ranks[static_cast<std::size_t>(stopped)], SIGKILL);
    });
    INFO(outcome.text);
    CHECK(outcome.text.find(fmt::format("[rank {}] communication: stuck computing in step 5, "
                                        "before reduce 1 of step 5 since ",
                                        stopped)) != std::string::npos);
    CHECK(outcome.text.find(stopped == 0 ? "; ranks 1,2 wait" : "; ranks 0,1 wait") !=
          std::string::npos);
    CHECK(outcome.text.find("host here, pid ") != std::string::npos);
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(outcome.codes[static_cast<std::size_t>(rank)] == (rank == stopped ? 137 : 5));
    }
  }
}

TEST_CASE("watchdog: a pause shorter than the timeout, of any rank, is no failure") {
  const Work work = [](int, Watchdog&, ProgressBoard& board) {
    const WaitScope wait(&board);
    for (int i = 0; i < 30; ++i) {
      sleep_for(0.1);
      board.beat();
    }
  };
  const Outcome outcome = run_job(3, work, 4, [](const std::vector<pid_t>& ranks) {
    sleep_for(0.3);
    for (pid_t pid : {ranks[0], ranks[2]}) ::kill(pid, SIGSTOP);
    sleep_for(2);
    for (pid_t pid : {ranks[0], ranks[2]}) ::kill(pid, SIGCONT);
  });
  CHECK(outcome.codes == std::vector<int>{0, 0, 0});
  CHECK(outcome.text.empty());
}

TEST_CASE("watchdog: slow work that goes on is no failure") {
  const Outcome outcome = run_job(
      2,
      [](int rank, Watchdog&, ProgressBoard& board) {
        if (rank == 0) {
          board.enter(Activity::saving);
          for (int i = 0; i < 25; ++i) {
            sleep_for(0.1);
            board.beat();
          }
          return;
        }
        const WaitScope wait(&board, WaitIn::broadcast);
        sleep_for(2.5);
      },
      1);
  CHECK(outcome.codes == std::vector<int>{0, 0});
  CHECK(outcome.text.empty());
}

TEST_CASE("watchdog: all that wait for each other are told where") {
  const Outcome outcome = run_job(
      2, [](int, Watchdog&, ProgressBoard& board) { wait_for_the_end(board); }, 1);
  CHECK(outcome.codes == std::vector<int>{5, 5});
  CHECK(outcome.text.find("communication: all ranks 0,1 wait in reduce 1 of step 5 since ") !=
        std::string::npos);
}

TEST_CASE("watchdog: the first process's own failure ends all, with the code of its kind") {
  for (int failing : {0, 1, 3}) {
    const Outcome outcome = run_job(4, [=](int rank, Watchdog& watchdog, ProgressBoard& board) {
      if (rank != failing) wait_for_the_end(board);
      const Error first = watchdog.fail(Error(ErrorKind::data, "x.png: damaged"));
      if (describe(first) != fmt::format("[rank {}] data: x.png: damaged", failing)) ::_exit(98);
      throw Error(first);
    });
    CHECK(outcome.codes == std::vector<int>{3, 3, 3, 3});
    CHECK(outcome.text.empty());  // the one that failed says it, which is the program's part
  }
}

TEST_CASE("watchdog: of two failures the first counts, and only its process returns") {
  const Outcome outcome = run_job(3, [](int rank, Watchdog& watchdog, ProgressBoard& board) {
    if (rank == 0) wait_for_the_end(board);
    sleep_for(rank == 1 ? 0.5 : 0.0);
    const auto kind = rank == 1 ? ErrorKind::data : ErrorKind::checkpoint;
    throw watchdog.fail(Error(kind, "of rank " + std::to_string(rank)));
  });
  CHECK(outcome.codes == std::vector<int>{4, 4, 4});
}

TEST_CASE("watchdog: a communication failure is the echo of a death") {
  const Outcome outcome = run_job(3, [](int rank, Watchdog& watchdog, ProgressBoard& board) {
    sleep_for(0.2);
    if (rank == 2) {
      sleep_for(0.1);
      ::raise(SIGKILL);
    }
    if (rank == 1) throw watchdog.fail(Error(ErrorKind::communication, "peer has gone"));
    wait_for_the_end(board);
  });
  CHECK(outcome.codes == std::vector<int>{5, 5, 137});
  CHECK(outcome.text.starts_with("convoy: error: [rank 2] communication: dead: "));
  CHECK(lines_in(outcome.text) == 1);
}

TEST_CASE("watchdog: who leaves by an exception is told") {
  const Outcome outcome = run_job(3, [](int rank, Watchdog&, ProgressBoard& board) {
    if (rank == 1) throw Error(ErrorKind::data, "not told");
    wait_for_the_end(board);
  });
  CHECK(outcome.codes == std::vector<int>{5, 3, 5});
  CHECK(outcome.text.starts_with(
      "convoy: error: [rank 1] communication: dead: left the group by an exception"));
}

TEST_CASE("watchdog: a rank that does not come to the end is waited for, then named") {
  const Outcome outcome = run_job(
      3,
      [](int rank, Watchdog&, ProgressBoard& board) {
        board.enter(Activity::evaluating);
        if (rank == 1) sleep_for(30);
      },
      1);
  CHECK(outcome.codes == std::vector<int>{5, 5, 5});
  CHECK(outcome.text.find("[rank 1] communication: stuck evaluating") != std::string::npos);
  CHECK(outcome.text.find("ranks 0,2 wait") != std::string::npos);
}

TEST_CASE("watchdog: absent ranks are named after the timeout") {
  World world;
  world.size = 3;
  world.local_size = 3;
  ProgressBoard board;
  WatchdogOptions options;
  options.timeout = 0.2;
  try {
    Watchdog watchdog(world, 0, {&board}, options, [](const std::string& mine) { return mine; });
    FAIL("nobody came");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::communication);
    CHECK(error.text().starts_with("meeting: ranks 1,2 of 3 did not come; on lo (127.0.0.1)"));
  }
}

TEST_CASE("watchdog: what the first process cannot do is told to all") {
  std::string text;
  World world;
  world.size = 2;
  world.local_size = 2;
  ProgressBoard board;
  WatchdogOptions options;
  options.iface = "nosuch0";
  auto meet = [&](int rank) {
    world.rank = rank;
    try {
      Watchdog(world, rank, {&board}, options, [&](const std::string& mine) {
        if (rank == 0) text = mine;
        return text;
      });
    } catch (const Error& error) {
      return describe(error);
    }
    return std::string();
  };
  const std::string first = meet(0);
  CHECK(first.find("usage: --iface nosuch0: no interface of that name is up") != std::string::npos);
  CHECK(meet(1).find("[rank 0] usage: --iface nosuch0") == 0);
}

TEST_CASE("watchdog: workers of one process are watched too; on_failure is called once") {
  ProgressBoard waits, hangs;
  std::atomic<int> calls{0};
  std::string text;
  WatchdogOptions options;
  options.timeout = 0.5;
  options.on_failure = [&](const Error& error) {
    text = describe(error);
    ++calls;
  };
  {
    Watchdog watchdog(World(), 0, {&waits, &hangs}, options);
    hangs.enter(Activity::loading);
    const WaitScope wait(&waits);
    while (calls == 0) sleep_for(0.01);
    sleep_for(0.5);
    CHECK(watchdog.fail(Error(ErrorKind::data, "later")).kind() == ErrorKind::communication);
  }
  CHECK(calls == 1);
  CHECK(text.find("[rank 0] communication: worker 1 stuck loading, before collective 1") == 0);
}

TEST_CASE("watchdog: notes tell of a stuck rank at half of the time, and of a slow one") {
  ProgressBoard fast, slow;
  std::mutex mutex;
  std::vector<std::string> notes;
  WatchdogOptions options;
  options.timeout = 60;
  options.on_note = [&](const std::string& note) {
    const std::lock_guard<std::mutex> lock(mutex);
    notes.push_back(note);
  };
  Watchdog watchdog(World(), 0, {&fast, &slow}, options);
  for (int step = 1;; ++step) {
    for (ProgressBoard* board : {&fast, &slow}) {
      board->begin_step(step);
      board->end_step(board == &slow ? 0.5 : 0.2);
    }
    sleep_for(0.05);
    const std::lock_guard<std::mutex> lock(mutex);
    if (!notes.empty()) break;
  }
  CHECK(notes.front().starts_with("worker 1 is slow: 0.5 s of its own work in a step, 2.5 times"));
}

}  // namespace convoy
