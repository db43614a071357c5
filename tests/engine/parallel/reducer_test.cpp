// The reducer: sums over ranks, whatever the buckets, layouts and devices.
#include "engine/parallel/reducer.h"

#include <set>

#include "comm/host_communicator.h"
#include "kernels/kernel_list.h"
#include "tests/engine/parallel/reducer_networks.h"
#include "tests/engine/parallel/workers.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

// The rank-order sum of what each rank has without a reducer.
Bits expected_sum(int ranks, const TensorOptions& options,
                  const std::function<void(int rank, SmallNetwork&)>& backward) {
  std::vector<Tensor> sums;
  for (int rank = 0; rank < ranks; ++rank) {
    SmallNetwork alone(options);
    backward(rank, alone);
    const auto parameters = alone.network.parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Tensor gradient = parameters[i].grad().with_layout(kPlain);
      if (rank == 0) sums.push_back(gradient);
      if (rank > 0) sums[i] = sums[i] + gradient;
    }
  }
  Bits bits;
  for (const Tensor& sum : sums) bits.push_back(sum.to_bytes());
  return bits;
}

}  // namespace

TEST_CASE("reducer: the sum over ranks, for any buckets") {
  const Bits expected = expected_sum(
      3, oracle(0), [](int rank, SmallNetwork& network) { network.backward(batch_of(rank)); });
  for (const ReducerOptions& options :
       {ReducerOptions(), with_limits(0, 0), with_limits(300, 5000)}) {
    std::vector<Bits> results(3);
    run_workers(3, [&](int rank, HostCommunicator& communicator) {
      SmallNetwork mine(oracle(rank));
      Reducer reducer(mine.network.named_parameters(), communicator, options);
      for (int window = 0; window < 2; ++window) {
        mine.network.zero_grad();
        reducer.arm();
        mine.backward(batch_of(rank));
        reducer.finish();
      }
      results[static_cast<std::size_t>(rank)] = mine.gradients();
    });
    for (const Bits& result : results) CHECK((result == expected));
  }
}

TEST_CASE("reducer: gradients of earlier batches are reduced with the last one's") {
  const Bits expected = expected_sum(2, oracle(0), [](int rank, SmallNetwork& network) {
    for (int step = 0; step < 3; ++step) network.backward(batch_of(rank, step));
  });
  std::vector<Bits> results(2), local(2);
  run_workers(2, [&](int rank, HostCommunicator& communicator) {
    SmallNetwork mine(oracle(rank));
    Reducer reducer(mine.network.named_parameters(), communicator, with_limits(100, 1000));
    mine.backward(batch_of(rank, 0));
    local[static_cast<std::size_t>(rank)] = mine.gradients();
    mine.backward(batch_of(rank, 1));
    reducer.arm();
    mine.backward(batch_of(rank, 2));
    reducer.finish();
    results[static_cast<std::size_t>(rank)] = mine.gradients();
  });
  for (const Bits& result : results) CHECK((result == expected));
  CHECK((local[0] != local[1]));  // nothing was sent before
}

TEST_CASE("reducer: a window may end without a backward") {
  std::vector<Values> results(2);
  run_workers(2, [&](int rank, HostCommunicator& communicator) {
    TwoParameters mine(oracle(rank));
    Reducer reducer(mine.named(), communicator);
    sum(mine.a + mine.b).backward();
    reducer.arm();
    if (rank == 0) sum(mine.a + mine.b).backward();
    reducer.finish();
    results[static_cast<std::size_t>(rank)] = values(mine.b.grad());
  });
  for (const Values& result : results) CHECK(result == Values{3, 3});
}

TEST_CASE("reducer: private layouts of cpu travel as they lie, after the first window") {
  const Bits expected = expected_sum(
      2, cores(0), [](int rank, SmallNetwork& network) { network.backward(batch_of(rank)); });
  std::vector<std::vector<Bits>> results(2);
  bool layouts_match = true, shares_memory = true, has_private = false;
  run_workers(2, [&](int rank, HostCommunicator& communicator) {
    SmallNetwork mine(cores(rank));
    Reducer reducer(mine.network.named_parameters(), communicator);
    for (int window = 0; window < 3; ++window) {
      mine.network.zero_grad();
      reducer.arm();
      mine.backward(batch_of(rank));
      reducer.finish();
      results[static_cast<std::size_t>(rank)].push_back(mine.gradients());
    }
    std::set<Storage*> memories;
    for (const Tensor& parameter : mine.network.parameters()) {
      if (rank == 0 && parameter.layout() != kPlain) has_private = true;
      if (rank == 0 && parameter.layout() != parameter.grad().layout()) layouts_match = false;
      memories.insert(parameter.grad().storage().get());
    }
    if (rank == 0) shares_memory = memories.size() == 1;
  });
  for (const auto& windows : results) {
    for (const Bits& result : windows) CHECK((result == expected));
  }
  CHECK(layouts_match);
  CHECK(shares_memory);  // views of the one bucket
  const Conv2dShape shape{2, 16, 5, 5, 32, 3, 3};
  const LayoutId best = context("cpu:0").kernels().conv2d_layouts(shape, DType::f32).weight;
  CHECK(has_private == (best != kPlain));
}

TEST_CASE("reducer: ranks that differ in layout agree on row-major") {
  const Conv2dShape shape{2, 16, 5, 5, 32, 3, 3};
  const LayoutId layout = context("cpu:0").kernels().conv2d_layouts(shape, DType::f32).weight;
  const Values data = signed_values("w", shape.weight().count());
  std::vector<Values> results(2);
  run_workers(2, [&](int rank, HostCommunicator& communicator) {
    Tensor w = Tensor::from(data, shape.weight(), cores(rank));
    w.set_requires_grad();
    if (rank == 1) w.relayout_(layout);
    Reducer reducer({{"w", w}}, communicator);
    for (int window = 0; window < 5; ++window) {
      w.grad() = Tensor();
      reducer.arm();
      backward({square(w)}, {Tensor::ones(w.shape(), w.options())});
      reducer.finish();
    }
    results[static_cast<std::size_t>(rank)] = values(w.grad());
  });
  for (const Values& result : results) {
    bool right = result.size() == data.size();
    for (std::size_t i = 0; right && i < data.size(); ++i) {
      right = result[i] == 4 * static_cast<double>(static_cast<float>(data[i]));
    }
    CHECK(right);
  }
}

TEST_CASE("reducer: a weighted sum, also of no images") {
  std::vector<Values> results(3), none(3), kept(3);
  run_workers(3, [&](int rank, HostCommunicator& communicator) {
    TwoParameters mine(oracle(rank));
    Reducer reducer(mine.named(), communicator, with_limits(0, 0));
    const double images = rank == 0 ? 0 : rank == 1 ? 2 : 3;
    auto window = [&](double share, double gradient) {
      reducer.arm({share, share});
      backward({mine.a, mine.b}, {Tensor::full({2}, gradient, oracle(rank)),
                                  Tensor::full({2}, 10 * gradient, oracle(rank))});
      reducer.finish();
    };
    const auto index = static_cast<std::size_t>(rank);
    window(images, rank == 0 ? NAN : rank);  // a mean over no images
    results[index] = values(mine.b.grad());
    window(images, rank);  // onto the last one
    kept[index] = values(mine.b.grad());
    mine.a.grad() = mine.b.grad() = Tensor();
    window(0, rank);
    none[index] = values(mine.a.grad());
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(std::abs(results[rank].at(0) - 10 * (2 * 1 + 3 * 2) / 5.0) < 1e-14);
    CHECK(std::abs(kept[rank].at(1) - 2 * results[rank].at(1)) < 1e-13);
    CHECK(std::abs(none[rank].at(0) - 1) < 1e-14);
    CHECK(results[rank] == results[0]);
  }
}

TEST_CASE("reducer: parameters over two devices and of two types") {
  std::vector<std::vector<Values>> results(2);
  run_workers(2, [&](int rank, HostCommunicator& communicator) {
    NamedTensors named;
    for (const TensorOptions& options :
         {oracle(2 * rank), oracle(2 * rank + 1),
          TensorOptions{DType::f32, oracle(2 * rank).device}, oracle(2 * rank)}) {
      named.emplace_back(fmt::format("w{}", named.size()), Tensor::ones({3}, options));
      named.back().second.set_requires_grad();
    }
    Reducer reducer(named, communicator, with_limits(0, 0));
    for (int window = 0; window < 2; ++window) {
      for (auto& [name, w] : named) w.grad() = Tensor();
      reducer.arm();
      for (std::size_t i = 0; i < named.size(); ++i) {
        const Tensor& w = named[i].second;
        backward({w}, {Tensor::full({3}, static_cast<double>(i) + 10 * rank, w.options())});
      }
      reducer.finish();
    }
    for (auto& [name, w] : named) {
      results[static_cast<std::size_t>(rank)].push_back(values(w.grad()));
    }
  });
  for (const auto& result : results) {
    for (std::size_t i = 0; i < 4; ++i) CHECK(result.at(i) == Values(3, 10 + 2.0 * double(i)));
  }
}

TEST_CASE("reducer: broadcast, in any layout and on any device, small ones together") {
  const Conv2dShape shape{2, 16, 5, 5, 32, 3, 3};
  const LayoutId layout = context("cpu:0").kernels().conv2d_layouts(shape, DType::f32).weight;
  std::vector<std::vector<Values>> results(3);
  run_workers(3, [&](int rank, HostCommunicator& communicator) {
    TwoParameters mine(oracle(rank));
    Reducer reducer(mine.named(), communicator);
    const std::vector<Tensor> all{Tensor::full(shape.weight(), rank + 5, cores(rank)),
                                  Tensor::full({2}, rank + 1, oracle(rank)),
                                  Tensor::full({1}, rank + 7, {DType::i64, cores(rank).device}),
                                  Tensor::full({}, rank + 3, oracle(rank)),
                                  Tensor::full({2}, rank + 4, {DType::i64, cores(rank).device})};
    if (rank == 2) Tensor(all[0]).relayout_(layout);
    reducer.broadcast(all);
    for (const Tensor& tensor : all) {
      results[static_cast<std::size_t>(rank)].push_back(values(tensor));
    }
  });
  for (const auto& result : results) {
    CHECK(result.at(0) == Values(static_cast<std::size_t>(shape.weight().count()), 5));
    CHECK(result.at(1) == Values{1, 1});
    CHECK(result.at(2) == Values{7});
    CHECK(result.at(3) == Values{3});
    CHECK(result.at(4) == Values{4, 4});
  }
}

TEST_CASE("reducer: workers may share a device") {
  std::vector<Values> results(2);
  run_workers(2, [&](int rank, HostCommunicator& communicator) {
    TwoParameters mine(oracle(0));
    Reducer reducer(mine.named(), communicator);
    reducer.broadcast({mine.a});
    reducer.arm();
    sum(mine.a + mine.b).backward();
    reducer.finish();
    results[static_cast<std::size_t>(rank)] = values(mine.b.grad());
  });
  for (const Values& result : results) CHECK(result == Values{2, 2});
}

TEST_CASE("reducer: times, and hooks that go with it") {
  ReduceTimes times;
  std::vector<Values> results(2);
  run_workers(2, [&](int rank, HostCommunicator& communicator) {
    SmallNetwork mine(oracle(rank));
    {
      Reducer reducer(mine.network.named_parameters(), communicator);
      reducer.arm();
      mine.backward(batch_of(rank));
      reducer.finish();
      if (rank == 0) times = reducer.times();
    }
    mine.network.zero_grad();
    mine.backward(batch_of(0));  // nobody listens any more
    results[static_cast<std::size_t>(rank)] = values(mine.network.parameters()[0].grad());
  });
  CHECK(times.all_reduce > 0);
  CHECK(times.exposed >= 0);
  CHECK(results[0] == results[1]);
}

TEST_CASE("reducer: postponed weights are reduced when they have been computed") {
  const Bits expected = expected_sum(
      2, oracle(0), [](int rank, SmallNetwork& network) { network.backward(batch_of(rank)); });
  std::vector<Bits> results(2);
  run_workers(2, [&](int rank, HostCommunicator& communicator) {
    SmallNetwork mine(oracle(rank));
    Reducer reducer(mine.network.named_parameters(), communicator, with_limits(0, 0));
    PostponedWeights postponed;
    const Shape shape{2, 3, 7, 7};
    const Tensor x =
        Tensor::from(signed_values(batch_of(rank), shape.count()), shape, mine.options);
    reducer.arm();
    backward({sum(square(mine.network(x)))}, {}, {.postponed = &postponed});
    postponed.run();
    reducer.finish();
    results[static_cast<std::size_t>(rank)] = mine.gradients();
  });
  for (const Bits& result : results) CHECK((result == expected));
}

}  // namespace convoy::testing
