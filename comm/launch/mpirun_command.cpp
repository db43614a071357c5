#include "comm/launch/mpirun_command.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>

#include "comm/interfaces.h"
#include "comm/sockets.h"
#include "kernels/base/error.h"

extern char** environ;

namespace convoy {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The hosts file; empty where there is none. `usage` if it cannot be read.
std::string hosts_text(const LaunchRequest& request) {
  if (request.hosts.empty()) return "";
  const Descriptor file(::open(request.hosts.c_str(), O_RDONLY | O_CLOEXEC));
  char first;
  const bool readable = file && ::read(file.get(), &first, 1) >= 0;
  CONVOY_CHECK(readable, "--hosts {}: {}", request.hosts, std::strerror(errno));
  return read_text(request.hosts);
}

/// The lines of a hosts file that name a host, each cut into words.
std::vector<std::vector<std::string>> host_lines(const std::string& text) {
  std::vector<std::vector<std::string>> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::vector<std::string> row{std::istream_iterator<std::string>(words), {}};
    if (!row.empty()) found.push_back(std::move(row));
  }
  return found;
}

/// Cores of this machine within the process's mask; two threads of a core count once, as mpirun
/// counts.
int cores() {
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return 1;
  std::set<std::string> found;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask)) continue;
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
    const std::string core = read_text(folder + "core_id");
    const std::string name = read_text(folder + "physical_package_id") + "/" + core;
    found.insert(core.empty() ? std::to_string(cpu) : name);
  }
  return std::max<int>(1, static_cast<int>(found.size()));
}

std::vector<std::string> passed_variables() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool ours = name.starts_with("CONVOY_") && name != "CONVOY_IFACE";
    if (ours || name == "OMP_NUM_THREADS") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Where `program` lies: itself if it has a slash, else on PATH; empty if nowhere.
std::string find_program(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    return ::access(program.c_str(), X_OK) == 0 ? program : "";
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + program;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

void check_mpirun() {
  CONVOY_CHECK(!find_program("mpirun").empty(),
               "launch: mpirun is not on PATH; install Open MPI (package openmpi-bin of Debian and "
               "Ubuntu, openmpi of Fedora)");
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen("mpirun --version 2>&1", "r"), ::pclose);
  char first[256] = {};
  if (pipe && !std::fgets(first, sizeof first, pipe.get())) first[0] = 0;
  std::string line = first;
  line.erase(std::find(line.begin(), line.end(), '\n'), line.end());
  CONVOY_CHECK(line.find("Open MPI") != std::string::npos,
               "launch: mpirun on PATH says \"{}\", expected Open MPI's; start ranks with your "
               "MPI's own launcher: mpiexec -n N convoy train ...",
               line);
}

bool plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("-_./=:,+@%").find(c) != std::string_view::npos;
}

}  // namespace

std::vector<std::string> mpirun_command(const LaunchRequest& request, const LaunchPlace& place) {
  std::vector<std::string> words = {"mpirun", "-q", "-n", std::to_string(request.ranks)};
  auto add = [&](std::initializer_list<std::string> more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  if (place.root) add({"--allow-run-as-root"});
  if (request.ranks > place.slots) add({"--oversubscribe"});
  add({"--bind-to", "none"});
  if (!request.hosts.empty()) {
    add({"--hostfile", request.hosts});
    for (const std::string& name : place.variables) add({"-x", name});
  }
  if (!request.iface.empty()) {
    add({"--mca", "btl_tcp_if_include", request.iface});
    add({"--mca", "oob_tcp_if_include", request.iface});
    add({"-x", "CONVOY_IFACE=" + request.iface});
  }
  words.insert(words.end(), request.command.begin(), request.command.end());
  return words;
}

LaunchPlace look_at_place(const LaunchRequest& request) {
  LaunchPlace place;
  place.root = ::geteuid() == 0;
  place.slots = request.hosts.empty() ? cores() : slots_of(hosts_text(request));
  place.variables = passed_variables();
  return place;
}

int slots_of(const std::string& hosts_text) {
  int sum = 0;
  for (const auto& words : host_lines(hosts_text)) {
    int slots = 1;
    for (const std::string& word : words) {
      if (word.starts_with("slots=")) slots = std::atoi(word.c_str() + 6);
    }
    sum += slots;
  }
  return sum;
}

int hosts_of(const std::string& hosts_text) {
  std::set<std::string> names;
  for (const auto& words : host_lines(hosts_text)) names.insert(words.front());
  return static_cast<int>(names.size());
}

void check_request(const LaunchRequest& request) {
  CONVOY_CHECK(!request.command.empty(),
               "launch: no command is given: convoy launch -n N -- convoy train ...");
  check_mpirun();
  const std::string& program = request.command.front();
  CONVOY_CHECK(!find_program(program).empty(), "launch: \"{}\" is no program here", program);
  const std::string text = hosts_text(request);
  CONVOY_CHECK(request.hosts.empty() || hosts_of(text) > 0,
               "--hosts {}: no host is named there, expected lines as \"node1 slots=8\"",
               request.hosts);
  if (request.iface.empty()) return;
  usable_interfaces(list_interfaces(), request.iface, hosts_of(text) > 1);
}

std::string shell_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) {
      text += word;
      continue;
    }
    text += '\'';
    for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

}  // namespace convoy
