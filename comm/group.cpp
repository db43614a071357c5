#include "comm/group.h"

#include <algorithm>
#include <exception>

#include "comm/deadline.h"
#include "comm/group_parts.h"
#include "comm/host_values.h"
#include "comm/thread_fabric.h"
#include "comm/watchdog.h"
#include "kernels/base/cores.h"

namespace convoy {
namespace {

class WorkerGroup final : public Group {
 public:
  WorkerGroup(GroupParts parts, const GroupOptions& options);
  ~WorkerGroup() override;

  const World& world() const override { return parts_.world; }
  const char* backend() const override { return parts_.backend; }
  int size() const override { return parts_.workers.front()->size(); }
  int first_rank() const override { return parts_.first_rank; }
  int first_on_host() const override { return parts_.first_on_host; }
  int local_workers() const override { return static_cast<int>(parts_.workers.size()); }
  HostCommunicator& worker(int local) override { return *parts_.workers.at(local); }
  HostCommunicator& processes() override { return *parts_.processes; }
  ProgressBoard& progress(int local) override { return *parts_.boards.at(local); }
  int cores_per_worker() const override { return parts_.cores_per_worker; }
  const Cores& cores(int local) const override { return parts_.cores.at(local); }
  Error fail(const Error& error) override;

 private:
  std::string text_of_first(const std::string& mine, double timeout);
  void leave();

  GroupParts parts_;
  int unwinding_;                       // exceptions in flight when the group was made
  std::unique_ptr<Watchdog> watchdog_;  // none for a worker that is alone
};

/// What the watchdog is told; a failure ends the waits of this process first.
WatchdogOptions watching(const GroupOptions& options, std::shared_ptr<AbortFlag> abort) {
  WatchdogOptions result{options.timeout, options.iface, {}, options.on_note};
  if (!options.on_failure) return result;
  result.on_failure = [abort = std::move(abort), tell = options.on_failure](const Error& error) {
    abort->raise(error);
    tell(error);
  };
  return result;
}

WorkerGroup::WorkerGroup(GroupParts parts, const GroupOptions& options)
    : parts_(std::move(parts)), unwinding_(std::uncaught_exceptions()) {
  if (size() == 1) return;
  std::vector<const ProgressBoard*> boards;
  for (const auto& board : parts_.boards) boards.push_back(board.get());
  try {
    watchdog_ = std::make_unique<Watchdog>(
        parts_.world, parts_.first_rank, std::move(boards), watching(options, parts_.abort),
        [&](const std::string& text) { return text_of_first(text, options.timeout); });
  } catch (const Error&) {
    parts_.give_up();
    throw;
  }
}

/// Nobody watches yet: without an end, a first process that hangs here would keep all others.
std::string WorkerGroup::text_of_first(const std::string& mine, double timeout) {
  const DeadlineGuard guard(Deadline(timeout).time(), [this, timeout] {
    const auto text = fmt::format("meeting: it came, and said nothing for {} s", timeout);
    parts_.abort->raise(Error(ErrorKind::communication, text, CONVOY_PLACE).with_rank(0));
  });
  return broadcast_text(*parts_.processes, mine);
}

WorkerGroup::~WorkerGroup() {
  if (parts_.abort->raised() || std::uncaught_exceptions() > unwinding_) {
    leave();
    return;
  }
  // The others may still be in a collective: whoever goes first waits for them.
  try {
    parts_.processes->barrier();
  } catch (const Error&) {
    leave();
  }
}

/// Leaves in the middle: the others hear of it and wait for nothing more.
void WorkerGroup::leave() {
  parts_.give_up();
  if (watchdog_ && parts_.abort->raised()) watchdog_->fail(parts_.abort->error());
}

Error WorkerGroup::fail(const Error& error) {
  const Error first = watchdog_ ? watchdog_->fail(error) : error;
  parts_.abort->raise(first);
  parts_.give_up();
  return first;
}

GroupParts thread_parts(const World& world, const GroupOptions& options) {
  CONVOY_CHECK(world.size == 1,
               "comm thread: it joins workers of one process, but {} processes were started ({})",
               world.size, world.launcher);
  GroupParts parts(world, options, "thread");
  const int spins = spins_for(options.local_workers, allowed_cores());
  parts.cores_per_worker = std::max(1, allowed_cores() / options.local_workers);
  parts.divide_cores(allowed_core_list(), 0, options.local_workers);
  parts.add_workers(make_thread_fabrics(options.local_workers), options, spins);
  parts.add_processes(std::move(make_thread_fabrics(1).front()), spins);
  return parts;
}

std::string resolved_backend(const World& world, const std::string& backend) {
  CONVOY_CHECK(backend == "auto" || backend == "thread" || backend == "mpi" || backend == "nccl",
               "comm '{}', expected auto, thread, mpi or nccl", backend);
  if (backend == "thread" || backend == "mpi") return backend;
  return world.size == 1 ? "thread" : "mpi";
}

}  // namespace

GroupParts::GroupParts(const World& its_world, const GroupOptions& options, const char* its_backend)
    : world(its_world), backend(its_backend) {
  for (int i = 0; i < options.local_workers; ++i)
    boards.push_back(std::make_unique<ProgressBoard>());
  cores.resize(boards.size());
}

void GroupParts::divide_cores(const Cores& all, int first, int workers) {
  cores.clear();
  for (int i = 0; i < static_cast<int>(boards.size()); ++i) {
    cores.push_back(part_of(all, first + i, workers));
  }
}

void GroupParts::add_workers(std::vector<std::unique_ptr<Fabric>> fabrics,
                             const GroupOptions& options, int spins) {
  for (std::size_t i = 0; i < fabrics.size(); ++i) {
    workers.push_back(std::make_unique<ChannelCommunicator>(
        std::move(fabrics[i]), abort, ChannelOptions{options.order, boards[i].get(), spins}));
  }
}

void GroupParts::add_processes(std::unique_ptr<Fabric> fabric, int spins) {
  // A process that waits for the others is no stuck one: its first worker's board says so.
  processes = std::make_unique<ChannelCommunicator>(
      std::move(fabric), abort, ChannelOptions{ReduceOrder::ranks, boards.front().get(), spins});
}

std::unique_ptr<Group> Group::make(const World& world, const GroupOptions& options) {
  CONVOY_CHECK(options.local_workers >= 1, "group: {} workers in this process, expected 1 or more",
               options.local_workers);
  CONVOY_CHECK(options.timeout > 0, "group: timeout of {} s, expected more than 0",
               options.timeout);
  const bool threads = resolved_backend(world, options.backend) == "thread";
  return std::make_unique<WorkerGroup>(
      threads ? thread_parts(world, options) : meet_over_mpi(world, options), options);
}

}  // namespace convoy
