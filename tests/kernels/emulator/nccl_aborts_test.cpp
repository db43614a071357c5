// The emulated NCCL by itself: communicators that have ended, ranks that abort, and a process that
// dies.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/kernels/emulator/nccl_support.h"

using namespace convoy::emulator;

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
