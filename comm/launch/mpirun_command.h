// The mpirun command line (Open MPI's) that starts the ranks of a job.
#pragma once

#include <string>
#include <vector>

namespace convoy {

struct LaunchRequest {
  int ranks = 0;
  std::string hosts;  ///< hosts file; empty: this host
  std::string iface;  ///< network interface; empty: chosen
  std::vector<std::string> command;
};

/// What the command line depends on besides the request.
struct LaunchPlace {
  bool root = false;
  int slots = 1;                       ///< ranks that mpirun takes without being urged
  std::vector<std::string> variables;  ///< names of those that ranks on other hosts need too
};

std::vector<std::string> mpirun_command(const LaunchRequest& request, const LaunchPlace& place);

/// This machine's and this process's: user, cores or hosts file, variables CONVOY_*.
LaunchPlace look_at_place(const LaunchRequest& request);

/// Slots of a hosts file: the sum of its lines' slots=N, 1 where a line names none.
int slots_of(const std::string& hosts_text);

/// Hosts that a hosts file names.
int hosts_of(const std::string& hosts_text);

/// `usage` unless the request can be started: mpirun of Open MPI on PATH, the program, the hosts
/// file, the interface.
void check_request(const LaunchRequest& request);

/// Words as a shell would read them.
std::string shell_text(const std::vector<std::string>& words);

}  // namespace convoy
