// The communicator over NCCL on emulated devices, whose ranks are threads.
#include "comm/nccl_devices.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <numeric>
#include <thread>

#include "kernels/base/bf16.h"
#include "kernels/base/context.h"
#include "tests/comm/thread_group.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {
namespace {

using testing::expect_error;
using testing::kNothing;
using testing::Notes;

/// A rank's device, stream and communicator.
struct Rank {
  explicit Rank(HostCommunicator& host)
      : device("emu:" + std::to_string(host.rank())),
        stream(context(device).make_stream()),
        nccl(make_nccl_communicator(host, device)) {}

  int number() const { return nccl->rank(); }
  int size() const { return nccl->size(); }

  Device device;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<NcclCommunicator> nccl;
};

/// Values of T in a rank's device.
template <class T>
class Values {
 public:
  Values(Rank& rank, const std::vector<T>& values)
      : rank_(rank),
        count_(values.size()),
        block_(context(rank.device).memory().allocate(bytes() + 1, rank.stream.get())) {
    context(rank.device).copy_in(*rank.stream, block_.data(), values.data(), bytes());
  }
  Buffer buffer(std::size_t from = 0) const {
    return {static_cast<T*>(block_.data()) + from, dtype_of<T>};
  }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    context(rank_.device).copy_out(*rank_.stream, values.data(), block_.data(), bytes());
    return values;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(T); }
  Rank& rank_;
  std::size_t count_;
  MemoryPool::Block block_;
};

template <class T>
std::vector<T> counted(std::size_t count, int first) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), static_cast<T>(first));
  return values;
}

void run_ranks(int n, const std::function<void(Rank&)>& work) {
  testing::run_ranks(n, {}, [&](HostCommunicator& host) {
    Rank rank(host);
    work(rank);
    rank.stream->synchronize();
  });
}

template <class T>
void reduce_all_ways(Rank& rank, std::int64_t count, Notes& notes) {
  const auto n = static_cast<std::size_t>(count);
  const Values<T> in(rank, counted<T>(n, rank.number())), out(rank, std::vector<T>(n, T(99)));
  std::vector<T> sums(n), largest(n);
  for (std::size_t i = 0; i < n; ++i) {
    const int of_ranks = rank.size() * (rank.size() - 1) / 2;
    sums[i] = static_cast<T>(static_cast<T>(rank.size() * static_cast<int>(i) + of_ranks));
    for (int r = 0; r < rank.size(); ++r) {
      largest[i] = std::max(largest[i], static_cast<T>(r + static_cast<int>(i)));
    }
  }
  const std::string what = fmt::format("{} x {}", count, name(dtype_of<T>));
  rank.nccl->all_reduce(in.buffer(), out.buffer(), count, Reduction::sum, *rank.stream);
  notes.expect(out.read() == sums, "sum of " + what);
  notes.expect(in.read() == counted<T>(n, rank.number()), "input of " + what);
  rank.nccl->all_reduce(in.buffer(), out.buffer(), count, Reduction::max, *rank.stream);
  notes.expect(out.read() == largest, "max of " + what);
  // Chunks whose sizes differ by one, as of a host's communicator.
  rank.nccl->reduce_scatter(in.buffer(), out.buffer(), count, Reduction::sum, *rank.stream);
  const Chunk mine = chunk_of(count, rank.number(), rank.size());
  const std::vector<T> got = out.read();
  notes.expect(std::equal(sums.begin() + mine.begin, sums.begin() + mine.end, got.begin()),
               "chunk of " + what);
}

}  // namespace

TEST_CASE("nccl communicator: reductions of all types, of counts that do not divide") {
  Notes notes;
  for (const int n : {1, 2, 3}) {
    run_ranks(n, [&](Rank& rank) {
      for (const std::int64_t count : {0, 1, 2, 3, 6, 70'001}) {
        reduce_all_ways<double>(rank, count, notes);
        reduce_all_ways<std::int64_t>(rank, count, notes);
        reduce_all_ways<std::uint8_t>(rank, count, notes);
      }
      reduce_all_ways<float>(rank, 1001, notes);
      reduce_all_ways<std::int32_t>(rank, 1001, notes);
    });
  }
  CHECK(notes.text() == kNothing);
}

TEST_CASE("nccl communicator: means, and bf16") {
  Notes notes;
  run_ranks(2, [&](Rank& rank) {
    const Values<float> values(rank, {1.0f + static_cast<float>(rank.number()), 8});
    rank.nccl->all_reduce(values.buffer(), values.buffer(), 2, Reduction::mean, *rank.stream);
    notes.expect(values.read() == std::vector<float>{1.5f, 8}, "mean");
    const Values<std::int32_t> bits(rank, {0});  // two values of bf16
    const Bf16 pair[2] = {Bf16(1.0f), Bf16(256.0f)};
    context(rank.device).copy_in(*rank.stream, bits.buffer().data, pair, sizeof pair);
    const Buffer two{bits.buffer().data, DType::bf16};
    rank.nccl->all_reduce(two, two, 2, Reduction::sum, *rank.stream);
    Bf16 got[2];
    context(rank.device).copy_out(*rank.stream, got, two.data, sizeof got);
    notes.expect(static_cast<float>(got[0]) == 2 && static_cast<float>(got[1]) == 512, "bf16");
  });
  CHECK(notes.text() == kNothing);
}

TEST_CASE("nccl communicator: all-gather, broadcast, barrier") {
  Notes notes;
  run_ranks(3, [&](Rank& rank) {
    const Values<std::int64_t> mine(rank, counted<std::int64_t>(5, 100 * rank.number()));
    const Values<std::int64_t> all(rank, std::vector<std::int64_t>(15));
    rank.nccl->all_gather(mine.buffer(), all.buffer(), 5, *rank.stream);
    const auto got = all.read();
    for (std::size_t r = 0; r < 3; ++r) {
      notes.expect(got[5 * r + 4] == static_cast<std::int64_t>(100 * r + 4), "all-gather");
    }
    rank.nccl->broadcast(mine.buffer(), 5, 2, *rank.stream);
    notes.expect(mine.read() == counted<std::int64_t>(5, 200), "broadcast");
    rank.nccl->barrier();
    notes.expect(std::string(rank.nccl->name()) == "nccl", "name");
  });
  CHECK(notes.text() == kNothing);
}

TEST_CASE("nccl communicator: messages, and an exchange in a group") {
  Notes notes;
  run_ranks(2, [&](Rank& rank) {
    const int peer = 1 - rank.number();
    const Values<float> out(rank, counted<float>(100'001, 7 * rank.number()));
    const Values<float> in(rank, std::vector<float>(100'001));
    for (int tag = 0; tag < 40; ++tag) {  // more than their notes' channel holds at a time
      if (rank.number() == 0) {
        rank.nccl->send(out.buffer(), tag, peer, tag, *rank.stream);
      } else {
        rank.nccl->receive(in.buffer(), tag, peer, tag, *rank.stream);
      }
    }
    notes.expect(rank.number() == 0 || in.read()[38] == 38, "messages");
    rank.nccl->begin_messages();
    rank.nccl->send(out.buffer(), 100'001, peer, 3, *rank.stream);
    rank.nccl->receive(in.buffer(), 100'001, peer, 3, *rank.stream);
    rank.nccl->end_messages();
    notes.expect(in.read() == counted<float>(100'001, 7 * peer), "exchange");
  });
  CHECK(notes.text() == kNothing);
}

TEST_CASE("nccl communicator: a message with another tag is an error of the receiver's stream") {
  expect_error(ErrorKind::communication, {"message of 4 bytes from rank 0 with tag 1", "tag 2"},
               [] {
                 run_ranks(2, [](Rank& rank) {
                   const Values<float> value(rank, {1});
                   if (rank.number() == 0)
                     return rank.nccl->send(value.buffer(), 1, 1, 1, *rank.stream);
                   rank.nccl->receive(value.buffer(), 1, 0, 2, *rank.stream);
                   rank.stream->synchronize();
                 });
               });
}

TEST_CASE("nccl communicator: groups that are split off") {
  Notes notes;
  run_ranks(4, [&](Rank& rank) {
    const int n = rank.number();
    const auto half = rank.nccl->split(n == 3 ? -1 : n % 2, -n);
    notes.expect((half == nullptr) == (n == 3), "who is in");
    if (!half) return;
    notes.expect(half->size() == (n == 1 ? 1 : 2), "size");
    const Values<float> value(rank, {static_cast<float>(n)});
    half->all_reduce(value.buffer(), value.buffer(), 1, Reduction::sum, *rank.stream);
    notes.expect(value.read()[0] == (n == 1 ? 1.0f : 2.0f), "sum");
    half->broadcast(value.buffer(), 1, 0, *rank.stream);
  });
  CHECK(notes.text() == kNothing);
}

TEST_CASE("nccl communicator: the vendor's library is loaded when it is first used") {
  CHECK(nccl_version(DeviceType::emu) == 22809);
  const auto is_loaded = [] {
    std::ifstream maps("/proc/self/maps");
    const std::string text((std::istreambuf_iterator<char>(maps)), {});
    return text.find("libnccl.so") != std::string::npos;
  };
  CHECK_FALSE(is_loaded());
  if (!has_nccl(DeviceType::cuda)) {
    return expect_error(ErrorKind::usage, {"nccl: this program was built without NCCL"},
                        [] { nccl_version(DeviceType::cuda); });
  }
  try {
    CHECK(nccl_version(DeviceType::cuda) >= 21800);
    CHECK(is_loaded());
  } catch (const Error& error) {  // built on another machine
    CHECK(error.text().starts_with("nccl: the library cannot be loaded: "));
  }
}

TEST_CASE("nccl communicator: ranks on one GPU are named") {
  expect_error(ErrorKind::usage, {"nccl: ranks 0 (emu:3) and 1 (emu:3) share one GPU"}, [] {
    testing::run_ranks(2, {},
                       [](HostCommunicator& host) { make_nccl_communicator(host, "emu:3"); });
  });
  expect_error(ErrorKind::usage, {"nccl: cpu:0 is no GPU"}, [] {
    testing::run_ranks(1, {},
                       [](HostCommunicator& host) { make_nccl_communicator(host, "cpu:0"); });
  });
}

TEST_CASE("nccl communicator: calls that differ end the group, with both named") {
  expect_error(ErrorKind::communication,
               {"nccl: rank ", "invalid usage", "ncclAllReduce(3 x f32, sum)",
                "ncclAllReduce(4 x f32, sum)"},
               [] {
                 run_ranks(2, [](Rank& rank) {
                   const Values<float> values(rank, counted<float>(4, 0));
                   rank.nccl->all_reduce(values.buffer(), values.buffer(), 3 + rank.number(),
                                         Reduction::sum, *rank.stream);
                   rank.stream->synchronize();
                 });
               });
}

TEST_CASE("nccl communicator: an abort ends waits, and calls that come later") {
  Notes notes;
  auto group = make_thread_communicators(2);
  std::vector<std::unique_ptr<Rank>> ranks(2);
  const auto make = [&](HostCommunicator& host) {
    ranks[static_cast<std::size_t>(host.rank())] = std::make_unique<Rank>(host);
  };
  testing::run_ranks(group, make);
  const Values<float> value(*ranks[0], {1});
  ranks[0]->nccl->all_reduce(value.buffer(), value.buffer(), 1, Reduction::sum, *ranks[0]->stream);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    group[1]->abort(Error(ErrorKind::numerics, "loss is nan"));  // that of the host
  });
  const auto expect_end = [&](const std::function<void()>& call) {
    expect_error(ErrorKind::numerics, {"loss is nan"}, call);
  };
  expect_end([&] { ranks[0]->stream->synchronize(); });
  other.join();
  expect_end([&] {
    ranks[0]->nccl->all_reduce(value.buffer(), value.buffer(), 1, Reduction::sum,
                               *ranks[0]->stream);
  });
  expect_end([&] { ranks[1]->nccl->barrier(); });
  expect_end([&] { ranks[1]->nccl->split(0, 0); });
}

TEST_CASE("nccl communicator: what callers hand over is checked") {
  run_ranks(1, [](Rank& rank) {
    const Values<float> a(rank, {1, 2}), b(rank, {3, 4});
    Stream& stream = *rank.stream;
    const Buffer integers{b.buffer().data, DType::i32};
    expect_error(ErrorKind::usage, {"input is f32, output i32"},
                 [&] { rank.nccl->all_reduce(a.buffer(), integers, 1, Reduction::sum, stream); });
    expect_error(ErrorKind::usage, {"mean of i32"},
                 [&] { rank.nccl->all_reduce(integers, integers, 1, Reduction::mean, stream); });
    expect_error(ErrorKind::usage, {"overlap by part"}, [&] {
      rank.nccl->all_reduce(a.buffer(), a.buffer(1), 1 + 1, Reduction::sum, stream);
    });
    expect_error(ErrorKind::usage, {"stream of cpu:0", "emu:0"}, [&] {
      rank.nccl->broadcast(a.buffer(), 1, 0, context("cpu:0").default_stream());
    });
    expect_error(ErrorKind::usage, {"root is rank 1"},
                 [&] { rank.nccl->broadcast(a.buffer(), 1, 1, stream); });
    // What only the library finds: memory past the end of a buffer.
    expect_error(ErrorKind::communication, {"nccl: rank 0 of 1: broadcast: invalid argument"},
                 [&] { rank.nccl->broadcast(a.buffer(), 1 << 28, 0, stream); });
    rank.nccl->all_reduce(a.buffer(), b.buffer(), 2, Reduction::sum, stream);
    CHECK(b.read() == std::vector<float>{1, 2});
  });
}

TEST_CASE("a host's communicator moves buffers of GPUs through this machine's memory") {
  Notes notes;
  testing::run_ranks(2, {}, [&](HostCommunicator& host) {
    const Device device("emu:0");  // one GPU for both
    DeviceContext& gpu = context(device);
    const auto stream = gpu.make_stream();
    const MemoryPool::Block block = gpu.memory().allocate(64, stream.get());
    const std::vector<float> mine = {1.0f + static_cast<float>(host.rank()), 5, 0, 0};
    gpu.copy_in(*stream, block.data(), mine.data(), 16);
    const Buffer values{block.data(), DType::f32};
    const Buffer rest{static_cast<float*>(block.data()) + 4, DType::f32};
    const auto read = [&](std::size_t from, std::size_t count) {
      std::vector<float> got(count);
      gpu.copy_out(*stream, got.data(), static_cast<float*>(block.data()) + from,
                   count * sizeof(float));
      return got;
    };
    host.all_reduce(values, values, 2, Reduction::sum, *stream);
    notes.expect(read(0, 2) == std::vector<float>{3, 10}, "all_reduce");
    host.reduce_scatter(values, rest, 3, Reduction::sum, *stream);  // 3 10 | 0
    notes.expect(read(4, 1)[0] == (host.rank() == 0 ? 6.0f : 20.0f), "reduce_scatter");
    host.all_gather(rest, values, 1, *stream);
    notes.expect(read(0, 2) == std::vector<float>{6, 20}, "all_gather");
    if (host.rank() == 0) {
      host.send(values, 2, 1, 5, *stream);
    } else {
      host.receive(rest, 2, 0, 5, *stream);
      notes.expect(read(4, 2) == std::vector<float>{6, 20}, "receive");
    }
    host.broadcast(rest, 2, 1, *stream);
    notes.expect(read(4, 2) == std::vector<float>{6, 20}, "broadcast");
  });
  CHECK(notes.text() == kNothing);
}

}  // namespace convoy
