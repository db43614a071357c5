// What tests of the emulated NCCL share: ranks with a stream each, buffers of all ranks, calls of
// all ranks in one group.
#pragma once

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/emulator/nccl_api.h"
#include "tests/support/catch.h"

namespace convoy::emulator {

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
    const int first = 100 * rank;
    all.emplace_back(rank, iota<T>(count, static_cast<T>(first)));
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

}  // namespace convoy::emulator
