#include "kernels/base/context.h"

#include <cstdlib>
#include <numeric>

#include "kernels/base/host_context.h"
#include "kernels/kernel_list.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace convoy::testing {
namespace {

std::atomic<int> applied_threads = 0;

void apply_threads(int threads) {
  applied_threads = threads;
}

}  // namespace

TEST_CASE("context: devices are opened once") {
  for (const Device& device : tested_devices()) {
    CHECK(&context(device) == &context(device));
    CHECK(context(device).device() == device);
    CHECK(context(device).default_stream().device() == device);
    CHECK(!context(device).describe().empty());
  }
  CHECK(&context("ref:0") != &context("ref:1"));
  CHECK(context("ref:1").device() == Device("ref:1"));
}

TEST_CASE("context: a device that is not here is refused") {
  const Error error = error_of([] { context("cuda:4000"); });
  CHECK(error.kind() == ErrorKind::usage);
  CHECK(error.text().find("cuda:4000") != std::string::npos);
}

TEST_CASE("context: copies in, inside and out") {
  for (const Device& device : tested_devices()) {
    DeviceContext& on = context(device);
    Stream& stream = on.default_stream();
    std::vector<int> source(1000), target(1000);
    std::iota(source.begin(), source.end(), 1);
    const std::vector<int> expected = source;
    const std::size_t bytes = source.size() * sizeof(int);
    MemoryPool::Block a = on.memory().allocate(bytes, &stream);
    MemoryPool::Block b = on.memory().allocate(bytes, &stream);
    on.copy_in(stream, a.data(), source.data(), bytes);
    std::fill(source.begin(), source.end(), 0);  // the source may be reused at once
    on.copy(stream, b.data(), a.data(), bytes);
    on.copy_out(stream, target.data(), b.data(), bytes);
    CHECK(target == expected);
  }
}

TEST_CASE("context: the innermost scope of a thread names its stream") {
  for (const Device& device : tested_devices()) {
    DeviceContext& on = context(device);
    const std::unique_ptr<Stream> outer = on.make_stream(), inner = on.make_stream();
    CHECK(&current_stream(device) == &on.default_stream());
    {
      StreamScope first(*outer);
      CHECK(&current_stream(device) == outer.get());
      {
        StreamScope second(*inner);
        CHECK(&current_stream(device) == inner.get());
        Stream* seen = nullptr;
        std::thread([&] { seen = &current_stream(device); }).join();
        CHECK(seen == &on.default_stream());
      }
      CHECK(&current_stream(device) == outer.get());
    }
    CHECK(&current_stream(device) == &on.default_stream());
  }
}

TEST_CASE("context: threads are set on the streams' threads") {
  HostContext on("ref:7", context("ref:0").kernels(), "for a test", apply_threads);
  const char* asked = std::getenv("OMP_NUM_THREADS");
  CHECK(on.threads() == (asked ? std::atoi(asked) : allowed_cores()));
  on.default_stream().record().wait();
  CHECK(applied_threads == on.threads());
  on.set_threads(3);
  CHECK(on.threads() == 3);
  on.default_stream().record().wait();
  CHECK(applied_threads == 3);
  const std::unique_ptr<Stream> stream = on.make_stream();
  for (int threads : {3, 2, 5}) {
    on.set_threads(threads);
    applied_threads = 0;
    stream->record().wait();
    CHECK(applied_threads == threads);
  }
  check_error([&] { on.set_threads(0); }, ErrorKind::usage,
              "ref:7: 0 threads asked for, at least 1 is needed");
}

TEST_CASE("context: memory holds to its cap") {
  DeviceContext& on = context("ref:2");
  on.memory().set_cap(1 << 20);
  const Error error = error_of([&] { on.memory().allocate(2 << 20, &on.default_stream()); });
  CHECK(describe(error) ==
        "resource: ref:2: out of memory: 2097152 bytes asked for, 0 of the cap of 1048576 bytes in "
        "use");
}

}  // namespace convoy::testing
