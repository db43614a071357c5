#include "comm/link_test.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "tests/comm/faulty_communicator.h"
#include "tests/comm/thread_group.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {
namespace {

using testing::error_of;
using testing::expect_error;
using testing::FaultyCommunicator;
using testing::kNothing;
using testing::Notes;
using testing::run_ranks;

constexpr int kTag = 3;

LinkTestOptions small() {
  return {.limit = 20, .sizes = {1000, 300000, 2000000}};
}

}  // namespace

TEST_CASE("all neighbours of a ring find their links in order") {
  Notes notes;
  run_ranks(4, {}, [&](HostCommunicator& rank) {
    const std::vector<int> peers = {(rank.rank() + 3) % 4, (rank.rank() + 1) % 4};
    const std::vector<LinkReport> reports = test_links(rank, peers, kTag, small());
    notes.expect(reports.size() == 2, "two reports");
    for (std::size_t i = 0; i < reports.size(); ++i) {
      const LinkReport& report = reports[i];
      notes.expect(report.from == peers[i] && report.to == rank.rank(), "ranks");
      notes.expect(report.latency_s > 0 && report.latency_s < 1, "latency");
      notes.expect(report.bytes_per_s > 1e5 && report.bytes_per_s < 1e13, "bandwidth");
      // Threads of one process have one clock: what is measured is at most the time on the way.
      notes.expect(std::abs(report.clock_offset_s) <= report.latency_s, "clock offset");
    }
    notes.expect(test_links(rank, {}, kTag).empty(), "no peers");
  });
  CHECK(notes.text() == kNothing);
}

TEST_CASE("the default test has messages from 1 KiB to 16 MiB, and ends in 5 s") {
  const LinkTestOptions options;
  CHECK(options.limit == 5);
  CHECK(options.sizes.front() == 1024);
  CHECK(*std::max_element(options.sizes.begin(), options.sizes.end()) == 16 * 1024 * 1024);
  auto group = make_thread_communicators(2);
  run_ranks(group, [&](HostCommunicator& rank) { test_links(rank, {1 - rank.rank()}, kTag); });
}

TEST_CASE("a wrong byte fails the pair, with its place and both values") {
  auto group = make_thread_communicators(2);
  FaultyCommunicator faulty(*group[0], [](auto& message) {
    if (message.size() == 300000) message[12345] ^= std::byte{64};
    return true;
  });
  std::string other_text;
  std::thread other([&] {
    LinkTestOptions options = small();
    options.limit = 0.5;  // it waits for the peer that has failed
    try {
      test_links(faulty, {1}, kTag, options);
    } catch (const Error& error) {
      other_text = error.text();
    }
  });
  const Error error = error_of([&] { test_links(*group[1], {0}, kTag, small()); });
  other.join();
  CHECK(error.kind() == ErrorKind::communication);
  CHECK(error.text() ==
        "link test of ranks 0 and 1: byte 12345 of 300000 from rank 0 to rank 1 is 46, expected "
        "110");
  CHECK(other_text ==
        "link test of ranks 0 and 1: rank 1 has not sent a message of 2000000 bytes within 0.5 s");
}

TEST_CASE("a peer that does not answer fails the pair when the time is over") {
  auto group = make_thread_communicators(3);
  LinkTestOptions options;
  options.limit = 0.1;
  for (int rank : {0, 2}) {
    expect_error(ErrorKind::communication,
                 {"link test of ranks", "rank 1 has not sent", "within 0.1 s"},
                 [&] { test_links(*group[static_cast<std::size_t>(rank)], {1}, kTag, options); });
  }
}

}  // namespace convoy
