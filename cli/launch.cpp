// `launch`: starts the ranks of a command through mpirun, and again after a death.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "cli/commands.h"
#include "cli/line_file.h"
#include "cli/setup.h"
#include "comm/launch/launch.h"
#include "engine/io/checkpoint.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

using Words = std::vector<std::string>;

/// The value of a flag of `command`, in either spelling; the last one counts.
std::string value_of(const Words& command, const std::string& flag) {
  std::string value;
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i] == flag && i + 1 < command.size()) value = command[i + 1];
    if (command[i].starts_with(flag + "=")) value = command[i].substr(flag.size() + 1);
  }
  return value;
}

/// Where the command keeps its checkpoints.
std::string checkpoint_of(const Words& command) {
  const char* variable = std::getenv("CONVOY_CHECKPOINT");
  const std::string flag = value_of(command, "--checkpoint");
  return flag.empty() && variable ? variable : flag;
}

void check_restarts(const Options& options) {
  const Words& command = options.operands;
  const bool trains = std::find(command.begin(), command.end(), "train") != command.end();
  CONVOY_CHECK(options.restarts == 0 || (trains && !checkpoint_of(command).empty()),
               "--restarts {}: only convoy train with --checkpoint DIR can go on after a death",
               options.restarts);
}

/// `command` as it goes on from its newest checkpoint, or from the start where there is none yet.
Words resumed(const Words& command) {
  Words words = command;
  const auto end = std::find(words.begin(), words.end(), "--");
  words.insert(end, "--resume=auto");
  return words;
}

std::string newest_step(const std::string& dir) {
  const NewestCheckpoint newest = find_newest(dir);
  if (!newest.folder) return "step 0";
  return fmt::format("step {} of {}", load_manifest(*newest.folder).step, dir);
}

/// The program itself, where it is not on PATH: `build/convoy launch -- convoy train` is meant so.
void name_program(Words& command) {
  if (command.empty() || command.front() != "convoy") return;
  const char* path = std::getenv("PATH");
  for (std::string rest = path ? path : ""; !rest.empty();) {
    const std::size_t colon = rest.find(':');
    const std::string folder = rest.substr(0, colon);
    if (::access((folder + "/convoy").c_str(), X_OK) == 0) return;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  char own[4096];
  const ssize_t size = ::readlink("/proc/self/exe", own, sizeof own);
  if (size > 0) command.front().assign(own, static_cast<std::size_t>(size));
}

}  // namespace

int run_launch(Options& options) {
  CONVOY_CHECK(options.ranks, "launch: -n N is missing: convoy launch -n N -- convoy train ...");
  check_restarts(options);
  name_program(options.operands);
  const LaunchRequest request = {static_cast<int>(*options.ranks), options.hosts, options.iface,
                                 options.operands};
  if (options.dry_run) {
    CONVOY_CHECK(!request.command.empty(), "launch: no command is given after --");
    print_line(shell_text(mpirun_command(request, look_at_place(request))));
    return 0;
  }
  check_request(request);
  const std::string dir = checkpoint_of(request.command);
  return launch(request,
                {static_cast<int>(options.restarts), [&] { return newest_step(dir); }, resumed});
}

}  // namespace convoy::cli
