#include "comm/watchdog.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "comm/clock.h"
#include "comm/io_count.h"
#include "comm/watchdog_judge.h"
#include "comm/watchdog_peers.h"

namespace convoy {
namespace {

// Seconds between reports: in small jobs more often, so that a last report is not long out of date.
constexpr double kReportEvery = 1, kReportSoon = 0.2;
constexpr double kReportsInAll = 300;  // a second, that process 0 is to read
constexpr double kLookEvery = 0.2;     // at least so often the judge looks
constexpr double kPause = 1.5;         // longer without running: this process was stopped itself
constexpr double kStandInAfter = 2;    // a process that is neither 0 nor 1 judges later
constexpr double kParting = 0.3;       // for the verdict to reach the others
constexpr double kAnswerWait = 5;      // of fail()

/// The line of the program on stderr, in one write.
void print_failure(const Error& error) {
  const std::string line = "convoy: error: " + describe(error) + "\n";
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, line.data(), line.size());
}

/// A thread that no signal is given to: they are for the program's own.
std::thread start_quietly(const std::function<void()>& work) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(work);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

class Watchdog::Impl {
 public:
  Impl(const World& world, int first_worker, std::vector<const ProgressBoard*> boards,
       WatchdogOptions options, const FromFirst& from_first);
  ~Impl();
  Error fail(const Error& error);

 private:
  // Those of the watchdog's thread.
  void run();
  void wait_for_events();
  void forgive_pause(double now);
  void read(double now);
  void take_requests(double now);
  void report(double now);
  bool judges(double now);
  void judge(double now);
  void tell(double now);
  void decide(const Failed& verdict);
  void act_on(const Failed& verdict);
  [[noreturn]] void leave(const Error& error);
  bool finished();
  std::vector<Progress> read_boards();

  void wake() const { ::eventfd_write(event_.get(), 1); }

  const World world_;
  const WatchdogOptions options_;
  const std::vector<const ProgressBoard*> boards_;
  std::optional<Peers> peers_;
  Judge judge_;
  IoCount io_count_;
  Descriptor event_;
  std::optional<LastWord> last_word_;

  double last_run_ = 0;
  double next_report_ = 0;
  std::optional<Failed> own_;  // a failure of this process, until it is judged
  int told_ = -1;              // the judge that knows of it
  double without_judge_ = -1;  // since when

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Failed> request_;  // of fail()
  bool in_fail_ = false;
  bool leave_requested_ = false;
  bool stop_requested_ = false;
  std::optional<Failed> verdict_;
  std::thread thread_;
};

Watchdog::Impl::Impl(const World& world, int first_worker, std::vector<const ProgressBoard*> boards,
                     WatchdogOptions options, const FromFirst& from_first)
    : world_(world),
      options_(std::move(options)),
      boards_(std::move(boards)),
      judge_(options_.on_note) {
  if (world.size == 1 && boards_.size() < 2) return;  // nobody to watch over
  Member self{world.rank, first_worker, static_cast<int>(boards_.size()),
              ::getpid(), world.host,   own_pid_space(),
              {}};
  peers_.emplace(meet(std::move(self), world, options_, from_first), world.rank, steady_now());
  event_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  last_word_.emplace(world.rank, peers_->sockets());
  if (options_.on_note && !peers_->interface().empty()) {
    options_.on_note("ranks meet over " + peers_->interface());
  }
  thread_ = start_quietly([this] { run(); });
}

Watchdog::Impl::~Impl() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    leave_requested_ = true;
    stop_requested_ = std::uncaught_exceptions() > 0;
  }
  if (!thread_.joinable()) return;
  wake();
  thread_.join();
}

Error Watchdog::Impl::fail(const Error& error) {
  Error known = error.rank() ? error : error.with_rank(world_.rank);
  if (!thread_.joinable()) return known;
  std::unique_lock<std::mutex> lock(mutex_);
  if (!request_) request_ = Failed{known, world_.rank};
  in_fail_ = true;
  wake();
  const auto patience = std::chrono::duration<double>(kAnswerWait);
  changed_.wait_for(lock, patience, [&] { return verdict_.has_value(); });
  // Another process's failure: the watchdog's thread is about to leave without a word.
  const bool leaves = verdict_ && verdict_->owner != world_.rank && !options_.on_failure;
  if (leaves) changed_.wait(lock, [] { return false; });
  return verdict_ ? verdict_->error : known;
}

void Watchdog::Impl::run() {
  ::pthread_setname_np(::pthread_self(), "watchdog");
  last_run_ = steady_now();
  report(last_run_);
  while (!finished()) {
    wait_for_events();
    const double now = steady_now();
    forgive_pause(now);
    read(now);
    take_requests(now);
    report(now);
    judge(now);
    peers_->flush();
  }
  peers_->part(kParting);
}

void Watchdog::Impl::wait_for_events() {
  std::vector<pollfd> waits = {{event_.get(), POLLIN, 0}};
  for (int fd : peers_->fds()) waits.push_back({fd, POLLIN, 0});
  const bool soon = !verdict_ && (peers_->pending() || judge_.has_report() || own_);
  ::poll(waits.data(), waits.size(), soon ? 10 : static_cast<int>(kLookEvery * 1000));
  eventfd_t ignored;
  ::eventfd_read(event_.get(), &ignored);
}

/// Who was stopped himself must not blame others for the time.
void Watchdog::Impl::forgive_pause(double now) {
  const double pause = now - last_run_;
  last_run_ = now;
  if (pause >= kPause) peers_->forgive(pause);
}

void Watchdog::Impl::read(double now) {
  const Heard heard = peers_->read(now);
  if (heard.damage && !own_) own_ = heard.damage;
  if (heard.failure) judge_.take(*heard.failure, now);
  if (heard.verdict) act_on(*heard.verdict);
}

void Watchdog::Impl::take_requests(double now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (request_ && !own_) own_ = request_;
  const bool leave = leave_requested_ && !stop_requested_ && !request_ && !verdict_;
  if (!leave || peers_->said_goodbye()) return;
  peers_->say_goodbye();
  next_report_ = now;
}

/// While a worker does its own work, bytes that its process loads or saves are progress.
std::vector<Progress> Watchdog::Impl::read_boards() {
  const std::uint64_t bytes = io_count_.bytes();
  std::vector<Progress> reports;
  for (const ProgressBoard* board : boards_) {
    Progress progress = board->read();
    if (progress.activity != Activity::waiting) progress.beats += bytes;
    reports.push_back(progress);
  }
  if (!peers_->said_goodbye()) return reports;
  for (Progress& one : reports) {  // it waits for the others to leave too
    one.activity = Activity::waiting;
    one.wait_in = WaitIn::barrier;
    one.collective += 1;
  }
  return reports;
}

void Watchdog::Impl::report(double now) {
  const std::vector<Progress> reports = read_boards();
  peers_->note_own(reports, now);
  if (now < next_report_) return;
  const double pace = std::clamp(world_.size / kReportsInAll, kReportSoon, kReportEvery);
  next_report_ = now + std::min(pace, options_.timeout / 4);
  peers_->report(reports, now);
}

/// Process 0 judges; 1 where 0 is dead or silent; any where both are, a little later.
bool Watchdog::Impl::judges(double now) {
  if (world_.rank == 0) return true;
  if (peers_->healthy(0, now) || (world_.rank > 1 && peers_->healthy(1, now))) {
    without_judge_ = -1;
    return false;
  }
  if (without_judge_ < 0) without_judge_ = now;
  return world_.rank == 1 || now - without_judge_ > kStandInAfter;
}

void Watchdog::Impl::judge(double now) {
  if (verdict_) return;
  if (!judges(now)) {
    tell(now);
    return;
  }
  if (own_) judge_.take(*own_, now);
  const auto verdict = judge_.look(peers_->jury(), {now, wall_now(), options_.timeout});
  if (verdict) decide(*verdict);
}

/// Gives an own failure to the judge, and to the next one should that one go.
void Watchdog::Impl::tell(double now) {
  if (!own_) return;
  const int judge = peers_->healthy(0, now) ? 0 : 1;
  if (judge == told_ || !peers_->linked(judge)) return;
  told_ = judge;
  peers_->send(judge, Tell::failure, pack(*own_));
}

void Watchdog::Impl::decide(const Failed& verdict) {
  if (verdict.owner < 0 && !options_.on_failure) print_failure(verdict.error);
  peers_->send_all(Tell::verdict, pack(verdict));
  act_on(verdict);
}

/// Ends this process, or hands the verdict to whom it concerns here.
void Watchdog::Impl::act_on(const Failed& verdict) {
  bool asked = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (verdict_) return;
    verdict_ = verdict;
    asked = in_fail_;
  }
  const bool own = asked && verdict.owner == world_.rank;
  if (!own && !options_.on_failure) leave(verdict.error);
  changed_.notify_all();
  if (!asked && options_.on_failure) options_.on_failure(verdict.error);
}

void Watchdog::Impl::leave(const Error& error) {
  peers_->part(kParting);
  ::_exit(static_cast<int>(error.kind()));
}

bool Watchdog::Impl::finished() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stop_requested_) {
    if (!request_ && !verdict_) {
      const auto body = pack(Word{world_.rank, {Ending::How::exception, 0}});
      peers_->send_all(Tell::word, std::string(body.begin(), body.end()));
    }
    return true;
  }
  return leave_requested_ &&
         (verdict_ || request_ || (peers_->said_goodbye() && peers_->all_left()));
}

Watchdog::Watchdog(const World& world, int first_worker, std::vector<const ProgressBoard*> boards,
                   WatchdogOptions options, const FromFirst& from_first)
    : impl_(std::make_unique<Impl>(world, first_worker, std::move(boards), std::move(options),
                                   from_first)) {}

Watchdog::~Watchdog() = default;

Error Watchdog::fail(const Error& error) {
  return impl_->fail(error);
}

}  // namespace convoy
