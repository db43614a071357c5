#include "comm/group.h"

#include <thread>

#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {
namespace {

using testing::check_error;
using testing::expect_error;

GroupOptions workers(int count, const std::string& backend = "auto") {
  GroupOptions options;
  options.backend = backend;
  options.local_workers = count;
  options.timeout = 20;
  return options;
}

World world_of(int rank, int size) {
  World world;
  world.rank = rank;
  world.size = size;
  world.launcher = "Open MPI";
  world.size_variable = "OMPI_COMM_WORLD_SIZE";
  return world;
}

}  // namespace

TEST_CASE("a process alone has a group of its own workers") {
  const auto group = Group::make({}, workers(3));
  CHECK(std::string(group->backend()) == "thread");
  CHECK(group->size() == 3);
  CHECK(group->first_rank() == 0);
  CHECK(group->first_on_host() == 0);
  CHECK(group->local_workers() == 3);
  CHECK(group->cores_per_worker() >= 1);
  CHECK(group->processes().size() == 1);
  std::vector<std::int64_t> sums(3);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      sums[i] = group->worker(i).rank() + 1;
      group->worker(i).all_reduce_now(&sums[i], &sums[i], 1, DType::i64, Reduction::sum);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(sums == std::vector<std::int64_t>{6, 6, 6});
  CHECK(group->progress(2).read().collective == 1);
}

TEST_CASE("a group can follow another one") {
  for (int round = 0; round < 2; ++round) {
    const auto group = Group::make({}, workers(1, "thread"));
    group->worker(0).barrier();
    CHECK(group->size() == 1);
  }
}

TEST_CASE("a worker that fails ends the waits of the others") {
  const auto group = Group::make({}, workers(2));
  std::thread other([&] { group->fail(Error(ErrorKind::data, "no such image")); });
  check_error([&] { group->worker(0).barrier(); }, ErrorKind::data, "no such image");
  other.join();
  check_error([&] { group->processes().barrier(); }, ErrorKind::data, "no such image");
}

TEST_CASE("groups that cannot be are usage errors") {
  check_error([] { Group::make({}, workers(0)); }, ErrorKind::usage,
              "group: 0 workers in this process, expected 1 or more");
  check_error([] { Group::make({}, workers(1, "gloo")); }, ErrorKind::usage,
              "comm 'gloo', expected auto, thread, mpi or nccl");
  expect_error(ErrorKind::usage, {"comm thread", "2 processes", "Open MPI"},
               [] { Group::make(world_of(0, 2), workers(1, "thread")); });
  GroupOptions options = workers(1);
  options.timeout = 0;
  expect_error(ErrorKind::usage, {"timeout of 0 s"}, [&] { Group::make({}, options); });
}

}  // namespace convoy
