#include "comm/process_group.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kernels/base/context.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {

using namespace std::chrono_literals;
using testing::check_error;
using testing::error_of;
using testing::expect_error;

TEST_CASE("a thread alone is a group of one worker") {
  CHECK_FALSE(is_initialized());
  init_process_group();
  CHECK(is_initialized());
  CHECK(get_rank() == 0);
  CHECK(get_local_rank() == 0);
  CHECK(get_world_size() == 1);
  CHECK(default_device() == Device("cpu:0"));
  barrier();
  check_error([] { init_process_group(); }, ErrorKind::usage,
              "init_process_group: this worker has joined already");
  destroy_process_group();
  CHECK_FALSE(is_initialized());
}

TEST_CASE("who has not joined has no rank") {
  const std::string text = "no process group: this worker has not called init_process_group";
  check_error([] { get_rank(); }, ErrorKind::usage, text);
  check_error([] { get_world_size(); }, ErrorKind::usage, text);
  check_error([] { barrier(); }, ErrorKind::usage, text);
  check_error([] { destroy_process_group(); }, ErrorKind::usage, text);
}

TEST_CASE("spawned workers join a group, leave it and join another") {
  std::vector<std::int64_t> sums(6);
  std::vector<Device> devices(3);
  spawn(
      [&](int i) {
        for (int round = 0; round < 2; ++round) {
          init_process_group("thread", 20);
          devices[i] = default_device();
          std::int64_t& sum = sums[round * 3 + i];
          sum = 10 * get_rank() + round;
          process_group().worker(i).all_reduce_now(&sum, &sum, 1, DType::i64, Reduction::sum);
          destroy_process_group();
        }
      },
      3);
  CHECK(sums == std::vector<std::int64_t>{30, 30, 30, 33, 33, 33});
  CHECK(devices == std::vector<Device>{"cpu:0", "cpu:1", "cpu:2"});
}

TEST_CASE("a worker leaves when what it has queued has run") {
  std::vector<float> values(3, 1);
  spawn(
      [&](int i) {
        init_process_group("thread", 20);
        Stream& stream = current_stream(Device());
        if (i == 1) stream.host_call([] { std::this_thread::sleep_for(100ms); });
        const Buffer mine{&values[i], DType::f32};
        communicator().all_reduce(mine, mine, 1, Reduction::sum, stream);
        barrier();  // a collective too
        communicator().all_reduce(mine, mine, 1, Reduction::sum, stream);
        destroy_process_group();
      },
      3);
  CHECK(values == std::vector<float>(3, 9));
}

TEST_CASE("spawn throws the first failure again and nobody waits for ever") {
  const auto fails_in = [](bool joined) {
    return error_of([=] {
      spawn(
          [=](int i) {
            if (joined) init_process_group("auto", 20);
            if (i == 1) CONVOY_FAIL(data, "no such image");
            if (!joined) init_process_group("auto", 20);
            barrier();
          },
          3);
    });
  };
  CHECK(fails_in(true).text() == "no such image");
  CHECK(fails_in(false).text() == "no such image");
  CHECK_THROWS_AS(spawn([](int) { throw std::out_of_range("5"); }, 2), std::out_of_range);
}

TEST_CASE("workers that do not come are named") {
  expect_error(ErrorKind::communication,
               {"of 3 workers of this process 0,2 did not come within 0.2 s"}, [] {
                 spawn(
                     [](int i) {
                       if (i == 1) init_process_group("auto", 0.2);
                     },
                     3);
               });
}

TEST_CASE("a timeout may be longer than a clock counts") {
  spawn([](int) { init_process_group("thread", 1e300); }, 2);
}

TEST_CASE("workers that join on other terms are told so") {
  expect_error(ErrorKind::usage, {"init_process_group: worker", "(thread, 20 s)", "(auto, 20 s)"},
               [] { spawn([](int i) { init_process_group(i == 0 ? "auto" : "thread", 20); }, 2); });
  check_error([] { spawn([](int) {}, 0); }, ErrorKind::usage,
              "spawn: 0 workers, expected 1 or more");
}

}  // namespace convoy
