// The emulated NCCL by itself: every collective against closed forms, and every error once.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "kernels/base/bf16.h"
#include "kernels/emulator/nccl_api.h"
#include "tests/support/catch.h"

using namespace convoy;
using namespace convoy::emulator;

namespace {

/// Ranks on emu:0, emu:1, ..., each with a stream, driven by one thread.
class Clique {
 public:
  explicit Clique(int ranks) : comms(static_cast<std::size_t>(ranks)), streams(comms.size()) {
    REQUIRE(ncclCommInitAll(comms.data(), ranks, nullptr) == ncclSuccess);
    for (int rank = 0; rank < ranks; ++rank) {
      cudaSetDevice(rank);
      REQUIRE(cudaStreamCreateWithFlags(&stream(rank), cudaStreamNonBlocking) == cudaSuccess);
    }
  }
  ~Clique() {
    end();
    for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
  }
  Clique(const Clique&) = delete;
  Clique& operator=(const Clique&) = delete;

  /// Before memory is freed: cudaFree() waits for the device's work.
  void end() {
    for (ncclComm_t comm : comms) ncclCommAbort(comm);
    synchronize();
  }
  int size() const { return static_cast<int>(comms.size()); }
  ncclComm_t& comm(int rank) { return comms[static_cast<std::size_t>(rank)]; }
  cudaStream_t& stream(int rank) { return streams[static_cast<std::size_t>(rank)]; }
  void synchronize() {
    for (cudaStream_t stream : streams) cudaStreamSynchronize(stream);
  }
  /// The asynchronous error of a rank, which comes within some seconds.
  ncclResult_t error_of(int rank) {
    ncclResult_t error = ncclSuccess;
    for (int i = 0; i < 2000 && error == ncclSuccess; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ncclCommGetAsyncError(comm(rank), &error);
    }
    return error;
  }
  std::string text_of(int rank) { return ncclGetLastError(comm(rank)); }

  std::vector<ncclComm_t> comms;
  std::vector<cudaStream_t> streams;
};

/// Memory of a device with values of T.
template <class T>
class Values {
 public:
  Values(int device, const std::vector<T>& values) : count_(values.size()) {
    cudaSetDevice(device);
    REQUIRE(cudaMalloc(&data_, bytes() + 1) == cudaSuccess);
    REQUIRE(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  ~Values() { cudaFree(data_); }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  Values(Values&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(other.count_) {}

  T* data() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost);
    return values;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(T); }
  T* data_ = nullptr;
  std::size_t count_;
};

template <class T>
std::vector<T> iota(std::size_t count, T first) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// One buffer on each rank: count values from 100 * rank on.
template <class T>
std::vector<Values<T>> on_all(const Clique& clique, std::size_t count) {
  std::vector<Values<T>> all;
  for (int rank = 0; rank < clique.size(); ++rank) {
    all.emplace_back(rank, iota<T>(count, static_cast<T>(100 * rank)));
  }
  return all;
}

/// Of two long vectors; their size where there is none.
template <class T>
std::size_t first_difference(const std::vector<T>& a, const std::vector<T>& b) {
  REQUIRE(a.size() == b.size());
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

/// Calls one rank after the other inside a group.
template <class Work>
void for_all(const Clique& clique, Work&& work) {
  REQUIRE(ncclGroupStart() == ncclSuccess);
  for (int rank = 0; rank < clique.size(); ++rank) REQUIRE(work(rank) == ncclSuccess);
  REQUIRE(ncclGroupEnd() == ncclSuccess);
}

}  // namespace

TEST_CASE("nccl: all-reduce of odd counts, in place and not") {
  for (const int ranks : {1, 2, 3}) {
    Clique clique(ranks);
    for (const std::size_t count : {0, 1, 2, 1001, 300'001}) {
      const auto in = on_all<double>(clique, count);
      const auto out = on_all<double>(clique, count);
      for_all(clique, [&](int r) {
        const auto i = static_cast<std::size_t>(r);
        return ncclAllReduce(in[i].data(), out[i].data(), count, ncclFloat64, ncclSum,
                             clique.comm(r), clique.stream(r));
      });
      for_all(clique, [&](int r) {
        double* values = in[static_cast<std::size_t>(r)].data();
        return ncclAllReduce(values, values, count, ncclFloat64, ncclMax, clique.comm(r),
                             clique.stream(r));
      });
      clique.synchronize();
      std::vector<double> sums(count), largest(count);
      for (std::size_t i = 0; i < count; ++i) {
        sums[i] = ranks * static_cast<double>(i) + 100.0 * ranks * (ranks - 1) / 2;
        largest[i] = static_cast<double>(i) + 100.0 * (ranks - 1);
      }
      for (std::size_t r = 0; r < out.size(); ++r) {
        INFO("count " << count << ", rank " << r << " of " << ranks);
        CHECK(first_difference(out[r].read(), sums) == count);
        CHECK(first_difference(in[r].read(), largest) == count);
      }
    }
  }
}

TEST_CASE("nccl: types and reductions") {
  Clique clique(3);
  const auto reduced = [&]<class T>(T, ncclDataType_t type, ncclRedOp_t op) {
    const auto values = on_all<T>(clique, 2);  // 0 1, 100 101, 200 201
    for_all(clique, [&](int r) {
      T* data = values[static_cast<std::size_t>(r)].data();
      return ncclAllReduce(data, data, 2, type, op, clique.comm(r), clique.stream(r));
    });
    clique.synchronize();
    CHECK(values[0].read() == values[1].read());
    CHECK(values[0].read() == values[2].read());
    return values[1].read();
  };
  CHECK(reduced(float{}, ncclFloat32, ncclMin) == std::vector<float>{0, 1});
  CHECK(reduced(float{}, ncclFloat32, ncclProd) == std::vector<float>{0, 20301});
  CHECK(reduced(std::int32_t{}, ncclInt32, ncclAvg) == std::vector<std::int32_t>{100, 101});
  CHECK(reduced(std::int64_t{}, ncclInt64, ncclSum) == std::vector<std::int64_t>{300, 303});
  // Bytes wrap around: 0 + 100 + 200 = 300.
  CHECK(reduced(std::uint8_t{}, ncclUint8, ncclSum) == std::vector<std::uint8_t>{44, 47});
  // The factor comes first: 100 * f + (0 * f + 200 * f) with f = 1/3 as a float.
  CHECK(reduced(double{}, ncclFloat64, ncclAvg)[0] == 100.0 * (1.0 / 3) + 200.0 * (1.0 / 3));
}

TEST_CASE("nccl: sums round at each hop, where the seed lets them begin") {
  // 256 + 1 + 1 in bf16 is 256 where the large one comes first, and 258 where it comes last.
  const auto sum = [](const char* seed) {
    setenv("CONVOY_EMULATOR_NCCL_SEED", seed, 1);
    Clique clique(3);
    unsetenv("CONVOY_EMULATOR_NCCL_SEED");
    std::vector<Values<std::uint16_t>> values;
    for (int r = 0; r < 3; ++r) {
      const float value = r == 0 ? 256.0f : 1.0f;
      values.emplace_back(r, std::vector<std::uint16_t>(3, Bf16(value).bits));
    }
    for_all(clique, [&](int r) {
      std::uint16_t* data = values[static_cast<std::size_t>(r)].data();
      return ncclAllReduce(data, data, 3, ncclBfloat16, ncclSum, clique.comm(r), clique.stream(r));
    });
    clique.synchronize();
    CHECK(values[0].read() == values[1].read());
    CHECK(values[0].read() == values[2].read());
    std::vector<float> sums;
    for (std::uint16_t bits : values[0].read()) {
      Bf16 value;
      value.bits = bits;
      sums.push_back(static_cast<float>(value));
    }
    return sums;
  };
  // Part p ends at rank p - 1 - seed. In the middle 256 swallows both ones too: 257 is not in bf16.
  CHECK(sum("0") == std::vector<float>{256, 258, 256});
  CHECK(sum("1") == std::vector<float>{256, 256, 258});
}

TEST_CASE("nccl: broadcast, reduce, reduce-scatter and all-gather") {
  Clique clique(3);
  const auto at = [](int rank) { return static_cast<std::size_t>(rank); };
  const std::size_t count = 400'001;
  const auto in = on_all<std::int32_t>(clique, 3 * count);
  const auto out = on_all<std::int32_t>(clique, 3 * count);
  for_all(clique, [&](int r) {
    return ncclBroadcast(in[at(r)].data(), out[at(r)].data(), count, ncclInt32, 1, clique.comm(r),
                         clique.stream(r));
  });
  clique.synchronize();
  for (const auto& values : out) CHECK(values.read()[count - 1] == 100 + int{count} - 1);

  for_all(clique, [&](int r) {
    return ncclReduce(in[at(r)].data(), out[at(r)].data(), count, ncclInt32, ncclSum, 2,
                      clique.comm(r), clique.stream(r));
  });
  clique.synchronize();
  CHECK(out[2].read()[count - 1] == 3 * (int{count} - 1) + 300);
  CHECK(out[0].read()[count - 1] == 100 + int{count} - 1);

  for_all(clique, [&](int r) {
    return ncclReduceScatter(in[at(r)].data(), out[at(r)].data(), count, ncclInt32, ncclSum,
                             clique.comm(r), clique.stream(r));
  });
  clique.synchronize();
  for (int r = 0; r < 3; ++r) {
    CHECK(out[at(r)].read()[0] == 3 * r * int{count} + 300);
    CHECK(out[at(r)].read()[count - 1] == 3 * ((r + 1) * int{count} - 1) + 300);
  }

  // In place: each rank's own part lies in its place.
  for_all(clique, [&](int r) {
    std::int32_t* values = in[at(r)].data();
    return ncclAllGather(values + at(r) * count, values, count, ncclInt32, clique.comm(r),
                         clique.stream(r));
  });
  clique.synchronize();
  for (const auto& values : in) {
    const auto all = values.read();
    CHECK(all[0] == 0);
    CHECK(all[count] == int{count} + 100);
    CHECK(all[3 * count - 1] == 3 * int{count} - 1 + 200);
  }
}

TEST_CASE("nccl: messages of a group move side by side, and a send waits for its receipt") {
  Clique clique(2);
  const std::size_t count = 200'003;  // more than a channel holds
  const auto out = on_all<float>(clique, count), in = on_all<float>(clique, count);
  REQUIRE(ncclSend(out[0].data(), 1, ncclFloat32, 1, clique.comm(0), clique.stream(0)) ==
          ncclSuccess);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(cudaStreamQuery(clique.stream(0)) == cudaErrorNotReady);
  REQUIRE(ncclRecv(in[1].data(), 1, ncclFloat32, 0, clique.comm(1), clique.stream(1)) ==
          ncclSuccess);
  clique.synchronize();
  CHECK(in[1].read()[0] == 0);

  ncclGroupStart();
  for (int r = 0; r < 2; ++r) {
    const auto i = static_cast<std::size_t>(r);
    for (int twice = 0; twice < 2; ++twice) {
      ncclSend(out[i].data(), count, ncclFloat32, 1 - r, clique.comm(r), clique.stream(r));
      ncclRecv(in[i].data(), count, ncclFloat32, 1 - r, clique.comm(r), clique.stream(r));
    }
  }
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  clique.synchronize();
  CHECK(first_difference(in[0].read(), out[1].read()) == count);
  CHECK(first_difference(in[1].read(), out[0].read()) == count);
}

TEST_CASE("nccl: calls return before their work, and streams of one communicator keep the order") {
  Clique clique(2);
  cudaSetDevice(0);
  cudaStream_t second;
  REQUIRE(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking) == cudaSuccess);
  const auto a = on_all<float>(clique, 1), b = on_all<float>(clique, 1);
  const auto reduce = [&](int r, const Values<float>& values, cudaStream_t stream) {
    CHECK(ncclAllReduce(values.data(), values.data(), 1, ncclFloat32, ncclSum, clique.comm(r),
                        stream) == ncclSuccess);
  };
  reduce(0, a[0], clique.stream(0));
  reduce(0, b[0], second);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(cudaStreamQuery(second) == cudaErrorNotReady);
  reduce(1, a[1], clique.stream(1));
  reduce(1, b[1], clique.stream(1));
  clique.synchronize();
  CHECK(cudaStreamSynchronize(second) == cudaSuccess);
  CHECK(a[0].read() == std::vector<float>{100});
  CHECK(b[1].read() == std::vector<float>{100});
  cudaStreamDestroy(second);
}

TEST_CASE("nccl: a captured call runs with each launch of its graph") {
  Clique clique(2);
  const auto values = on_all<float>(clique, 1);
  std::vector<cudaGraphExec_t> execs(2);
  for (int r = 0; r < 2; ++r) {
    const auto i = static_cast<std::size_t>(r);
    cudaSetDevice(r);
    REQUIRE(cudaStreamBeginCapture(clique.stream(r), cudaStreamCaptureModeThreadLocal) ==
            cudaSuccess);
    REQUIRE(ncclAllReduce(values[i].data(), values[i].data(), 1, ncclFloat32, ncclSum,
                          clique.comm(r), clique.stream(r)) == ncclSuccess);
    cudaGraph_t graph;
    REQUIRE(cudaStreamEndCapture(clique.stream(r), &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&execs[i], graph) == cudaSuccess);
    cudaGraphDestroy(graph);
  }
  for (int launch = 0; launch < 3; ++launch) {
    for (int r = 0; r < 2; ++r) {
      cudaSetDevice(r);
      REQUIRE(cudaGraphLaunch(execs[static_cast<std::size_t>(r)], clique.stream(r)) == cudaSuccess);
    }
  }
  clique.synchronize();
  CHECK(values[0].read() == std::vector<float>{400});  // 0 + 100, twice as much, twice again
  CHECK(values[1].read() == std::vector<float>{400});
  for (cudaGraphExec_t exec : execs) cudaGraphExecDestroy(exec);
}

TEST_CASE("nccl: arguments that cannot be right are refused at the call") {
  Clique clique(2);
  const auto values = on_all<float>(clique, 8);
  std::vector<float> on_host(8);
  const auto text = [&](const void* in, void* out, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, cudaStream_t stream) {
    CHECK(ncclAllReduce(in, out, count, type, op, clique.comm(0), stream) == ncclInvalidArgument);
    return clique.text_of(0);
  };
  float* data = values[0].data();
  const cudaStream_t stream = clique.stream(0);
  CHECK_THAT(text(data, data + 1, 4, ncclFloat32, ncclSum, stream),
             Catch::Contains("input and output overlap"));
  CHECK_THAT(text(values[1].data(), data, 4, ncclFloat32, ncclSum, stream),
             Catch::Contains("the input is ") && Catch::Contains("emu:1"));
  CHECK_THAT(text(data, on_host.data(), 4, ncclFloat32, ncclSum, stream),
             Catch::Contains("the output is "));
  CHECK_THAT(text(data, data, 9, ncclFloat32, ncclSum, stream), Catch::Contains("36 bytes"));
  CHECK_THAT(text(nullptr, data, 1, ncclFloat32, ncclSum, stream), Catch::Contains("null"));
  CHECK_THAT(text(data, data, 4, ncclFloat16, ncclSum, stream), Catch::Contains("f16"));
  CHECK_THAT(text(data, data, 4, ncclFloat32, static_cast<ncclRedOp_t>(7), stream),
             Catch::Contains("reduction 7"));
  CHECK_THAT(text(data, data, 4, ncclFloat32, ncclSum, clique.stream(1)),
             Catch::Contains("the stream is of emu:1"));
  CHECK_THAT(text(data, data, 4, ncclFloat32, ncclSum, nullptr), Catch::Contains("stream"));
  CHECK(ncclBroadcast(data, data, 4, ncclFloat32, 2, clique.comm(0), stream) ==
        ncclInvalidArgument);
  CHECK_THAT(clique.text_of(0), Catch::Contains("rank 2 is none of 0 to 1"));
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
}

TEST_CASE("nccl: two ranks on a device, a rank twice, other numbers of ranks") {
  ncclComm_t comms[2];
  const int same[] = {1, 1};
  CHECK(ncclCommInitAll(comms, 2, same) == ncclInvalidUsage);
  CHECK_THAT(std::string(ncclGetLastError(nullptr)), Catch::Contains("ranks 0 and 1 are both on"));
  for (ncclComm_t comm : comms) ncclCommAbort(comm);

  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  CHECK(ncclCommInitRankConfig(&comms[0], 2, id, 0, &config) == ncclInProgress);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ncclResult_t state = ncclSuccess;
  CHECK(ncclCommGetAsyncError(comms[0], &state) == ncclSuccess);
  CHECK(state == ncclInProgress);
  CHECK(ncclCommInitRank(&comms[1], 2, id, 0) == ncclInvalidUsage);
  CHECK_THAT(std::string(ncclGetLastError(nullptr)), Catch::Contains("rank 0 has come twice"));
  ncclCommAbort(comms[1]);
  CHECK(ncclCommInitRank(&comms[1], 3, id, 1) == ncclInvalidArgument);
  CHECK_THAT(std::string(ncclGetLastError(nullptr)), Catch::Contains("rank 1 was given 3 ranks"));
  ncclCommAbort(comms[1]);
  CHECK(ncclCommInitRank(&comms[1], 2, id, 2) == ncclInvalidArgument);
  CHECK(ncclCommAbort(comms[0]) == ncclSuccess);  // in the middle of its wait
  id.internal[0] = 0;
  CHECK(ncclCommInitRank(&comms[0], 2, id, 0) == ncclSystemError);
  ncclCommAbort(comms[0]);
}

TEST_CASE("nccl: a communicator that was aborted or destroyed is refused") {
  Clique clique(1);
  const auto values = on_all<float>(clique, 1);
  const auto call = [&] {
    return ncclAllReduce(values[0].data(), values[0].data(), 1, ncclFloat32, ncclSum,
                         clique.comm(0), clique.stream(0));
  };
  CHECK(call() == ncclSuccess);
  CHECK(ncclCommFinalize(clique.comm(0)) == ncclSuccess);
  CHECK(call() == ncclInvalidUsage);
  CHECK_THAT(clique.text_of(0), Catch::Contains("was finalized"));
  CHECK(ncclCommDestroy(clique.comm(0)) == ncclSuccess);
  CHECK(call() == ncclInvalidArgument);
  CHECK_THAT(std::string(ncclGetLastError(nullptr)), Catch::Contains("destroyed or aborted"));
  CHECK(ncclCommAbort(clique.comm(0)) == ncclInvalidArgument);
  CHECK(ncclCommDestroy(clique.comm(0)) == ncclInvalidArgument);
}

TEST_CASE("nccl: ranks that differ are named with both calls") {
  const auto texts = [](auto&& first, auto&& second) {
    Clique clique(2);
    const auto values = on_all<float>(clique, 8);
    CHECK(first(values[0].data(), clique.comm(0), clique.stream(0)) == ncclSuccess);
    CHECK(second(values[1].data(), clique.comm(1), clique.stream(1)) == ncclSuccess);
    CHECK(clique.error_of(0) == ncclInvalidUsage);
    CHECK(clique.error_of(1) == ncclInvalidUsage);
    CHECK(clique.text_of(0) == clique.text_of(1));
    CHECK(cudaStreamQuery(clique.stream(0)) == cudaErrorNotReady);  // until the abort
    const std::string text = clique.text_of(0);
    clique.end();
    return text;
  };
  const auto reduce = [](std::size_t count, ncclDataType_t type, ncclRedOp_t op) {
    return [=](float* values, ncclComm_t comm, cudaStream_t stream) {
      return ncclAllReduce(values, values, count, type, op, comm, stream);
    };
  };
  const auto broadcast = [](int root) {
    return [=](float* values, ncclComm_t comm, cudaStream_t stream) {
      return ncclBroadcast(values, values, 4, ncclFloat32, root, comm, stream);
    };
  };
  const auto send = [](std::size_t count, int peer) {
    return [=](float* values, ncclComm_t comm, cudaStream_t stream) {
      return ncclSend(values, count, ncclFloat32, peer, comm, stream);
    };
  };
  const auto receive = [](std::size_t count, int peer) {
    return [=](float* values, ncclComm_t comm, cudaStream_t stream) {
      return ncclRecv(values, count, ncclFloat32, peer, comm, stream);
    };
  };
  const std::string counts =
      texts(reduce(4, ncclFloat32, ncclSum), reduce(5, ncclFloat32, ncclSum));
  CHECK_THAT(counts,
             Catch::StartsWith("ranks differ: rank 0 calls ncclAllReduce(4 x f32, sum) at "));
  CHECK_THAT(counts, Catch::Contains("nccl_test.cpp:") &&
                         Catch::Contains("rank 1 calls ncclAllReduce(5 x f32, sum)"));
  CHECK_THAT(texts(reduce(4, ncclFloat32, ncclSum), reduce(4, ncclInt32, ncclSum)),
             Catch::Contains("4 x i32"));
  CHECK_THAT(texts(reduce(4, ncclFloat32, ncclSum), reduce(4, ncclFloat32, ncclMax)),
             Catch::Contains("4 x f32, max"));
  CHECK_THAT(texts(broadcast(0), broadcast(1)), Catch::Contains("root 1"));
  CHECK_THAT(texts(reduce(4, ncclFloat32, ncclSum), broadcast(0)),
             Catch::Contains("ncclAllReduce") && Catch::Contains("ncclBroadcast"));
  CHECK_THAT(texts(send(3, 1), receive(4, 0)),
             Catch::Contains("ncclSend(3 x f32 to rank 1)") &&
                 Catch::Contains("ncclRecv(4 x f32 from rank 0)"));
  // In another order: each waits for what the other would do next.
  CHECK_THAT(texts(send(4, 1), reduce(4, ncclFloat32, ncclSum)),
             Catch::Contains("ncclSend") && Catch::Contains("ncclAllReduce"));
  CHECK_THAT(texts(send(4, 1), send(4, 0)), Catch::Contains("ncclSend(4 x f32 to rank 1)") &&
                                                Catch::Contains("ncclSend(4 x f32 to rank 0)"));
  CHECK_THAT(texts(receive(4, 1), receive(4, 0)), Catch::Contains("ncclRecv"));
}

TEST_CASE("nccl: as hardware, ranks that differ stand still until they are aborted") {
  setenv("CONVOY_EMULATOR_NCCL", "as-hardware", 1);
  Clique clique(2);
  unsetenv("CONVOY_EMULATOR_NCCL");
  const auto values = on_all<float>(clique, 8);
  for (int r = 0; r < 2; ++r) {
    float* data = values[static_cast<std::size_t>(r)].data();
    REQUIRE(ncclAllReduce(data, data, 3 + static_cast<std::size_t>(r), ncclFloat32, ncclSum,
                          clique.comm(r), clique.stream(r)) == ncclSuccess);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  for (int r = 0; r < 2; ++r) {
    ncclResult_t error = ncclInternalError;
    CHECK(ncclCommGetAsyncError(clique.comm(r), &error) == ncclSuccess);
    CHECK(error == ncclSuccess);
    CHECK(cudaStreamQuery(clique.stream(r)) == cudaErrorNotReady);
  }
  clique.end();
}

// Started by the test after it, as another process.
TEST_CASE("nccl: a peer that dies in the middle", "[.nccl-peer]") {
  const char* text = std::getenv("CONVOY_TEST_NCCL_ID");
  REQUIRE(text);
  ncclUniqueId id;
  for (std::size_t i = 0; i < sizeof id.internal; ++i) {
    id.internal[i] = static_cast<char>(std::stoi(std::string(text + 2 * i, 2), nullptr, 16));
  }
  ncclComm_t comm;
  REQUIRE(ncclCommInitRank(&comm, 2, id, 1) == ncclSuccess);
  cudaStream_t stream;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  const Values<float> values(0, iota<float>(300'000, 1));
  REQUIRE(ncclAllReduce(values.data(), values.data(), 300'000, ncclFloat32, ncclSum, comm,
                        stream) == ncclSuccess);
  cudaStreamSynchronize(stream);
  _exit(0);
}

TEST_CASE("nccl: ranks of two processes, one of which dies") {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::string text;
  for (const char byte : id.internal) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto value = static_cast<unsigned char>(byte);
    text += {kDigits[value / 16], kDigits[value % 16]};
  }
  setenv("CONVOY_TEST_NCCL_ID", text.c_str(), 1);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  char name[] = "nccl_test", what[] = "[.nccl-peer]";
  char* arguments[] = {name, what, nullptr};
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) == 0);
  ncclComm_t comm;
  cudaSetDevice(0);
  REQUIRE(ncclCommInitRank(&comm, 2, id, 0) == ncclSuccess);
  cudaStream_t stream;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  const Values<float> values(0, iota<float>(300'000, 2));
  const auto reduce = [&] {
    return ncclAllReduce(values.data(), values.data(), 300'000, ncclFloat32, ncclSum, comm, stream);
  };
  CHECK(reduce() == ncclSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(values.read()[0] == 3);
  CHECK(values.read()[299'999] == 600'001);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(reduce() == ncclSuccess);
  ncclResult_t error = ncclSuccess;
  for (int i = 0; i < 2000 && error == ncclSuccess; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ncclCommGetAsyncError(comm, &error);
  }
  CHECK(error == ncclRemoteError);
  CHECK(std::string(ncclGetLastError(comm)) == "the process of rank 1 has ended");
  CHECK(ncclCommAbort(comm) == ncclSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  cudaStreamDestroy(stream);
}

TEST_CASE("nccl: an abort from another thread wakes who waits, and the others hear of it") {
  Clique clique(3);
  const auto values = on_all<float>(clique, 1);
  for (int r = 0; r < 2; ++r) {  // rank 2 does not come
    float* data = values[static_cast<std::size_t>(r)].data();
    REQUIRE(ncclAllReduce(data, data, 1, ncclFloat32, ncclSum, clique.comm(r), clique.stream(r)) ==
            ncclSuccess);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::thread([&] { CHECK(ncclCommAbort(clique.comm(2)) == ncclSuccess); }).join();
  CHECK(clique.error_of(0) == ncclRemoteError);
  CHECK(clique.text_of(0) == "rank 2 has aborted the communicator");
  std::thread([&] { CHECK(ncclCommAbort(clique.comm(0)) == ncclSuccess); }).join();
  CHECK(cudaStreamSynchronize(clique.stream(0)) == cudaSuccess);
  CHECK(cudaStreamQuery(clique.stream(1)) == cudaErrorNotReady);
  clique.end();
}
