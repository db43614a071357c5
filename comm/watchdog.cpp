#include "comm/watchdog.h"

#include <fmt/core.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "comm/verdict.h"
#include "comm/watchdog_endings.h"
#include "comm/watchdog_meeting.h"
#include "comm/watchdog_messages.h"

namespace convoy {
namespace {

constexpr double kReportEvery = 1;     // seconds; more often where the timeout is short
constexpr double kLookEvery = 0.2;     // at least so often the judge looks
constexpr double kPause = 1.5;         // longer without running: this process was stopped itself
constexpr double kEchoWait = 0.6;      // a `communication` failure may be the echo of a death
constexpr double kStandInAfter = 2;    // a process that is neither 0 nor 1 judges later
constexpr double kParting = 0.3;       // for the verdict to reach the others
constexpr double kAnswerWait = 5;      // of fail()
constexpr double kSlowNoteEvery = 60;  // seconds
constexpr int kSlowSteps = 3;          // in a row, as seen once a second

double steady_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double wall_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The line of the program on stderr, in one write.
void print_failure(const Error& error) {
  const std::string line = "convoy: error: " + describe(error) + "\n";
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, line.data(), line.size());
}

/// Tells of a slow worker after some slow steps in a row, and then not for a while.
class SlowNotes {
 public:
  std::optional<std::string> look(const std::optional<SlowWorker>& slow, double now) {
    if (!slow || slow->worker != worker_) {
      worker_ = slow ? slow->worker : -1;
      count_ = 0;
      step_ = -1;
    }
    if (!slow || slow->step == step_) return {};
    step_ = slow->step;
    if (++count_ < kSlowSteps || now < next_) return {};
    next_ = now + kSlowNoteEvery;
    return slow->text;
  }

 private:
  int worker_ = -1;
  std::int64_t step_ = -1;
  int count_ = 0;
  double next_ = 0;
};

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
  void read_links(double now);
  void read_link(int rank, MessageLink& link, double now);
  void take_message(int rank, const Message& message, double now);
  void take_word(const Word& word, double now);
  void look_at_neighbours(double now);
  void take_requests(double now);
  void report(double now);
  bool judges(double now);
  void judge(double now);
  void tell(double now);
  void decide(const Failed& verdict);
  void act_on(const Failed& verdict);
  [[noreturn]] void leave(const Error& error);
  void part();
  bool finished();
  bool others_left() const;
  void send_all(Tell type, const std::string& body);
  bool healthy(int rank, double now) const;
  ProcessState* find(int rank);
  std::vector<ProcessState> jury() const;
  std::vector<Progress> read_boards() const;

  void wake() const { ::eventfd_write(event_.get(), 1); }
  JudgeTime time(double now) const { return {now, wall_now(), options_.timeout}; }

  const World world_;
  const WatchdogOptions options_;
  const std::vector<const ProgressBoard*> boards_;
  Meeting meeting_;
  std::vector<ProcessState> states_;  // this process and those that it has a link to, by rank
  Descriptor event_;
  std::optional<LastWord> last_word_;
  std::optional<Neighbours> neighbours_;

  double last_run_ = 0;
  double next_report_ = 0;
  std::map<int, bool> leaving_;     // who has said goodbye
  std::optional<Failed> reported_;  // to the judge
  double reported_at_ = 0;
  std::optional<Failed> own_;  // a failure of this process, until it is judged
  int told_ = -1;              // the judge that knows of it
  double without_judge_ = -1;  // since when
  bool warned_ = false;
  SlowNotes slow_;
  bool said_goodbye_ = false;

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
    : world_(world), options_(std::move(options)), boards_(std::move(boards)) {
  if (world.size == 1 && boards_.size() < 2) return;  // nobody to watch over
  Member self{world.rank, first_worker, static_cast<int>(boards_.size()),
              ::getpid(), world.host,   own_pid_space(),
              {}};
  meeting_ = meet(std::move(self), world, options_, from_first);
  const double now = steady_now();
  std::vector<int> fds;
  for (const Member& member : meeting_.members) {
    const bool known = member.rank == world.rank || meeting_.links.contains(member.rank);
    if (!known) continue;
    states_.push_back({member.rank,
                       member.host,
                       member.pid,
                       member.first_worker,
                       {},
                       now,
                       LinkState::open,
                       now,
                       {}});
  }
  for (const auto& [rank, link] : meeting_.links) fds.push_back(link.fd());
  event_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  last_word_.emplace(world.rank, fds);
  neighbours_.emplace(meeting_.members, world.rank);
  if (options_.on_note && !meeting_.interface.empty()) {
    options_.on_note("ranks meet over " + meeting_.interface);
  }
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the program's own threads
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
  const Error known = error.rank() ? error : error.with_rank(world_.rank);
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
    read_links(now);
    look_at_neighbours(now);
    take_requests(now);
    report(now);
    judge(now);
    for (auto& [rank, link] : meeting_.links) link.flush();
  }
  part();
}

void Watchdog::Impl::wait_for_events() {
  std::vector<pollfd> waits = {{event_.get(), POLLIN, 0}};
  for (const auto& [rank, link] : meeting_.links) {
    if (link.state() == MessageLink::State::open) waits.push_back({link.fd(), POLLIN, 0});
  }
  for (int fd : neighbours_->fds()) waits.push_back({fd, POLLIN, 0});
  const bool soon = !verdict_ && (neighbours_->pending() || reported_ || own_);
  ::poll(waits.data(), waits.size(), soon ? 10 : static_cast<int>(kLookEvery * 1000));
  eventfd_t ignored;
  ::eventfd_read(event_.get(), &ignored);
}

/// Who was stopped himself must not blame others for the time.
void Watchdog::Impl::forgive_pause(double now) {
  const double pause = now - last_run_;
  last_run_ = now;
  if (pause < kPause) return;
  for (ProcessState& state : states_) {
    state.heard += pause;
    state.link_changed += pause;
    for (WorkerState& worker : state.workers) worker.changed += pause;
  }
}

void Watchdog::Impl::read_links(double now) {
  for (auto& [rank, link] : meeting_.links) read_link(rank, link, now);
}

void Watchdog::Impl::read_link(int rank, MessageLink& link, double now) {
  ProcessState& state = *find(rank);
  if (state.link != LinkState::open) return;
  link.read();
  try {
    while (auto message = link.next()) take_message(rank, *message, now);
  } catch (const Error& error) {
    const std::string text =
        fmt::format("link to rank {}, host {}: {}", rank, state.host, error.text());
    if (!own_) own_ = Failed{Error(ErrorKind::communication, text).with_rank(rank)};
    state.link = LinkState::left;
    return;
  }
  if (link.state() == MessageLink::State::open || state.link != LinkState::open) return;
  const bool unanswered = link.state() == MessageLink::State::unanswered;
  state.link = unanswered ? LinkState::unanswered : LinkState::closed;
  if (leaving_[rank]) state.link = LinkState::left;
  state.link_changed = now;
}

void Watchdog::Impl::take_message(int rank, const Message& message, double now) {
  switch (static_cast<Tell>(message.type)) {
    case Tell::report:
      take_report(*find(rank), unpack_reports(message.body), now);
      break;
    case Tell::word:
      take_word(unpack_word(message.body), now);
      break;
    case Tell::goodbye:
      leaving_[rank] = true;
      break;
    case Tell::failure:
      if (!reported_) {
        reported_ = unpack_failed(message.body);
        reported_at_ = now;
      }
      break;
    case Tell::verdict:
      act_on(unpack_failed(message.body));
      break;
    default:
      CONVOY_FAIL(communication, "a message of kind {} came, expected one of a running job",
                  message.type);
  }
}

void Watchdog::Impl::take_word(const Word& word, double now) {
  ProcessState* state = find(word.rank);
  if (!state || leaving_[word.rank] || state->link == LinkState::left) return;
  const bool well = word.ending.how == Ending::How::code && word.ending.value == 0;
  if (said_goodbye_ && well) {  // its goodbye took another way, and longer
    leaving_[word.rank] = true;
    return;
  }
  if (state->ending.how == Ending::How::unknown) state->ending = word.ending;
  if (state->link != LinkState::open) return;
  state->link = LinkState::closed;  // a child of it may still hold the connection open
  state->link_changed = now;
}

void Watchdog::Impl::look_at_neighbours(double now) {
  for (const Word& word : neighbours_->look()) {
    take_word(word, now);
    const auto body = pack(word);
    send_all(Tell::word, std::string(body.begin(), body.end()));
  }
}

void Watchdog::Impl::take_requests(double now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (request_ && !own_) own_ = request_;
  const bool leave = leave_requested_ && !stop_requested_ && !request_ && !verdict_;
  if (leave && !said_goodbye_) {
    said_goodbye_ = true;
    next_report_ = now;
    send_all(Tell::goodbye, "");
  }
}

std::vector<Progress> Watchdog::Impl::read_boards() const {
  std::vector<Progress> reports;
  for (const ProgressBoard* board : boards_) reports.push_back(board->read());
  if (!said_goodbye_) return reports;
  for (Progress& one : reports) {  // it waits for the others to leave too
    one.activity = Activity::waiting;
    one.wait_in = WaitIn::barrier;
    one.collective += 1;
  }
  return reports;
}

/// Those who have fallen silent are told less, so that their buffers do not fill up.
void Watchdog::Impl::report(double now) {
  const std::vector<Progress> reports = read_boards();
  take_report(*find(world_.rank), reports, now);
  if (now < next_report_) return;
  next_report_ = now + std::min(kReportEvery, options_.timeout / 4);
  const std::string body = pack(reports);
  for (auto& [rank, link] : meeting_.links) {
    const double silence = now - find(rank)->heard;
    const bool often = silence < 2 * kSilence || static_cast<int>(silence) % 5 == 0;
    if (often) link.send(static_cast<std::uint32_t>(Tell::report), body);
  }
}

bool Watchdog::Impl::healthy(int rank, double now) const {
  for (const ProcessState& state : states_) {
    if (state.rank == rank) {
      return state.link == LinkState::open && now - state.heard < kSilence;
    }
  }
  return false;
}

/// Process 0 judges; 1 where 0 is dead or silent; any where both are, a little later.
bool Watchdog::Impl::judges(double now) {
  if (world_.rank == 0) return true;
  if (healthy(0, now) || (world_.rank > 1 && healthy(1, now))) {
    without_judge_ = -1;
    return false;
  }
  if (without_judge_ < 0) without_judge_ = now;
  return world_.rank == 1 || now - without_judge_ > kStandInAfter;
}

/// Those to be judged. While this process leaves, those that have left are done with.
std::vector<ProcessState> Watchdog::Impl::jury() const {
  std::vector<ProcessState> all = states_;
  if (said_goodbye_) {
    std::erase_if(all, [](const ProcessState& one) { return one.link == LinkState::left; });
  }
  return all;
}

void Watchdog::Impl::judge(double now) {
  if (verdict_) return;
  if (!judges(now)) {
    tell(now);
    return;
  }
  if (own_ && !reported_) {
    reported_ = own_;
    reported_at_ = now;
  }
  const std::vector<ProcessState> all = jury();
  const bool echo = reported_ && reported_->error.kind() == ErrorKind::communication &&
                    now - reported_at_ < kEchoWait;
  if (reported_ && !echo) return decide(*reported_);
  if (const auto failure = find_failure(all, time(now))) return decide({*failure, -1});
  const auto warning = find_warning(all, time(now));
  if (warning && !warned_ && options_.on_note) options_.on_note(*warning);
  warned_ = warning.has_value();
  const auto note = slow_.look(find_slow(all), now);
  if (note && options_.on_note) options_.on_note(*note);
}

/// Gives an own failure to the judge, and to the next one should that one go.
void Watchdog::Impl::tell(double now) {
  if (!own_) return;
  const int judge = healthy(0, now) ? 0 : 1;
  auto link = meeting_.links.find(judge);
  if (judge == told_ || link == meeting_.links.end()) return;
  told_ = judge;
  link->second.send(static_cast<std::uint32_t>(Tell::failure), pack(*own_));
}

void Watchdog::Impl::decide(const Failed& verdict) {
  if (verdict.owner < 0 && !options_.on_failure) print_failure(verdict.error);
  send_all(Tell::verdict, pack(verdict));
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
  part();
  ::_exit(static_cast<int>(error.kind()));
}

/// Sees to it that all that was sent arrives: no connection is closed with bytes unread.
void Watchdog::Impl::part() {
  const double end = steady_now() + kParting;
  bool open = !meeting_.links.empty();
  for (bool finished = false; open && steady_now() < end;) {
    bool flushed = true;
    open = false;
    std::vector<pollfd> waits;
    for (auto& [rank, link] : meeting_.links) {
      flushed = link.flush() && flushed;
      link.read();
      open = open || link.state() == MessageLink::State::open;
      if (link.state() == MessageLink::State::open) waits.push_back({link.fd(), POLLIN, 0});
    }
    if (flushed && !finished) {
      finished = true;
      for (auto& [rank, link] : meeting_.links) link.finish();
    }
    ::poll(waits.data(), waits.size(), 10);
  }
}

bool Watchdog::Impl::others_left() const {
  return std::all_of(states_.begin(), states_.end(), [&](const ProcessState& state) {
    const auto leaving = leaving_.find(state.rank);
    return state.rank == world_.rank || state.link == LinkState::left ||
           (leaving != leaving_.end() && leaving->second);
  });
}

bool Watchdog::Impl::finished() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stop_requested_) {
    if (!request_ && !verdict_) {
      const auto body = pack(Word{world_.rank, {Ending::How::exception, 0}});
      send_all(Tell::word, std::string(body.begin(), body.end()));
    }
    return true;
  }
  return leave_requested_ && (verdict_ || request_ || (said_goodbye_ && others_left()));
}

void Watchdog::Impl::send_all(Tell type, const std::string& body) {
  for (auto& [rank, link] : meeting_.links) link.send(static_cast<std::uint32_t>(type), body);
}

ProcessState* Watchdog::Impl::find(int rank) {
  for (ProcessState& state : states_) {
    if (state.rank == rank) return &state;
  }
  return nullptr;
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
