// Run by mpirun with 2, 3 and 4 processes (mpi_run.py): every process runs the same cases in the
// same order.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "comm/group.h"
#include "comm/host_values.h"
#include "comm/link.h"
#include "comm/link_test.h"
#include "comm/mpi_library.h"
#include "comm/nccl_devices.h"
#include "comm/process_group.h"
#include "comm/start_check.h"
#include "kernels/base/context.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {
namespace {

using testing::expect_error;

std::unique_ptr<Group> make_group(GroupOptions options = {}) {
  options.backend = "mpi";
  options.timeout = 20;
  return Group::make(discover_world(), options);
}

/// Each local worker on a thread of its own. What they throw is thrown here.
void with_workers(Group& group, const std::function<void(HostCommunicator&)>& work) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(group.local_workers()));
  std::vector<std::thread> threads;
  for (int i = 0; i < group.local_workers(); ++i) {
    threads.emplace_back([&, i] {
      try {
        work(group.worker(i));
      } catch (const Error& error) {
        failures[i] = std::current_exception();
        group.worker(i).abort(error);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

/// Whole numbers: their sums are exact in any order. Rank r has value(r, i) at place i.
float value(int rank, std::int64_t i) {
  return static_cast<float>((i * 7 + rank * 3) % 101 - 50);
}

std::vector<float> values_of(int rank, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[i] = value(rank, i);
  return values;
}

std::int64_t wrong_sums(const std::vector<float>& sums, int ranks) {
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    float expected = 0;
    for (int r = 0; r < ranks; ++r) expected += value(r, static_cast<std::int64_t>(i));
    wrong += sums[i] != expected;
  }
  return wrong;
}

/// Of values that the other workers of the host may read where they lie.
std::vector<float> sums_in_its_memory(HostCommunicator& worker, std::int64_t count) {
  std::vector<float> values = values_of(worker.rank(), count);
  const auto memory = worker.make_memory(values.size() * sizeof(float) + 1);
  float* place = memory ? reinterpret_cast<float*>(memory.get()) : values.data();
  if (memory) std::copy(values.begin(), values.end(), place);
  worker.all_reduce_now(place, place, count, DType::f32, Reduction::sum);
  return {place, place + count};
}

/// Checks every collective by closed forms; false if a value is wrong. Catch's macros are for one
/// thread at a time.
bool collectives_are_right(HostCommunicator& worker) {
  const int n = worker.size();
  std::int64_t wrong = 0;
  for (std::int64_t count : {0, 1, 5, 1000, 300001}) {
    std::vector<float> values = values_of(worker.rank(), count);
    worker.all_reduce_now(values.data(), values.data(), count, DType::f32, Reduction::sum);
    wrong += wrong_sums(values, n);
    wrong += wrong_sums(sums_in_its_memory(worker, count), n);
  }
  std::vector<std::int64_t> gathered(static_cast<std::size_t>(n));
  const std::int64_t mine = 10 + worker.rank();
  worker.all_gather_now(&mine, gathered.data(), sizeof mine);
  for (int r = 0; r < n; ++r) wrong += gathered[r] != 10 + r;
  std::vector<float> sent = values_of(worker.rank(), 70000);
  worker.broadcast_now(sent.data(), sent.size() * sizeof(float), n - 1);
  wrong += sent != values_of(n - 1, 70000);
  worker.barrier();
  return wrong == 0;
}

/// Each worker exchanges 1 MiB and more with its neighbours at once, in both directions.
bool messages_are_right(HostCommunicator& worker) {
  const int n = worker.size();
  const int after = (worker.rank() + 1) % n;
  const int before = (worker.rank() + n - 1) % n;
  const std::int64_t count = 700001;
  const std::vector<float> out = values_of(worker.rank(), count);
  std::vector<float> from_before(out.size());
  std::vector<float> from_after(out.size());
  const std::size_t bytes = out.size() * sizeof(float);
  std::thread up([&] { worker.send_now(out.data(), bytes, after, 1); });
  std::thread down([&] { worker.send_now(out.data(), bytes, before, 2); });
  std::thread receive_up([&] { worker.receive_now(from_before.data(), bytes, before, 1); });
  worker.receive_now(from_after.data(), bytes, after, 2);
  up.join();
  down.join();
  receive_up.join();
  return from_before == values_of(before, count) && from_after == values_of(after, count);
}

Payload payload_of(int rank, std::int64_t count) {
  const std::vector<float> values = values_of(rank, count);
  Payload payload(values.size() * sizeof(float));
  std::memcpy(payload.data(), values.data(), payload.bytes());
  return payload;
}

bool is(const LinkMessage& message, std::int64_t number, int rank, std::int64_t count) {
  const Payload expected = payload_of(rank, count);
  return message.header.micro_batch == number && message.payload.bytes() == expected.bytes() &&
         std::memcmp(message.payload.data(), expected.data(), expected.bytes()) == 0;
}

/// Links to and from both neighbours at once, after their test; each worker sends all before it
/// receives, as far as there are slots.
bool links_are_right(HostCommunicator& worker) {
  const int n = worker.size();
  const int after = (worker.rank() + 1) % n;
  const int before = (worker.rank() + n - 1) % n;
  std::vector<int> peers = {before};
  if (after != before) peers.push_back(after);
  test_links(worker, peers, 3, {.limit = 20, .sizes = {1000, 1500000}});
  LinkSender down(worker, after, 4), up(worker, before, 5);
  LinkReceiver from_before(worker, before, 4), from_after(worker, after, 5);
  constexpr std::int64_t kCount = 300001;
  constexpr int kRounds = 3, kSlots = 2;
  bool right = true;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kSlots; ++i) {
      down.send({.micro_batch = 2 * round + i}, payload_of(worker.rank(), kCount));
      up.send({.micro_batch = 2 * round + i}, payload_of(worker.rank(), kCount));
    }
    for (int i = 0; i < kSlots; ++i) {
      right &= is(from_before.receive(), 2 * round + i, before, kCount);
      right &= is(from_after.receive(), 2 * round + i, after, kCount);
    }
  }
  down.flush();
  up.flush();
  return right;
}

/// What `check` says on all workers of all processes.
bool on_all_workers(Group& group, const std::function<bool(HostCommunicator&)>& check) {
  std::atomic<int> wrong{0};
  with_workers(group, [&](HostCommunicator& worker) { wrong += !check(worker); });
  return wrong == 0;
}

}  // namespace

TEST_CASE("collectives and messages between processes: shared memory") {
  const auto group = make_group();
  CHECK(group->size() == group->world().size);
  CHECK(group->first_rank() == group->world().rank);
  CHECK(group->first_on_host() == group->world().local_rank);
  CHECK(std::string(group->worker(0).name()) == "mpi");
  CHECK(on_all_workers(*group, collectives_are_right));
  CHECK(on_all_workers(*group, messages_are_right));
}

TEST_CASE("collectives and messages between processes: MPI alone") {
  GroupOptions options;
  options.shared_memory = false;
  const auto group = make_group(options);
  CHECK(on_all_workers(*group, collectives_are_right));
  CHECK(on_all_workers(*group, messages_are_right));
}

TEST_CASE("two workers in each process") {
  GroupOptions options;
  options.local_workers = 2;
  options.shared_memory = GENERATE(true, false);
  const auto group = make_group(options);
  CHECK(group->size() == 2 * group->world().size);
  CHECK(group->first_rank() == 2 * group->world().rank);
  CHECK(on_all_workers(*group, collectives_are_right));
  CHECK(on_all_workers(*group, messages_are_right));
  CHECK(group->processes().size() == group->world().size);
}

TEST_CASE("links between processes, with one and with two workers in each") {
  GroupOptions options;
  options.local_workers = GENERATE(1, 2);
  const auto group = make_group(options);
  CHECK(on_all_workers(*group, links_are_right));
}

TEST_CASE("a link to another process ends with messages that nobody takes") {
  const auto group = make_group();
  HostCommunicator& worker = group->worker(0);
  const int n = worker.size();
  LinkSender sender(worker, (worker.rank() + 1) % n, 6);
  LinkReceiver receiver(worker, (worker.rank() + n - 1) % n, 7);
  sender.send({}, payload_of(0, 2000000));
  CHECK_FALSE(sender.flush_for(0.02));
  CHECK_FALSE(receiver.receive_for(0.02));
}

TEST_CASE("messages leave before anybody asks for them") {
  const auto group = make_group();
  HostCommunicator& worker = group->worker(0);
  const int n = worker.size();
  const std::vector<float> sent = values_of(worker.rank(), 1000);
  std::vector<float> got(sent.size());
  const std::size_t bytes = sent.size() * sizeof(float);
  // Everybody sends first: a send that waited for its receiver would wait for ever.
  worker.send_now(sent.data(), bytes, (worker.rank() + 1) % n, 9);
  worker.receive_now(got.data(), bytes, (worker.rank() + n - 1) % n, 9);
  CHECK(got == values_of((worker.rank() + n - 1) % n, 1000));
}

TEST_CASE("processes with different numbers of workers") {
  const World world = discover_world();
  GroupOptions options;
  options.local_workers = world.rank + 1;
  const auto group = make_group(options);
  CHECK(group->size() == world.size * (world.size + 1) / 2);
  CHECK(group->first_rank() == world.rank * (world.rank + 1) / 2);
  CHECK(on_all_workers(*group, collectives_are_right));
}

TEST_CASE("all ranks get the same bits where the order of sums would show") {
  const auto group = make_group();
  HostCommunicator& worker = group->worker(0);
  std::vector<float> values(100003);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 1.0F / static_cast<float>(i + 3 + 17 * static_cast<std::size_t>(worker.rank()));
  }
  const auto count = static_cast<std::int64_t>(values.size());
  worker.all_reduce_now(values.data(), values.data(), count, DType::f32, Reduction::mean);
  const std::string mine(reinterpret_cast<const char*>(values.data()),
                         values.size() * sizeof(float));
  for (const std::string& bits : gather_texts(group->processes(), mine)) CHECK(bits == mine);
}

TEST_CASE("split joins those of one color, and each split has channels of its own") {
  const auto group = make_group();
  HostCommunicator& worker = group->worker(0);
  const int color = worker.rank() % 2;
  const auto half = worker.split_host(color, -worker.rank());
  REQUIRE(half);
  CHECK(half->size() == (worker.size() + 1 - color) / 2);
  std::int64_t sum = worker.rank();
  half->all_reduce_now(&sum, &sum, 1, DType::i64, Reduction::sum);
  std::int64_t expected = 0;
  for (int r = color; r < worker.size(); r += 2) expected += r;
  CHECK(sum == expected);
  CHECK(worker.split_host(-1, 0) == nullptr);
  if (half->size() == 2) CHECK(messages_are_right(*half));
}

TEST_CASE("processes agree on values and texts") {
  const auto group = make_group();
  HostCommunicator& processes = group->processes();
  const int n = processes.size();
  CHECK(sum_over(processes, std::int64_t{processes.rank()}) == n * (n - 1) / 2);
  const std::string mine(static_cast<std::size_t>(processes.rank()) * 400000, 'x');
  CHECK(broadcast_text(processes, mine, n - 1).size() == std::size_t(n - 1) * 400000);
  const auto texts = gather_texts(processes, mine);
  REQUIRE(static_cast<int>(texts.size()) == n);
  for (int r = 0; r < n; ++r) CHECK(texts[r].size() == static_cast<std::size_t>(r) * 400000);
}

TEST_CASE("the start check names what differs, on all ranks") {
  const auto group = make_group();
  HostCommunicator& processes = group->processes();
  check_equal_facts(processes, {{"version", "1"}, {"lr", "0.1"}});
  const std::string last = std::to_string(processes.size() - 1);
  const bool is_last = processes.rank() == processes.size() - 1;
  expect_error(ErrorKind::usage, {"lr is '0.1' on rank 0, '0.2' on rank " + last}, [&] {
    check_equal_facts(processes, {{"version", "1"}, {"lr", is_last ? "0.2" : "0.1"}});
  });
}

TEST_CASE("MPI's own all-reduce gives the same sums") {
  const auto group = make_group();
  const HostAllReduce all_reduce = mpi_library_all_reduce();
  std::vector<float> values = values_of(group->first_rank(), 1000);
  all_reduce(values.data(), values.data(), 1000, DType::f32, Reduction::sum);
  CHECK(wrong_sums(values, group->size()) == 0);
  all_reduce(values.data(), values.data(), 1000, DType::f32, Reduction::mean);
  CHECK(wrong_sums(values, group->size()) == 0);
}

TEST_CASE("a message of another size is an error on the receiver") {
  const auto group = make_group();
  HostCommunicator& worker = group->worker(0);
  std::int64_t number = 5;
  if (worker.rank() == 0) worker.send_now(&number, 8, 1, 0);
  if (worker.rank() == 1) {
    expect_error(ErrorKind::communication, {"8 bytes from rank 0", "4 expected"},
                 [&] { worker.receive_now(&number, 4, 0, 0); });
  }
  worker.barrier();
}

TEST_CASE("process groups follow each other in the main thread") {
  for (int round = 0; round < 2; ++round) {
    init_process_group("auto", 20);
    CHECK(get_world_size() == discover_world().size);
    CHECK(get_rank() == discover_world().rank);
    CHECK(get_local_rank() == discover_world().local_rank);
    CHECK(std::string(communicator().name()) == "mpi");
    barrier();
    destroy_process_group();
    CHECK_FALSE(is_initialized());
  }
}

TEST_CASE("spawn inside mpirun gives workers of all processes") {
  std::atomic<std::int64_t> sum{0};
  spawn(
      [&](int) {
        init_process_group("auto", 20);
        std::int64_t mine = get_rank();
        process_group()
            .worker(get_local_rank() % 2)
            .all_reduce_now(&mine, &mine, 1, DType::i64, Reduction::sum);
        sum += mine;
        destroy_process_group();
      },
      2);
  const std::int64_t workers = 2 * discover_world().size;
  CHECK(sum == 2 * (workers * (workers - 1) / 2));
}

TEST_CASE("NCCL joins emulated GPUs of several processes, two in each") {
  GroupOptions options;
  options.local_workers = 2;
  const auto group = make_group(options);
  std::atomic<int> wrong{0};
  with_workers(*group, [&](HostCommunicator& worker) {
    const Device device("emu:" + std::to_string(worker.rank() - group->first_rank()));
    DeviceContext& gpu = context(device);
    const auto stream = gpu.make_stream();
    const auto nccl = make_nccl_communicator(worker, device, {.timeout = 20});
    const MemoryPool::Block block = gpu.memory().allocate(4 * 300001, stream.get());
    const Buffer values{block.data(), DType::f32};
    for (std::int64_t count : {1, 5, 300001}) {
      std::vector<float> host = values_of(worker.rank(), count);
      gpu.copy_in(*stream, block.data(), host.data(), host.size() * sizeof(float));
      nccl->all_reduce(values, values, count, Reduction::sum, *stream);
      gpu.copy_out(*stream, host.data(), block.data(), host.size() * sizeof(float));
      wrong += wrong_sums(host, worker.size()) != 0;
    }
    // Those of one process, and those of the same number in all.
    const auto pairs = nccl->split(worker.rank() / 2, 0);
    const auto across = nccl->split(worker.rank() % 2, 0);
    float one = 1;
    gpu.copy_in(*stream, block.data(), &one, sizeof one);
    pairs->all_reduce(values, values, 1, Reduction::sum, *stream);
    across->all_reduce(values, values, 1, Reduction::sum, *stream);
    gpu.copy_out(*stream, &one, block.data(), sizeof one);
    wrong += one != static_cast<float>(worker.size());
  });
  CHECK(wrong == 0);
}

}  // namespace convoy
