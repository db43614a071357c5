// Which variables each launcher sets. The first launcher whose size or rank is set counts: mpirun
// inside a Slurm job is Open MPI's world, whatever the job's own variables say.
#include "comm/world.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "kernels/base/error.h"

namespace convoy {
namespace {

/// Names of the variables of a launcher; null where it has none.
struct Variables {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

constexpr std::array<Variables, 4> kLaunchers = {{
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
}};

/// The value of a variable with its name, for texts.
struct Number {
  const char* variable = nullptr;
  int value = 0;
};

class Reader {
 public:
  explicit Reader(const EnvironmentReader& environment) : environment_(environment) {}

  const char* text(const char* variable) const {
    const char* value = variable ? environment_(variable) : nullptr;
    return value && *value ? value : nullptr;
  }

  /// A whole number that is not negative; `usage` on other text.
  std::optional<Number> number(const char* variable) const {
    const char* value = text(variable);
    if (!value) return std::nullopt;
    Number found{variable, 0};
    const std::string_view view(value);
    const auto [end, code] = std::from_chars(view.data(), view.data() + view.size(), found.value);
    CONVOY_CHECK(code == std::errc() && end == view.data() + view.size() && found.value >= 0,
                 "{} is '{}', expected a whole number from 0 on", variable, value);
    return found;
  }

 private:
  const EnvironmentReader& environment_;
};

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

/// Entry `node` of Slurm's "2(x3),1": tasks of each node, repeated ones counted.
std::optional<int> tasks_of_node(std::string_view list, int node) {
  while (!list.empty()) {
    int tasks = 0;
    int times = 1;
    const char* end = list.data() + list.size();
    auto parsed = std::from_chars(list.data(), end, tasks);
    if (parsed.ec != std::errc()) return std::nullopt;
    std::string_view rest(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
    if (rest.substr(0, 2) == "(x") {
      parsed = std::from_chars(rest.data() + 2, end, times);
      if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != ')') return std::nullopt;
      rest = {parsed.ptr + 1, static_cast<std::size_t>(end - parsed.ptr - 1)};
    }
    if (node < times) return tasks;
    node -= times;
    if (!rest.empty() && rest.front() != ',') return std::nullopt;
    list = rest.empty() ? rest : rest.substr(1);
  }
  return std::nullopt;
}

/// The number of this node's tasks, from the step's list, the job's, or the number asked for.
std::optional<Number> slurm_local_size(const Reader& reader) {
  const auto node = reader.number("SLURM_NODEID");
  for (const char* variable : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
    const char* list = reader.text(variable);
    if (!list) continue;
    const auto tasks = tasks_of_node(list, node ? node->value : 0);
    CONVOY_CHECK(tasks, "{} is '{}', which has no number for node {} (SLURM_NODEID)", variable,
                 list, node ? node->value : 0);
    return Number{variable, *tasks};
  }
  return reader.number("SLURM_NTASKS_PER_NODE");
}

void check_below(const Number& rank, const Number& size) {
  CONVOY_CHECK(rank.value < size.value, "{} is {}, but {} is {}", rank.variable, rank.value,
               size.variable, size.value);
}

/// torchrun started inside another launcher's rank: each group of processes would train for itself.
void check_torchrun_agrees(const Reader& reader, const Number& size) {
  const auto torch_size = reader.number("WORLD_SIZE");
  if (!torch_size || !reader.text("RANK")) return;
  CONVOY_CHECK(torch_size->value == size.value, "{} is {}, but WORLD_SIZE is {}", size.variable,
               size.value, torch_size->value);
}

/// Slurm's numbers of this node hold if this process is the task itself, not started by one.
bool is_slurm_task(const Reader& reader, int rank) {
  const auto task = reader.number("SLURM_PROCID");
  return task && task->value == rank && reader.text("SLURM_LOCALID");
}

void read_local(const Reader& reader, const Variables& names, World& world) {
  auto rank = reader.number(names.local_rank);
  auto size = reader.number(names.local_size);
  if (!size && is_slurm_task(reader, world.rank)) {
    rank = reader.number("SLURM_LOCALID");
    size = slurm_local_size(reader);
  }
  const Number all{names.size, world.size};
  if (!size) size = all;  // one host, as far as is known
  if (!rank) rank = Number{names.rank, world.rank};
  check_below(*rank, *size);
  CONVOY_CHECK(size->value <= all.value, "{} is {}, but {} is {}", size->variable, size->value,
               all.variable, all.value);
  world.local_rank = rank->value;
  world.local_size = size->value;
}

/// What the launcher calls this job: it must tell jobs on one host apart.
std::string job_of(const Reader& reader, std::string_view launcher) {
  std::string name;
  const auto add = [&](const char* variable) {
    const char* value = reader.text(variable);
    if (!value) return;
    if (!name.empty()) name += '.';
    name += value;
  };
  if (launcher == "Open MPI") {
    add("PMIX_NAMESPACE");
    add("OMPI_MCA_orte_precondition_transports");  // random
  } else if (reader.text("SLURM_STEP_ID")) {
    add("SLURM_JOB_ID");
    add("SLURM_STEP_ID");
  }
  return name;
}

World read_launcher(const Reader& reader, const Variables& names) {
  const auto rank = reader.number(names.rank);
  const auto size = reader.number(names.size);
  World world;
  world.host = host_name();
  if (!rank && size->value == 1) return world;  // a job of one task, not started by its launcher
  CONVOY_CHECK(rank,
               "{} is {}, but {} is not set: ranks are started by mpirun, srun or convoy launch",
               names.size, size->value, names.rank);
  check_below(*rank, *size);
  check_torchrun_agrees(reader, *size);
  world.launcher = names.launcher;
  world.size_variable = names.size;
  world.job = job_of(reader, names.launcher);
  world.rank = rank->value;
  world.size = size->value;
  read_local(reader, names, world);
  return world;
}

}  // namespace

World discover_world(const EnvironmentReader& environment) {
  const Reader reader(environment);
  for (const Variables& names : kLaunchers) {
    if (reader.text(names.size)) return read_launcher(reader, names);
    // RANK alone may be anybody's; the other names are their launcher's own.
    CONVOY_CHECK(names.rank == std::string_view("RANK") || !reader.text(names.rank),
                 "{} is {}, but {} is not set", names.rank, reader.text(names.rank), names.size);
  }
  World world;
  world.host = host_name();
  return world;
}

World discover_world() {
  return discover_world([](const char* name) { return std::getenv(name); });
}

std::vector<Device> devices_of_rank(const std::vector<Device>& visible, int local_rank,
                                    int local_size) {
  const std::size_t each = visible.size() / static_cast<std::size_t>(local_size);
  CONVOY_CHECK(each >= 1, "{} devices are visible to {} processes of this host: each needs one",
               visible.size(), local_size);
  const auto begin = visible.begin() + static_cast<std::ptrdiff_t>(each) * local_rank;
  return {begin, begin + static_cast<std::ptrdiff_t>(each)};
}

}  // namespace convoy
