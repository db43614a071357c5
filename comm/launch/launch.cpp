#include "comm/launch/launch.h"

#include <fmt/core.h>

#include <csignal>
#include <cstdio>

#include "comm/launch/job.h"

namespace convoy {
namespace {

void say(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

/// Why the job has ended, as the last line.
void tell_end(const JobEnd& end, std::vector<std::string> command) {
  const bool stopped = exit_code(end) == 128 + SIGINT || exit_code(end) == 128 + SIGTERM;
  if (end.code == 0 || stopped || end.failure_is_last) return;
  if (end.failure || signal_of(end) != 0) return say("convoy: error: " + cause_of(end));
  std::erase(command, "-q");
  say(fmt::format("convoy: launch: {} and did not say why; mpirun may, without -q: {}",
                  cause_of(end), shell_text(command)));
}

}  // namespace

int launch(const LaunchRequest& request, const RestartOptions& options) {
  const LaunchPlace place = look_at_place(request);
  LaunchRequest tried = request;
  JobEnd end = run_job(mpirun_command(tried, place));
  for (int left = options.restarts; left > 0 && worth_a_restart(end); --left) {
    say(fmt::format("convoy: launch: try {} of {}, from {}, after {}", options.restarts - left + 2,
                    options.restarts + 1, options.where(), cause_of(end)));
    tried.command = options.resume(request.command);
    end = run_job(mpirun_command(tried, place));
  }
  tell_end(end, mpirun_command(tried, place));
  return exit_code(end);
}

}  // namespace convoy
