#include <climits>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernels/emulator/machine_support.h"

namespace convoy::emulator {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("atomics of all blocks add up", "[emulator]") {
  in_each_order([] {
    int sum = 0, least = INT_MAX, most = INT_MIN, bits = 0, flips = 0, ones = -1, down = 0;
    unsigned long long wide = 0;
    unsigned round = 0, back = 0;
    run({.grid = 8, .block = 64}, [&] {
      const int n = static_cast<int>(blockIdx.x * 64 + threadIdx.x);
      atomicAdd(&sum, n);
      atomicSub(&down, 2);
      atomicMin(&least, n - 7);
      atomicMax(&most, n);
      atomicOr(&bits, 1 << n % 20);
      atomicXor(&flips, n);
      atomicAnd(&ones, ~(n & 6));
      atomicAdd(&wide, 1ull << 33);
      atomicInc(&round, 9);
      atomicDec(&back, 9);
    });
    CHECK(sum == 511 * 256);
    CHECK(down == -1024);
    CHECK(least == -7);
    CHECK(most == 511);
    CHECK(bits == (1 << 20) - 1);
    CHECK(flips == 0);
    CHECK(ones == ~6);
    CHECK(wide == 512ull << 33);
    CHECK(round == 512 % 10);
    CHECK(back == (10 - 512 % 10) % 10);
  });
}

TEST_CASE("atomics return what was there", "[emulator]") {
  std::vector<int> tickets(1000);
  int next = 0, winner = -1, wins = 0, last = 5;
  run({.grid = 10, .block = 100}, [&] {
    const int n = static_cast<int>(blockIdx.x * 100 + threadIdx.x);
    ++tickets[atomicAdd(&next, 1)];
    if (atomicCAS(&winner, -1, n) == -1) atomicAdd(&wins, 1);
  });
  CHECK(tickets == std::vector<int>(1000, 1));
  CHECK(wins == 1);
  run({}, [&] {
    if (atomicExch(&last, 6) != 5 || last != 6) __trap();
    if (atomicCAS(&last, 7, 8) != 6 || last != 6) __trap();
    unsigned top = UINT_MAX;
    if (atomicAdd(&top, 3) != UINT_MAX || top != 2) __trap();
  });
}

TEST_CASE("atomics on floats are refused unless they are allowed", "[emulator]") {
  float sum = 0;
  double wide = 0;
  CHECK_THAT(fault_of(
                 {}, [&] { atomicAdd(&sum, 1.0f); }, cudaErrorNotPermitted),
             Contains("atomicAdd on a float: its sum depends on the order of the threads"));
  CHECK_THAT(fault_of(
                 {}, [&] { atomicAdd(&wide, 1.0); }, cudaErrorNotPermitted),
             Contains("atomicAdd"));
  MachineOptions options;
  options.float_atomics = true;
  const MachineOptionsScope scope(options);
  run({.grid = 4, .block = 32}, [&] {
    atomicAdd(&sum, 0.5f);
    atomicAdd(&wide, 0.25);
  });
  CHECK(sum == 64.0f);
  CHECK(wide == 32.0);
}

TEST_CASE("a misaligned atomic is a fault", "[emulator]") {
  alignas(8) char bytes[16] = {};
  CHECK_THAT(
      fault_of(
          {}, [&] { atomicAdd(reinterpret_cast<int*>(bytes + 2), 1); }, cudaErrorMisalignedAddress),
      Contains("atomic on 4 bytes at "));
}

TEST_CASE("intrinsics compute what CUDA's do", "[emulator]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(__float_as_uint(1.0f) == 0x3f800000u);
  CHECK(__uint_as_float(0x40490fdbu) == 3.14159274f);
  CHECK(__int_as_float(__float_as_int(-2.5f)) == -2.5f);
  CHECK(__longlong_as_double(__double_as_longlong(0.1)) == 0.1);
  CHECK(__popc(0xf0f0u) == 8);
  CHECK(__popcll(~0ull) == 64);
  CHECK(__clz(1) == 31);
  CHECK(__clz(0) == 32);
  CHECK(__clzll(1) == 63);
  CHECK(__ffs(0) == 0);
  CHECK(__ffs(0x18) == 4);
  CHECK(__ffsll(1ll << 40) == 41);
  CHECK(__brev(0x1u) == 0x80000000u);
  CHECK(__brev(0x12345678u) == 0x1e6a2c48u);
  CHECK(__byte_perm(0x33221100u, 0x77665544u, 0x7250u) == 0x77225500u);
  CHECK(__funnelshift_l(0x80000001u, 0x2u, 1) == 0x5u);
  CHECK(__funnelshift_r(0x80000001u, 0x3u, 1) == 0xc0000000u);
  CHECK(__mulhi(-1, 2) == -1);
  CHECK(__umulhi(0xffffffffu, 0xffffffffu) == 0xfffffffeu);
  CHECK(__umul64hi(~0ull, 2) == 1);
  CHECK(__fmaf_rn(1 + 0x1p-23f, 1 + 0x1p-23f, -1) == 0x1p-22f + 0x1p-46f);
  CHECK(rsqrtf(4.0f) == 0.5f);
  CHECK(rsqrt(16.0) == 0.25);
  CHECK(__saturatef(-1.0f) == 0.0f);
  CHECK(__saturatef(2.0f) == 1.0f);
  CHECK(__saturatef(nan) == 0.0f);
  CHECK(__float2int_rn(2.5f) == 2);
  CHECK(__float2int_rz(-2.5f) == -2);
  CHECK(__float2int_rd(-2.5f) == -3);
  CHECK(__float2int_ru(2.25f) == 3);
  CHECK(emulator::max(nan, 1.0f) == 1.0f);
  CHECK(emulator::min(2.0, nan) == 2.0);
  CHECK(emulator::max(-1, 5u) == 0xffffffffu);
  CHECK(emulator::min(3, 5ll) == 3);
}

}  // namespace
}  // namespace convoy::emulator
