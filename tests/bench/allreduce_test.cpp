#include "bench/allreduce.h"

#include <new>

#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {
namespace {

using testing::check_error;

std::unique_ptr<Group> workers(int count) {
  GroupOptions options;
  options.backend = "thread";
  options.local_workers = count;
  options.timeout = 20;
  return Group::make({}, options);
}

/// The communicator of another one, whose sums of fp32 values are wrong in the last value, or find
/// no memory.
class WrongSums final : public HostCommunicator {
 public:
  WrongSums(HostCommunicator& right, bool out_of_memory)
      : right_(right), out_of_memory_(out_of_memory) {}
  int rank() const override { return right_.rank(); }
  int size() const override { return right_.size(); }
  const char* name() const override { return right_.name(); }
  void all_reduce_now(const void* in, void* out, std::int64_t count, DType dtype,
                      Reduction reduction) override {
    if (out_of_memory_) throw std::bad_alloc();
    right_.all_reduce_now(in, out, count, dtype, reduction);
    if (dtype == DType::f32) static_cast<float*>(out)[count - 1] += 1;
  }
  void reduce_scatter_now(const void* in, void* out, std::int64_t count, DType dtype,
                          Reduction reduction) override {
    right_.reduce_scatter_now(in, out, count, dtype, reduction);
  }
  void all_gather_now(const void* in, void* out, std::size_t bytes) override {
    right_.all_gather_now(in, out, bytes);
  }
  void broadcast_now(void* values, std::size_t bytes, int root) override {
    right_.broadcast_now(values, bytes, root);
  }
  void send_now(const void* values, std::size_t bytes, int peer, int tag) override {
    right_.send_now(values, bytes, peer, tag);
  }
  void receive_now(void* values, std::size_t bytes, int peer, int tag) override {
    right_.receive_now(values, bytes, peer, tag);
  }
  void send_aside(const void* values, std::size_t bytes, int peer, int tag,
                  const SideWait& wait) override {
    right_.send_aside(values, bytes, peer, tag, wait);
  }
  void receive_aside(void* values, std::size_t bytes, int peer, int tag,
                     const SideWait& wait) override {
    right_.receive_aside(values, bytes, peer, tag, wait);
  }
  ProgressBoard* board() const override { return right_.board(); }
  std::shared_ptr<AbortFlag> abort_flag() const override { return right_.abort_flag(); }
  void barrier() override { right_.barrier(); }
  std::unique_ptr<HostCommunicator> split_host(int color, int key) override {
    return right_.split_host(color, key);
  }
  void abort(const Error& why) override { right_.abort(why); }

 private:
  HostCommunicator& right_;
  bool out_of_memory_;
};

/// A group of two whose second worker gets wrong sums.
class WrongGroup final : public Group {
 public:
  explicit WrongGroup(bool out_of_memory = false) : wrong_(right_->worker(1), out_of_memory) {}
  const World& world() const override { return right_->world(); }
  const char* backend() const override { return right_->backend(); }
  int size() const override { return right_->size(); }
  int first_rank() const override { return right_->first_rank(); }
  int first_on_host() const override { return right_->first_on_host(); }
  int local_workers() const override { return right_->local_workers(); }
  HostCommunicator& worker(int local) override { return local == 1 ? wrong_ : right_->worker(0); }
  HostCommunicator& processes() override { return right_->processes(); }
  ProgressBoard& progress(int local) override { return right_->progress(local); }
  int cores_per_worker() const override { return right_->cores_per_worker(); }
  const Cores& cores(int local) const override { return right_->cores(local); }
  Error fail(const Error& error) override { return right_->fail(error); }

 private:
  std::unique_ptr<Group> right_ = workers(2);
  WrongSums wrong_;
};

}  // namespace

TEST_CASE("bench allreduce has a row for each size, with the bus bandwidth of its median") {
  const int n = GENERATE(2, 3);
  const auto group = workers(n);
  const auto rows = bench_all_reduce(*group, {.bytes = {4, 100'000}, .repeats = 2});
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].bytes == 4);
  CHECK(rows[1].bytes == 100'000);
  for (const AllReduceBenchRow& row : rows) {
    CHECK(row.impl == "ring");
    CHECK(row.ranks == n);
    CHECK(row.best_s > 0);
    CHECK(row.median_s >= row.best_s);
    const double moved = static_cast<double>(row.bytes) * (n == 2 ? 1.0 : 4.0 / 3.0);
    CHECK(std::abs(row.bus_gb_s * row.median_s * 1e9 - moved) < 1e-6 * moved);
  }
}

TEST_CASE("bench allreduce stops at a wrong sum") {
  WrongGroup group;
  // Values are 0 and 1 in the first round, on rank 1 more by 7.
  check_error(
      [&] { bench_all_reduce(group, {.bytes = {8}, .repeats = 1}); }, ErrorKind::communication,
      "bench allreduce: ring: 1 of 2 values are wrong on rank 1; value 1 is 10, expected 9");
}

TEST_CASE("bench allreduce ends all workers when one has no memory") {
  WrongGroup group(true);
  check_error([&] { bench_all_reduce(group, {.bytes = {8}, .repeats = 1}); }, ErrorKind::resource,
              "out of memory");
}

TEST_CASE("bench allreduce needs two workers and whole values") {
  const auto alone = workers(1);
  const auto two = workers(2);
  check_error([&] { bench_all_reduce(*alone, {}); }, ErrorKind::usage,
              "bench allreduce: one worker has nothing to add up; expected --devices cpu:0,cpu:1 "
              "or a start with mpirun -n 2");
  check_error(
      [&] {
        bench_all_reduce(*two, {.bytes = {8, 6}});
      },
      ErrorKind::usage, "bench allreduce: 6 bytes, expected whole fp32 values: a multiple of 4");
  check_error([&] { bench_all_reduce(*two, {.repeats = 0}); }, ErrorKind::usage,
              "bench allreduce: 0 repeats, expected at least 1");
}

}  // namespace convoy
