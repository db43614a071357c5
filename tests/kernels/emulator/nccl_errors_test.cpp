// The emulated NCCL by itself: what it refuses at the call, and ranks whose calls differ.
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/kernels/emulator/nccl_support.h"

using namespace convoy::emulator;

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
    std::string text = clique.text_of(0);
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
  CHECK_THAT(counts, Catch::Contains("nccl_errors_test.cpp:") &&
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
