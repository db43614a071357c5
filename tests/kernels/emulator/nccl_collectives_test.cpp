// The emulated NCCL by itself: every collective and message against closed forms, and the order of
// calls on streams and in graphs.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "kernels/base/bf16.h"
#include "tests/kernels/emulator/nccl_support.h"

using namespace convoy;
using namespace convoy::emulator;

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
