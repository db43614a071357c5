#include "comm/world.h"

#include <unistd.h>

#include <map>

#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {
namespace {

using testing::check_error;
using testing::expect_error;

using Variables = std::map<std::string, std::string>;

void set(Variables& variables, const char* name, const std::string& value) {
  variables[name] = value;
}

World world_of(const Variables& variables) {
  return discover_world([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

void check_place(const World& world, const char* launcher, int rank, int size, int local_rank,
                 int local_size) {
  CHECK(world.launcher == launcher);
  CHECK(world.rank == rank);
  CHECK(world.size == size);
  CHECK(world.local_rank == local_rank);
  CHECK(world.local_size == local_size);
}

Variables slurm(const char* task, const char* tasks, const char* local, const char* node) {
  return {{"SLURM_PROCID", task}, {"SLURM_NTASKS", tasks}, {"SLURM_LOCALID", local},
          {"SLURM_NODEID", node}, {"SLURM_JOB_ID", "77"},  {"SLURM_STEP_ID", "3"}};
}

}  // namespace

TEST_CASE("without a launcher's variables a process is alone") {
  const World world = world_of({{"RANK", "5"}, {"HOME", "/root"}});
  check_place(world, "", 0, 1, 0, 1);
  CHECK(world.size_variable.empty());
  char name[256] = {};
  REQUIRE(gethostname(name, sizeof name - 1) == 0);
  CHECK(world.host == name);
}

TEST_CASE("Open MPI's variables") {
  const World world = world_of({{"OMPI_COMM_WORLD_RANK", "5"},
                                {"OMPI_COMM_WORLD_SIZE", "8"},
                                {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                {"PMIX_NAMESPACE", "1572274177"}});
  check_place(world, "Open MPI", 5, 8, 1, 4);
  CHECK(world.size_variable == "OMPI_COMM_WORLD_SIZE");
  CHECK(world.job == "1572274177");
}

TEST_CASE("MPICH's variables, with and without those of the host") {
  check_place(world_of({{"PMI_RANK", "3"},
                        {"PMI_SIZE", "4"},
                        {"MPI_LOCALRANKID", "1"},
                        {"MPI_LOCALNRANKS", "2"}}),
              "MPICH", 3, 4, 1, 2);
  check_place(world_of({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}), "MPICH", 3, 4, 3, 4);
}

TEST_CASE("a task of srun finds its node's tasks in the step's list") {
  Variables variables = slurm("6", "7", "1", "2");
  set(variables, "SLURM_STEP_TASKS_PER_NODE", "2(x2),3");
  const World world = world_of(variables);
  check_place(world, "Slurm", 6, 7, 1, 3);
  CHECK(world.job == "77.3");
  set(variables, "SLURM_NODEID", "1");
  check_place(world_of(variables), "Slurm", 6, 7, 1, 2);
  set(variables, "SLURM_NODEID", "3");
  expect_error(ErrorKind::usage, {"SLURM_STEP_TASKS_PER_NODE is '2(x2),3'", "node 3"},
               [&] { world_of(variables); });
}

TEST_CASE("without a list Slurm's number of tasks per node holds, or all are on one host") {
  Variables variables = slurm("3", "4", "1", "1");
  check_place(world_of(variables), "Slurm", 3, 4, 1, 4);
  set(variables, "SLURM_NTASKS_PER_NODE", "2");
  check_place(world_of(variables), "Slurm", 3, 4, 1, 2);
}

TEST_CASE("srun with PMI gives the place on the host through Slurm's variables") {
  Variables variables = slurm("3", "4", "1", "1");
  set(variables, "SLURM_STEP_TASKS_PER_NODE", "2(x2)");
  set(variables, "PMI_RANK", "3");
  set(variables, "PMI_SIZE", "4");
  check_place(world_of(variables), "MPICH", 3, 4, 1, 2);
  set(variables, "SLURM_PROCID", "0");  // Hydra inside a task: Slurm's variables are another's
  check_place(world_of(variables), "MPICH", 3, 4, 3, 4);
}

TEST_CASE("torchrun's variables") {
  check_place(
      world_of(
          {{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}}),
      "torchrun", 3, 4, 1, 2);
}

TEST_CASE("mpirun inside a Slurm job is Open MPI's world") {
  Variables variables = slurm("0", "16", "0", "0");
  set(variables, "OMPI_COMM_WORLD_RANK", "1");
  set(variables, "OMPI_COMM_WORLD_SIZE", "2");
  check_place(world_of(variables), "Open MPI", 1, 2, 1, 2);
}

TEST_CASE("a size without ranks is the trap of a program started alone") {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "WORLD_SIZE"}) {
    expect_error(ErrorKind::usage, {std::string(name) + " is 2", "is not set"}, [&] {
      world_of({{name, "2"}});
    });
    check_place(world_of({{name, "1"}}), "", 0, 1, 0, 1);
  }
}

TEST_CASE("contradictions name variables and values") {
  const auto fails = [](const Variables& variables, const std::string& text) {
    check_error([&] { world_of(variables); }, ErrorKind::usage, text);
  };
  const Variables good = {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  const auto with = [&](const char* name, const char* value) {
    Variables changed = good;
    set(changed, name, value);
    return changed;
  };
  fails(with("OMPI_COMM_WORLD_RANK", "2"),
        "OMPI_COMM_WORLD_RANK is 2, but OMPI_COMM_WORLD_SIZE is 2");
  fails(with("OMPI_COMM_WORLD_RANK", "-1"),
        "OMPI_COMM_WORLD_RANK is '-1', expected a whole number from 0 on");
  fails(with("OMPI_COMM_WORLD_SIZE", "2x"),
        "OMPI_COMM_WORLD_SIZE is '2x', expected a whole number from 0 on");
  fails(with("OMPI_COMM_WORLD_LOCAL_SIZE", "3"),
        "OMPI_COMM_WORLD_LOCAL_SIZE is 3, but OMPI_COMM_WORLD_SIZE is 2");
  fails(with("OMPI_COMM_WORLD_LOCAL_RANK", "4"),
        "OMPI_COMM_WORLD_LOCAL_RANK is 4, but OMPI_COMM_WORLD_SIZE is 2");
  fails({{"SLURM_PROCID", "1"}}, "SLURM_PROCID is 1, but SLURM_NTASKS is not set");
  Variables torch = with("RANK", "0");
  set(torch, "WORLD_SIZE", "4");
  fails(torch, "OMPI_COMM_WORLD_SIZE is 2, but WORLD_SIZE is 4");
}

TEST_CASE("the devices of a local rank") {
  const std::vector<Device> visible = {"cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4"};
  CHECK(devices_of_rank(visible, 0, 2) == std::vector<Device>{"cuda:0", "cuda:1"});
  CHECK(devices_of_rank(visible, 1, 2) == std::vector<Device>{"cuda:2", "cuda:3"});
  CHECK(devices_of_rank(visible, 4, 5) == std::vector<Device>{"cuda:4"});
  check_error([&] { devices_of_rank(visible, 0, 6); }, ErrorKind::usage,
              "5 devices are visible to 6 processes of this host: each needs one");
}

}  // namespace convoy
