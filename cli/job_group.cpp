#include "cli/job_group.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "cli/failure.h"
#include "cli/setup.h"
#include "kernels/base/error.h"

namespace convoy::cli {

GroupOptions group_options(const Settings& settings) {
  GroupOptions options;
  options.backend = settings.comm;
  options.timeout = settings.comm_timeout;
  options.local_workers = static_cast<int>(settings.devices.size());
  options.on_note = [](const std::string& note) { print_notes({note}); };
  return options;
}

namespace {

[[noreturn]] void leave(const Error& error, std::unique_ptr<convoy::Group> group) {
  const Failure failure = describe_failure(std::make_exception_ptr(error));
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", failure.line.c_str());
  std::fflush(stderr);
  group.reset();  // the others get to know the failure before this process has gone
  ::_exit(failure.code);
}

}  // namespace

JobGroup::JobGroup(const Options& options) : world_(discover_world()) {
  const bool alone = world_.size == 1 && options.settings.devices.size() == 1;
  if (!alone) group_ = convoy::Group::make(world_, group_options(options.settings));
}

int JobGroup::run(const std::function<int()>& work) {
  if (!group_) return work();
  try {
    return work();
  } catch (...) {
    Error error = to_error(std::current_exception());
    const bool told = error.rank().has_value() || world_.size == 1;
    const Error first = group_->fail(told ? error : error.with_rank(group_->first_rank()));
    // There is no other rank whose flags might be wrong.
    const bool plain = world_.launcher.empty() && !error.rank() &&
                       error.kind() == ErrorKind::usage && first.text() == error.text();
    leave(plain ? error : first, std::move(group_));
  }
}

}  // namespace convoy::cli
