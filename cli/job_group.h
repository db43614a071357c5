// The workers of a command that several processes may run together: who they are, and the one end
// that all of them come to when one fails.
#pragma once

#include <functional>
#include <memory>

#include "cli/options.h"
#include "comm/group.h"
#include "comm/world.h"

namespace convoy::cli {

/// How the processes of a job meet, by the settings.
GroupOptions group_options(const Settings& settings);

class JobGroup {
 public:
  /// Meets the other processes that the launcher has started, if there are any. A process that was
  /// started alone and has one device has no group.
  explicit JobGroup(const Options& options);

  const World& world() const { return world_; }
  convoy::Group* group() const { return group_.get(); }
  /// Workers of all processes.
  int workers() const { return group_ ? group_->size() : 1; }
  /// The process that writes and shows.
  bool leads() const { return world_.rank == 0; }

  /// Runs `work`, the command. If it throws, all processes end with the first failure of the job:
  /// the process that failed prints it and leaves. Alone, it throws on.
  int run(const std::function<int()>& work);

 private:
  World world_;
  std::unique_ptr<convoy::Group> group_;
};

}  // namespace convoy::cli
