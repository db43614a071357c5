// The reducer where something is missing or wrong: what is refused, on which ranks, and that nobody
// is left waiting.
#include "comm/host_communicator.h"
#include "engine/parallel/reducer.h"
#include "tests/engine/parallel/reducer_networks.h"
#include "tests/engine/parallel/workers.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {

TEST_CASE("reducer: a gradient that is missing is named on all ranks, and the next window works") {
  std::vector<std::string> errors(3);
  std::vector<Values> results(3);
  run_workers(3, [&](int rank, HostCommunicator& communicator) {
    const auto index = static_cast<std::size_t>(rank);
    TwoParameters mine(oracle(rank));
    Reducer reducer(mine.named(), communicator);
    reducer.arm();
    (rank == 0 ? sum(mine.a + mine.b) : sum(mine.a)).backward();
    try {
      reducer.finish();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::usage) errors[index] = error.text();
    }
    mine.a.grad() = Tensor();
    mine.b.grad() = Tensor();
    reducer.arm();
    sum(mine.a + mine.b).backward();
    reducer.finish();
    results[index] = values(mine.b.grad());
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    INFO(errors[rank]);
    CHECK(errors[rank].find("no gradient of b on rank 1, 2:") != std::string::npos);
    CHECK(results[rank] == Values{3, 3});
  }
}

TEST_CASE("reducer: unused parameters that are allowed, and absent ranks") {
  std::vector<Values> a(3), b(3), absent(3);
  run_workers(3, [&](int rank, HostCommunicator& communicator) {
    const auto index = static_cast<std::size_t>(rank);
    TwoParameters mine(oracle(rank));
    {
      Reducer lenient(mine.named(), communicator, {.buckets = {}, .allow_unused = true});
      lenient.arm();
      if (rank == 1) lenient.absent();
      if (rank == 2) sum(mine.a).backward();
      lenient.finish();
      a[index] = values(mine.a.grad());
      b[index] = values(mine.b.grad());
    }
    mine.a.grad() = Tensor();
    Reducer strict(mine.named(), communicator);
    strict.arm();
    if (rank == 1) strict.absent();
    if (rank != 1) sum(mine.a + mine.b).backward();
    strict.finish();
    absent[index] = values(mine.b.grad());
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(a[rank] == Values{1, 1});
    CHECK(b[rank].empty());
    CHECK(absent[rank] == Values{2, 2});
  }
}

TEST_CASE("reducer: ranks with different models") {
  auto differ = [](const std::function<NamedTensors(int rank)>& parameters) {
    return [parameters] {
      run_workers(2, [&](int rank, HostCommunicator& communicator) {
        Reducer(parameters(rank), communicator);
      });
    };
  };
  auto tensor = [](std::int64_t size) {
    return Tensor::ones({size}, oracle(0)).set_requires_grad();
  };
  expect_error(ErrorKind::usage, {"reducer", "parameter 1", "b f64 (2)", "b f64 (3)", "rank 1"},
               differ([=](int rank) {
                 return NamedTensors{{"a", tensor(1)}, {"b", tensor(2 + rank)}};
               }));
  expect_error(ErrorKind::usage, {"reducer", "rank 0 has 1 param", "rank 1 has 2"},
               differ([=](int rank) {
                 NamedTensors all{{"a", tensor(1)}};
                 if (rank == 1) all.emplace_back("b", tensor(2));
                 return all;
               }));
  expect_error(ErrorKind::usage, {"reducer", "no parameter"}, [] {
    run_workers(1, [](int, HostCommunicator& communicator) { Reducer({}, communicator); });
  });
}

TEST_CASE("reducer: calls in the wrong order") {
  auto with = [](const std::function<void(Reducer&, TwoParameters&)>& work) {
    return [work] {
      run_workers(1, [&](int, HostCommunicator& communicator) {
        TwoParameters mine(oracle(0));
        Reducer reducer(mine.named(), communicator);
        work(reducer, mine);
      });
    };
  };
  expect_error(ErrorKind::usage, {"finish() without arm()"},
               with([](Reducer& reducer, TwoParameters&) { reducer.finish(); }));
  expect_error(ErrorKind::usage, {"armed twice"}, with([](Reducer& reducer, TwoParameters&) {
                 reducer.arm();
                 reducer.arm();
               }));
  expect_error(ErrorKind::usage, {"gradient of a", "final twice"},
               with([](Reducer& reducer, TwoParameters& mine) {
                 reducer.arm();
                 sum(mine.a).backward();
                 sum(mine.a).backward();
               }));
}

TEST_CASE("reducer: nobody waits for a rank that has failed") {
  std::string seen;
  auto work = [&](bool armed) {
    return [&seen, armed] {
      run_workers(2, [&](int rank, HostCommunicator& communicator) {
        SmallNetwork mine(oracle(rank));
        Reducer reducer(mine.network.named_parameters(), communicator, with_limits(0, 0));
        if (rank == 1 && armed) reducer.arm();
        if (rank == 1) CONVOY_FAIL(data, "of the loader");
        try {
          reducer.arm();
          mine.backward(batch_of(rank));
          reducer.finish();
        } catch (const Error& error) {
          seen = error.text();
          throw;
        }
      });
    };
  };
  for (bool armed : {false, true}) {
    expect_error(ErrorKind::data, {"of the loader"}, work(armed));
    CHECK(seen == "of the loader");
  }
}

TEST_CASE("reducer: a window that is given up ends the others'") {
  expect_error(ErrorKind::communication, {"given up in the middle of a backward"}, [] {
    run_workers(2, [&](int rank, HostCommunicator& communicator) {
      TwoParameters mine(oracle(rank));
      Reducer reducer(mine.named(), communicator);
      reducer.arm();
      sum(mine.a).backward();
      if (rank == 0) reducer.finish();
    });
  });
}

}  // namespace convoy::testing
