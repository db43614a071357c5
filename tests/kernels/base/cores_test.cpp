#include "kernels/base/cores.h"

#include <set>
#include <thread>

#include "kernels/base/context.h"
#include "tests/support/catch.h"

namespace convoy {
namespace {

Cores mask_of_this_thread() {
  cpu_set_t mask;
  sched_getaffinity(0, sizeof mask, &mask);
  return cores_in_order(mask);
}

}  // namespace

TEST_CASE("cores are divided into equal parts of neighbours") {
  const Cores cores{0, 4, 1, 5, 2, 6, 3};
  CHECK(part_of(cores, 0, 1) == cores);
  CHECK(part_of(cores, 0, 3) == Cores{0, 4});
  CHECK(part_of(cores, 2, 3) == Cores{2, 6});
  CHECK(part_of(cores, 6, 7) == Cores{3});
  CHECK(part_of(cores, 7, 8).empty());
}

TEST_CASE("a list of cores is told by its stretches") {
  CHECK_THAT(core_list({}), Catch::Equals(""));
  CHECK(core_list({8, 0, 2, 1, 3}) == "0-3,8");
  CHECK(core_list({5}) == "5");
}

TEST_CASE("all allowed cores are there once, whatever their order") {
  const Cores cores = allowed_core_list();
  CHECK(std::ssize(cores) == allowed_cores());
  CHECK(std::set<int>(cores.begin(), cores.end()).size() == cores.size());
}

TEST_CASE("a thread keeps to cores for a while") {
  const Cores all = mask_of_this_thread();
  {
    const CoresScope scope({all.back()});
    CHECK(mask_of_this_thread() == Cores{all.back()});
  }
  CHECK(mask_of_this_thread() == all);
  const CoresScope none({});
  CHECK(mask_of_this_thread() == all);
}

TEST_CASE(
    "a device's streams keep to its cores, old and new ones, and so do threads that they start") {
  const Cores all = allowed_core_list();
  DeviceContext& device = context("cpu:5");
  const Cores one{all.back()};
  const auto seen_by = [](Stream& stream) {
    Cores seen, by_another;
    stream.host_call([&] {
      seen = mask_of_this_thread();
      std::thread([&] { by_another = mask_of_this_thread(); }).join();
    });
    stream.synchronize();
    return seen == by_another ? seen : Cores{-1};
  };
  device.set_cores(one);
  const auto stream = device.make_stream();
  CHECK(seen_by(*stream) == one);
  CHECK(seen_by(device.default_stream()) == one);
  CHECK(device.describe().ends_with(": " + core_list(one)));
  // Those of the process stay, so that numbers of threads and of workers do.
  CHECK(allowed_core_list() == all);
  device.set_cores({});
  device.default_stream().host_call([&] { CHECK(mask_of_this_thread() == all); });
  device.default_stream().synchronize();
  CHECK(device.describe().find(": ") == std::string::npos);
}

}  // namespace convoy
