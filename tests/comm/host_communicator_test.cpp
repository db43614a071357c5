#include "comm/host_communicator.h"

#include <atomic>
#include <memory>

#include "kernels/base/context.h"
#include "tests/comm/thread_group.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {
namespace {

using testing::check_error;
using testing::kNothing;
using testing::Notes;
using testing::run_ranks;

template <class T>
Buffer buffer(std::vector<T>& values) {
  return {values.data(), dtype_of<T>, kPlain};
}

}  // namespace

TEST_CASE("collectives run in stream order") {
  Notes notes;
  run_ranks(3, {}, [&](HostCommunicator& rank) {
    auto stream = context("cpu:0").make_stream();
    const int n = rank.size();
    const auto r = static_cast<float>(rank.rank());
    std::vector<float> values(60, r);
    std::vector<float> part(20);
    std::vector<float> all(60);
    std::vector<float> from_two(60, r);
    rank.all_reduce(buffer(values), buffer(values), 60, Reduction::mean, *stream);   // 1
    rank.reduce_scatter(buffer(values), buffer(part), 60, Reduction::sum, *stream);  // 3
    stream->host_call([&] { part[0] += r; });
    rank.all_gather(buffer(part), buffer(all), 20, *stream);
    rank.broadcast(buffer(from_two), 60, 2, *stream);
    const Event done = stream->record();
    done.wait();
    stream->synchronize();
    for (int k = 0; k < n; ++k) {
      notes.expect(all[k * 20] == 3.0f + static_cast<float>(k) && all[k * 20 + 1] == 3.0f, "all");
    }
    notes.expect(from_two == std::vector<float>(60, 2), "broadcast");
  });
  CHECK(notes.text() == kNothing);
}

TEST_CASE("collectives on several streams run in the order of their calls") {
  Notes notes;
  run_ranks(2, {}, [&](HostCommunicator& rank) {
    auto one = context("cpu:0").make_stream();
    auto other = context("cpu:0").make_stream();
    std::vector<float> first(3, 1);
    std::vector<float> second(5, 10);
    const auto begun = std::make_shared<std::atomic<bool>>(false);
    one->host_call([begun] { begun->wait(false); });
    rank.all_reduce(buffer(first), buffer(first), 3, Reduction::sum, *one);
    rank.all_reduce(buffer(second), buffer(second), 5, Reduction::sum, *other);
    begun->store(true);
    begun->notify_all();
    const auto part = rank.split(0, 0);  // itself a collective, after those that were queued
    notes.expect(part->size() == 2, "split");
    rank.wait_for_queued();
    rank.barrier();
    notes.expect(first == std::vector<float>(3, 2), "first");
    notes.expect(second == std::vector<float>(5, 20), "second");
  });
  CHECK(notes.text() == kNothing);
}

TEST_CASE("messages on streams of their own do not wait for each other") {
  Notes notes;
  run_ranks(2, {}, [&](HostCommunicator& rank) {
    auto sends = context("cpu:0").make_stream();
    auto receives = context("cpu:0").make_stream();
    const int peer = 1 - rank.rank();
    // More than a channel holds, both ways: in one stream, neither would ever begin to receive.
    std::vector<std::int32_t> out(1000000, rank.rank());
    std::vector<std::int32_t> in(1000000, -1);
    rank.send(buffer(out), 1000000, peer, 0, *sends);
    rank.receive(buffer(in), 1000000, peer, 0, *receives);
    sends->synchronize();
    receives->synchronize();
    notes.expect(in == std::vector<std::int32_t>(1000000, peer), "values");
  });
  CHECK(notes.text() == kNothing);
}

TEST_CASE("an error surfaces when the stream is synchronized") {
  auto group = make_thread_communicators(2);
  auto stream = context("cpu:0").make_stream();
  std::vector<float> values(4);
  group[0]->send(buffer(values), 3, 1, 0, *stream);
  group[1]->receive(buffer(values), 4, 0, 0, *stream);
  check_error([&] { stream->synchronize(); }, ErrorKind::communication,
              "receive: message of 12 bytes from rank 0 with tag 0, 16 expected");
  group[0]->all_reduce(buffer(values), buffer(values), 4, Reduction::sum, *stream);
  group[1]->abort(Error(ErrorKind::communication, "enough"));
  check_error([&] { stream->synchronize(); }, ErrorKind::communication, "enough");
}

TEST_CASE("wrong arguments are refused at the call") {
  auto group = make_thread_communicators(2);
  HostCommunicator& rank = *group[0];
  Stream& stream = context("cpu:0").default_stream();
  std::vector<float> values(4);
  std::vector<double> doubles(4);
  const auto usage = [](const std::string& text, const std::function<void()>& call) {
    check_error(call, ErrorKind::usage, text);
  };
  usage("all_reduce: input is f32, output f64, expected the same type",
        [&] { rank.all_reduce(buffer(values), buffer(doubles), 4, Reduction::sum, stream); });
  usage("reduce_scatter: count is -4, expected at least 0",
        [&] { rank.reduce_scatter(buffer(values), buffer(values), -4, Reduction::sum, stream); });
  usage("all_gather: the buffer of 4 values is null",
        [&] { rank.all_gather(buffer(values), Buffer(), 4, stream); });
  usage("broadcast: root is rank 7, expected 0 to 1",
        [&] { rank.broadcast(buffer(values), 4, 7, stream); });
  usage("send: peer is rank 0, this rank itself",
        [&] { rank.send(buffer(values), 4, 0, 0, stream); });
  usage("receive: tag is -1, expected 0 to 65535",
        [&] { rank.receive(buffer(values), 4, 1, -1, stream); });
}

}  // namespace convoy
