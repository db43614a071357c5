#include "comm/process_group.h"

#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "comm/deadline.h"
#include "comm/world.h"
#include "kernels/base/context.h"

namespace convoy {
namespace {

void check_backend(const std::string& backend) {
  CONVOY_CHECK(backend != "nccl",
               "init_process_group: nccl joins GPUs, and workers have cpu devices here: join with "
               "auto, then give DistributedDataParallel a make_nccl_communicator()");
}

/// What the workers of a process agree on when they join.
struct Terms {
  std::string backend;
  double timeout = 0;
};

/// One meeting of the workers of a process, and the group that came of it.
struct Round {
  Terms terms;
  std::vector<bool> here;
  int count = 0;
  std::shared_ptr<Group> group;
  std::optional<Error> failure;
};

/// The workers of one process: those of a spawn(), or a thread that joins by itself. Thread-safe.
class Team {
 public:
  explicit Team(int workers) : workers_(workers) { begin_round(); }
  std::shared_ptr<Group> join(int worker, const Terms& terms);
  /// Worker `worker` has ended with `failure`: the others must not wait for it.
  void fail(int worker, const std::exception_ptr& failure);
  void rethrow_failure() const;

 private:
  void begin_round();
  void arrive(int worker, const Terms& terms);
  void make_group(Round& round, std::unique_lock<std::mutex>& lock);
  void wait_for_others(Round& round, std::unique_lock<std::mutex>& lock);
  Error absent_error(const Round& round) const;
  bool is_echo(int worker, const Error& error) const;

  const int workers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Round> round_;
  std::weak_ptr<Group> group_;  // the latest
  std::exception_ptr failure_;  // the first
  std::exception_ptr echo_;     // of a worker that has left, until that one says why
  std::optional<Error> error_;  // the same for people
};

void Team::begin_round() {
  round_ = std::make_shared<Round>();
  round_->here.resize(static_cast<std::size_t>(workers_), false);
}

void Team::arrive(int worker, const Terms& terms) {
  if (round_->count == 0) round_->terms = terms;
  const Terms& first = round_->terms;
  CONVOY_CHECK(first.backend == terms.backend && first.timeout == terms.timeout,
               "init_process_group: worker {} says ({}, {} s), another worker ({}, {} s)", worker,
               terms.backend, terms.timeout, first.backend, first.timeout);
  round_->here[worker] = true;
  ++round_->count;
}

/// The last one to come makes the group while the others wait.
std::shared_ptr<Group> Team::join(int worker, const Terms& terms) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (error_) throw Error(*error_);
  arrive(worker, terms);
  const std::shared_ptr<Round> round = round_;
  if (round->count == workers_) {
    begin_round();
    make_group(*round, lock);
  } else {
    wait_for_others(*round, lock);
  }
  if (round->failure) throw Error(*round->failure);
  if (!round->group) throw Error(*error_);
  return round->group;
}

void Team::make_group(Round& round, std::unique_lock<std::mutex>& lock) {
  GroupOptions options;
  options.backend = round.terms.backend;
  options.timeout = round.terms.timeout;
  options.local_workers = workers_;
  std::shared_ptr<Group> group;
  std::optional<Error> failure;
  lock.unlock();
  try {
    group = Group::make(discover_world(), options);
  } catch (const Error& error) {
    failure = error;
  }
  lock.lock();
  group_ = round.group = group;
  round.failure = std::move(failure);
  changed_.notify_all();
}

void Team::wait_for_others(Round& round, std::unique_lock<std::mutex>& lock) {
  const auto over = [&] { return round.group || round.failure || error_; };
  const Deadline deadline(round.terms.timeout);
  // While the last one is making the group, the group's own limit holds.
  changed_.wait_until(lock, deadline.time(), [&] { return over() || round.count == workers_; });
  if (!over() && round.count < workers_) {
    round.failure = absent_error(round);
    begin_round();
    changed_.notify_all();
  }
  changed_.wait(lock, over);
}

Error Team::absent_error(const Round& round) const {
  std::string absent;
  for (std::size_t i = 0; i < round.here.size(); ++i) {
    if (round.here[i]) continue;
    if (!absent.empty()) absent += ',';
    absent += std::to_string(i);
  }
  return Error(
      ErrorKind::communication,
      fmt::format("init_process_group: of {} workers of this process {} did not come within "
                  "{} s",
                  workers_, absent, round.terms.timeout),
      CONVOY_PLACE);
}

/// Whether the error is about another worker of this process, which is about to tell its own.
bool Team::is_echo(int worker, const Error& error) const {
  const std::shared_ptr<Group> group = group_.lock();
  if (!group || !error.rank()) return false;
  const int other = *error.rank() - group->first_rank();
  return other >= 0 && other < workers_ && other != worker;
}

void Team::fail(int worker, const std::exception_ptr& failure) {
  const Error error = to_error(failure);
  std::shared_ptr<Group> group;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) return;
    if (is_echo(worker, error)) {
      echo_ = failure;
      return;
    }
    failure_ = failure;
    error_ = error;
    group = group_.lock();
    changed_.notify_all();
  }
  if (!group) return;
  const Error first = group->fail(error);
  if (first.text() == error.text()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  failure_ = std::make_exception_ptr(first);  // another process was first
}

void Team::rethrow_failure() const {
  if (failure_) std::rethrow_exception(failure_);
  if (echo_) std::rethrow_exception(echo_);
}

/// The calling thread as a worker.
struct Worker {
  std::shared_ptr<Team> team;
  int number = 0;
  std::shared_ptr<Group> group;
};

Worker& this_worker() {
  thread_local Worker worker;
  return worker;
}

Group& joined() {
  Worker& worker = this_worker();
  CONVOY_CHECK(worker.group, "no process group: this worker has not called init_process_group");
  return *worker.group;
}

HostCommunicator& own_communicator() {
  return joined().worker(this_worker().number);
}

/// Unless the user has said how many cores, workers of one host share them, and keep to their own.
void share_cores(const Group& group, int local, const Device& device) {
  DeviceContext& own = context(device);
  if (!std::getenv("OMP_NUM_THREADS")) own.set_threads(group.cores_per_worker());
  if (!openmp_binds_threads()) own.set_cores(group.cores(local));
}

/// Queued collectives use the group: it stays until they have run, or its abort has ended them.
void leave_group() {
  if (!is_initialized()) return;
  own_communicator().wait_for_queued();
  context(default_device()).set_cores({});
  this_worker().group.reset();
}

// Tensors and modules are made on cpu:0, whichever worker makes them. On one stream a collective of
// this worker could stand before what another one must do to take part in it.
std::vector<std::unique_ptr<Stream>> make_worker_streams(int workers) {
  current_stream(Device()).synchronize();  // what the caller has queued is there for all to see
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < workers; ++i) streams.push_back(context(Device()).make_stream());
  return streams;
}

void run_worker(const std::function<void(int)>& fn, const std::shared_ptr<Team>& team, int number,
                Stream& stream) {
  this_worker() = {team, number, nullptr};
  const StreamScope scope(stream);
  try {
    fn(number);
    stream.synchronize();
  } catch (...) {
    team->fail(number, std::current_exception());
  }
  leave_group();
  this_worker() = {};
}

}  // namespace

void init_process_group(const std::string& backend, double timeout) {
  check_backend(backend);
  Worker& worker = this_worker();
  CONVOY_CHECK(!worker.group, "init_process_group: this worker has joined already");
  if (!worker.team) worker.team = std::make_shared<Team>(1);
  worker.group = worker.team->join(worker.number, {backend, timeout});
  share_cores(*worker.group, worker.number, default_device());
}

void destroy_process_group() {
  joined();
  leave_group();
}

bool is_initialized() {
  return this_worker().group != nullptr;
}

int get_rank() {
  return own_communicator().rank();
}

int get_world_size() {
  return joined().size();
}

int get_local_rank() {
  return joined().first_on_host() + this_worker().number;
}

void barrier() {
  HostCommunicator& own = own_communicator();
  own.wait_for_queued();
  own.barrier();
}

Communicator& communicator() {
  return own_communicator();
}

Device default_device() {
  joined();
  return Device(DeviceType::cpu, this_worker().number);
}

Group& process_group() {
  return joined();
}

void spawn(const std::function<void(int)>& fn, int workers) {
  CONVOY_CHECK(workers >= 1, "spawn: {} workers, expected 1 or more", workers);
  const auto streams = make_worker_streams(workers);
  const auto team = std::make_shared<Team>(workers);
  std::vector<std::thread> threads;
  for (int i = 0; i < workers; ++i) {
    try {
      threads.emplace_back(run_worker, std::cref(fn), team, i, std::ref(*streams[i]));
    } catch (...) {  // no more threads: those that run must neither wait for it nor be left alone
      team->fail(i, std::current_exception());
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  team->rethrow_failure();
}

}  // namespace convoy
