#include "kernels/emulator/test_control.h"

#include <array>
#include <atomic>

#include "kernels/emulator/devices.h"

namespace convoy::emulator {
namespace {

struct Settings {
  std::atomic<StreamMode> mode{StreamMode::threads};
  std::atomic<unsigned> seed{0};
  std::array<std::atomic<std::uint64_t>, 3> calls_to_failure{};
};

Settings& settings() {
  static auto* const result = new Settings;
  return *result;
}

std::atomic<std::uint64_t>& calls_to_failure(FailingCall call) {
  return settings().calls_to_failure[static_cast<std::size_t>(call)];
}

}  // namespace

void set_stream_mode(StreamMode mode, unsigned seed) {
  settings().seed = seed;
  settings().mode = mode;
}

StreamMode stream_mode() {
  return settings().mode;
}

unsigned stream_seed() {
  return settings().seed;
}

void fail_call(FailingCall call, std::uint64_t nth) {
  calls_to_failure(call) = nth;
}

bool must_fail(FailingCall call) {
  std::atomic<std::uint64_t>& left = calls_to_failure(call);
  std::uint64_t before = left.load();
  while (before > 0 && !left.compare_exchange_weak(before, before - 1)) {
  }
  return before == 1;
}

void set_capacity(int device, std::size_t bytes) {
  emulated_device(device).memory().set_capacity(bytes);
}

void revive(int device) {
  emulated_device(device).clear_fault();
}

}  // namespace convoy::emulator
