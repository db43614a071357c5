#include "engine/train/worker_threads.h"

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/support/catch.h"

using namespace convoy;

namespace {

std::exception_ptr as_it_is(int, const std::exception_ptr& failure) {
  return failure;
}

}  // namespace

TEST_CASE("all workers work at once, each on one thread all the time") {
  WorkerThreads threads(3, as_it_is);
  std::vector<std::thread::id> first(3), second(3);
  std::atomic<int> here{0};
  threads.run([&](int worker) {
    first[static_cast<std::size_t>(worker)] = std::this_thread::get_id();
    ++here;
    while (here < 3) std::this_thread::yield();  // ends only if all run
  });
  threads.run(
      [&](int worker) { second[static_cast<std::size_t>(worker)] = std::this_thread::get_id(); });
  CHECK(first == second);
  CHECK(std::set<std::thread::id>(first.begin(), first.end()).size() == 3);
}

TEST_CASE("a single worker works on the caller's thread") {
  WorkerThreads threads(1, as_it_is);
  threads.run([](int) { CHECK(std::this_thread::get_id() != std::thread::id()); });
  std::thread::id worker;
  threads.run([&](int) { worker = std::this_thread::get_id(); });
  CHECK(worker == std::this_thread::get_id());
}

TEST_CASE("the first failure wakes the others and is what the caller gets") {
  std::atomic<bool> woken{false};
  std::atomic<int> failures{0};
  WorkerThreads threads(3, [&](int worker, const std::exception_ptr& failure) {
    CHECK(worker == 1);
    ++failures;
    woken = true;
    return failure;
  });
  auto work = [&](int worker) {
    if (worker == 1) throw std::runtime_error("first");
    while (!woken) std::this_thread::yield();
    throw std::runtime_error("echo");
  };
  CHECK_THROWS_WITH(threads.run(work), "first");
  CHECK(failures == 1);
  std::atomic<int> done{0};
  threads.run([&](int) { ++done; });
  CHECK(done == 3);
}
